// Options of calls, and the errors of wrong arguments.
import { ArgumentError } from "./errors.js";

export const ENCODE = { addSpecial: true, parseSpecial: false, continuation: false };

export function refuse(message, details) {
  return new ArgumentError("argument", message, details);
}

export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (value === undefined) return "undefined";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Returns a call's options, with the defaults of those that are missing or undefined. Refuses
 * options that have no default. */
export function readOptions(options, defaults) {
  if (options === undefined) return defaults;
  if (typeof options !== "object" || options === null || Array.isArray(options)) {
    throw refuse(`options must be an object, not ${kindOf(options)}`);
  }
  const found = { ...defaults };
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(defaults, name)) throw refuse(unknown(name, Object.keys(defaults)));
    if (value !== undefined) found[name] = value;
  }
  return found;
}

/** Throws unless an option has one of these values. */
export function checkChoice(name, value, allowed) {
  if (allowed.includes(value)) return;
  const shown = typeof value === "string" ? `"${value}"` : kindOf(value);
  throw refuse(`${name} must be ${allowed.map((each) => `"${each}"`).join(" or ")}, not ${shown}`);
}

function unknown(name, names) {
  const [nearest] = names
    .map((known) => [known, distance(name.toLowerCase(), known.toLowerCase())])
    .filter(([known, edits]) => edits <= Math.max(2, known.length / 3))
    .sort(([, a], [, b]) => a - b);
  const hint = nearest ? `did you mean '${nearest[0]}'?` : `the options are ${names.join(", ")}`;
  return `unknown option '${name}'; ${hint}`;
}

/** Returns the number of edits of one character that turn one text into another. */
function distance(a, b) {
  let row = Array.from({ length: b.length + 1 }, (_, i) => i);
  for (let i = 0; i < a.length; i++) {
    const next = [i + 1];
    for (let k = 0; k < b.length; k++) {
      next.push(Math.min(row[k] + (a[i] === b[k] ? 0 : 1), row[k + 1] + 1, next[k] + 1));
    }
    row = next;
  }
  return row.at(-1);
}
