// Writes JavaScript values as JSON text. Unlike JSON.stringify, it writes every number with its
// type: integers that JavaScript represents exactly, and bigints, as integers; all other numbers as
// floats. It refuses what JSON can't represent.
import { kindOf, refuse } from "./options.js";

const MOST_LEVELS = 200; // ends recursion; the module allows fewer
const MOST_STEPS = 12; // steps of a path that errors show

/** A value that can't be written, with the keys and indices that lead to it, innermost first. */
class Unwritable {
  steps = [];

  constructor(what) {
    this.what = what;
  }
}

/** Returns a value as JSON text. Fields that are undefined are omitted. */
export function writeJson(value) {
  try {
    return write(value, MOST_LEVELS);
  } catch (error) {
    if (!(error instanceof Unwritable)) throw error;
    const steps = error.steps.reverse();
    const key = steps.slice(0, MOST_STEPS).join("").replace(/^\./, "");
    const more = steps.length > MOST_STEPS ? "..." : "";
    throw refuse(`${key || "the request"}${more}: ${error.what}`, key ? { key } : {});
  }
}

function write(value, levels) {
  switch (typeof value) {
    case "string":
      return writeText(value);
    case "number":
      return writeNumber(value);
    case "boolean":
    case "bigint":
      return String(value);
    case "object":
      if (value === null) return "null";
      if (!levels) throw new Unwritable(`nested more than ${MOST_LEVELS} deep`);
      return Array.isArray(value) ? writeArray(value, levels - 1) : writeObject(value, levels - 1);
    default:
      throw new Unwritable(`must be plain data, not ${kindOf(value)}`);
  }
}

function writeArray(items, levels) {
  let text = "[";
  let i = 0;
  try {
    for (; i < items.length; i++) text += (i ? "," : "") + write(items[i] ?? null, levels);
  } catch (error) {
    error.steps?.push(`[${i}]`);
    throw error;
  }
  return `${text}]`;
}

function writeObject(object, levels) {
  let text = "";
  let key;
  try {
    for (key of Object.keys(object)) {
      if (object[key] === undefined) continue;
      text += `${text ? "," : "{"}${writeText(key)}:${write(object[key], levels)}`;
    }
  } catch (error) {
    error.steps?.push(`.${key}`);
    throw error;
  }
  return text ? `${text}}` : "{}";
}

function writeText(text) {
  const isWellFormed = text.isWellFormed?.() ?? !/\p{Surrogate}/u.test(text);
  if (!isWellFormed) throw new Unwritable("a lone surrogate, which JSON can't contain");
  return JSON.stringify(text);
}

function writeNumber(value) {
  if (!Number.isFinite(value)) throw new Unwritable(`${value} can't be written as JSON`);
  if (Object.is(value, -0)) return "-0.0";
  const text = String(value);
  return Number.isSafeInteger(value) || /[.e]/.test(text) ? text : `${text}.0`;
}
