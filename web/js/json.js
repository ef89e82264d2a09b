// Writes JavaScript values as JSON text. Unlike JSON.stringify, it writes every number with its
// type: integers that JavaScript represents exactly, and bigints, as integers; all other numbers as
// floats. It refuses what JSON can't represent.
import { kindOf, refuse } from "./options.js";

const MOST_LEVELS = 200; // ends recursion; the module allows fewer

/** Returns a value as JSON text. Fields that are undefined are omitted. */
export function writeJson(value) {
  return write(value, { parent: null, step: "", level: 0 });
}

function write(value, path) {
  if (value === null || typeof value === "boolean") return String(value);
  if (typeof value === "string") return writeText(value, path);
  if (typeof value === "number") return writeNumber(value, path);
  if (typeof value === "bigint") return String(value);
  if (typeof value !== "object") fail(path, `must be plain data, not ${kindOf(value)}`);
  if (path.level === MOST_LEVELS) fail(path, `nested more than ${MOST_LEVELS} deep`);
  const below = (step) => ({ parent: path, step, level: path.level + 1 });
  if (Array.isArray(value)) {
    const items = Array.from(value, (item, i) => write(item ?? null, below(`[${i}]`)));
    return `[${items.join(",")}]`;
  }
  const fields = [];
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    fields.push(`${writeText(key, path)}:${write(item, below(`.${key}`))}`);
  }
  return `{${fields.join(",")}}`;
}

function writeText(text, path) {
  if (/\p{Surrogate}/u.test(text)) fail(path, "has a lone surrogate, which JSON can't contain");
  return JSON.stringify(text);
}

function writeNumber(value, path) {
  if (!Number.isFinite(value)) fail(path, `${value} can't be written as JSON`);
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  return Number.isSafeInteger(value) || /[.e]/.test(text) ? text : `${text}.0`;
}

function fail(path, what) {
  const steps = [];
  for (let at = path; at; at = at.parent) steps.push(at.step);
  const key = steps.reverse().join("").slice(1);
  throw refuse(`${key || "the request"}: ${what}`, key ? { key } : {});
}
