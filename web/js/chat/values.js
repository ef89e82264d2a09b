// The values in a chat request: plain data, and texts that know which of their parts are the
// template's own.
import { ArgumentError } from "../errors.js";
import { digitsOf } from "./digits.js";

const MAX_LEVEL = 90; // the deepest nesting of arrays and objects
const encoder = new TextEncoder();

export function refuse(message) {
  return new ArgumentError("argument", message);
}

/** Returns the options of a call: an object, which is empty if the caller passed none. */
export function optionsOf(options = {}) {
  if (typeof options === "object" && options !== null && !Array.isArray(options)) return options;
  throw refuse(`options must be an object, not ${kindOf(options)}`);
}

/** Returns the size of a text, in bytes of UTF-8. */
export function sizeOf(text) {
  let size = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit >= 0x80) size += unit >= 0x800 && (unit & 0xf800) !== 0xd800 ? 2 : 1;
  }
  return size;
}

/** A text with the ranges, in bytes, that count as the template's own. All other text is the
 * conversation's, where control tokens aren't parsed. */
export class Text {
  constructor(text, ranges) {
    this.text = text;
    this.ranges = ranges;
  }
}

/** Returns the string of a Text or string. */
export function textOf(value) {
  return value instanceof Text ? value.text : value;
}

export function isText(value) {
  return typeof value === "string" || value instanceof Text;
}

/** Makes a text that is entirely the template's own. */
export function own(text) {
  return new Text(text, text ? [[0, sizeOf(text)]] : []);
}

/** Returns a value with its strings marked as the template's own. Keys stay unmarked. */
export function owned(value) {
  if (typeof value === "string") return value && own(value);
  if (Array.isArray(value)) return value.map(owned);
  if (!isObject(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, owned(item)]));
}

/** Joins pieces into one Text. A piece is [text, isOwn]: a string or Text, and whether it is the
 * template's own. */
export function joined(pieces) {
  const ranges = [];
  let text = "";
  let at = 0;
  for (const [given, isOwn] of pieces) {
    const piece = textOf(given);
    const end = at + sizeOf(piece);
    text += piece;
    if ((isOwn || isOwned(given)) && end > at) {
      const last = ranges.at(-1);
      if (last?.[1] === at) last[1] = end;
      else ranges.push([at, end]);
    }
    at = end;
  }
  return new Text(text, ranges);
}

/** Whether a whole text is the template's own. */
function isOwned(text) {
  if (!(text instanceof Text)) return false;
  const [[begin, end] = []] = text.ranges;
  return begin === 0 && end === sizeOf(text.text);
}

// Roles that count as the template's own, because some templates write '<|' + role + '|>'.
const ROLES = new Set(
  (
    "assistant critic developer documents environment function human ipython model observation " +
    "system tool tool_call tool_calls tool_response tools user"
  ).split(" "),
);

/** Returns a role for a template. `marks`: the set of the message's fields that count as the
 * template's own; if undefined, the role's name decides. */
export function role(name, marks) {
  const isOwn = marks ? marks.has("role") : ROLES.has(name);
  return isOwn ? own(name) : name;
}

// ---- JSON ----

/** JSON text that the module parses instead of JavaScript, because it contains numbers that
 * JavaScript might not represent exactly. */
export class Json {
  constructor(source) {
    this.source = source;
  }
}

const TOKENS = /"(?:[^"\\]|\\.)*"(?:\s*:)?|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g;
const NUMBER = "\0number";
// Prefix for keys like "1", which JavaScript would move to the beginning of an object.
const KEY = "\0key";

export function keyOf(name) {
  return name.startsWith(KEY) ? name.slice(KEY.length) : name;
}

/** Parses a request. Integers that JavaScript represents exactly become numbers, all other numbers
 * become Json. Keys keep their order. */
export function parse(source) {
  const marked = source.replace(TOKENS, (token) => {
    if (/^"(?:\d+"|\\u0000)/.test(token) && token.endsWith(":")) return `"\\u0000key${token.slice(1)}`;
    if (token[0] === '"' || (/^-?\d+$/.test(token) && Number.isSafeInteger(Number(token))))
      return token === "-0" ? "0" : token;
    return `{"\\u0000number":"${token}"}`;
  });
  let value;
  try {
    value = JSON.parse(marked, (key, item) =>
      item !== null && typeof item === "object" && Object.hasOwn(item, NUMBER)
        ? new Json(item[NUMBER])
        : item,
    );
  } catch {
    try {
      value = JSON.parse(source); // throws an error that quotes the original text
    } catch (error) {
      throw refuse(`the request isn't valid JSON: ${error.message}`);
    }
  }
  return value;
}

/** Returns JSON text as a value for a template. Throws ArgumentError if it isn't valid. */
export function json(source, where) {
  const text = source.startsWith("\ufeff") ? source.slice(1) : source;
  try {
    plain(JSON.parse(text), where);
  } catch (error) {
    if (error instanceof ArgumentError) throw error;
    throw refuse(`${where}: not valid JSON: ${error.message}`);
  }
  return new Json(text);
}

export function isObject(value) {
  return (
    value !== null &&
    typeof value === "object" &&
    !Array.isArray(value) &&
    !(value instanceof Json) &&
    !(value instanceof Text)
  );
}

/** Returns a copy of a value as plain data. Throws ArgumentError for values that JSON can't
 * represent. */
export function plain(value, where, level = 0) {
  if (value === null || typeof value === "boolean" || value instanceof Json) return value;
  if (typeof value === "string") return wellFormed(value, where);
  if (typeof value === "number") {
    if (!Number.isFinite(value)) throw refuse(`${where}: ${value} can't be written as JSON`);
    return value;
  }
  if (typeof value === "bigint") return new Json(String(value));
  if (Array.isArray(value) || isObject(value)) {
    if (level === MAX_LEVEL) throw refuse(`${where}: nested more than ${MAX_LEVEL} deep`);
  }
  if (Array.isArray(value)) {
    return value.map((item, i) => plain(item ?? null, `${where}[${i}]`, level + 1));
  }
  if (!isObject(value)) throw refuse(`${where} must be plain data, not ${kindOf(value)}`);
  const copy = {};
  for (const [key, item] of Object.entries(value)) {
    if (item === undefined) continue;
    define(copy, wellFormed(key, where), plain(item, `${where}.${key}`, level + 1));
  }
  return copy;
}

/** Sets a field, even one named __proto__. */
function define(object, key, value) {
  Object.defineProperty(object, key, {
    value,
    enumerable: true,
    configurable: true,
    writable: true,
  });
}

export function wellFormed(text, where) {
  if (/\p{Surrogate}/u.test(text)) {
    throw refuse(`${where}: a lone surrogate, which JSON can't contain`);
  }
  return text;
}

export function kindOf(value) {
  if (value === null) return "null";
  if (Array.isArray(value)) return "an array";
  if (value instanceof Json) return "a number";
  if (value === undefined) return "undefined";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}

/** Returns compact JSON as the server writes it. */
export function dump(value) {
  if (typeof value === "number") {
    return Number.isSafeInteger(value) && !Object.is(value, -0) ? String(value) : double(value);
  }
  if (value instanceof Json) return number(value.source);
  if (Array.isArray(value)) return `[${value.map(dump).join(",")}]`;
  if (isObject(value)) {
    const fields = Object.entries(value).map(([key, item]) => `${dump(keyOf(key))}:${dump(item)}`);
    return `{${fields.join(",")}}`;
  }
  return JSON.stringify(textOf(value));
}

function number(source) {
  if (!/^-?\d+$/.test(source)) return double(Number(source));
  const exact = BigInt(source);
  const fits = exact >= -(2n ** 63n) && exact < 2n ** 64n;
  return fits ? String(exact) : double(Number(source));
}

/** Formats a double like the server's JSON library, which writes 1e+15 and 1e-05. */
function double(value) {
  if (!Number.isFinite(value)) throw refuse("a number is too large for a double");
  if (value === 0) return Object.is(value, -0) ? "-0.0" : "0.0";
  const [digits, exponent] = digitsOf(Math.abs(value));
  const sign = value < 0 ? "-" : "";
  const n = digits.length;
  const point = n + exponent; // the value is 0.DIGITS * 10**point
  if (n <= point && point <= 15) return `${sign}${digits}${"0".repeat(point - n)}.0`;
  if (0 < point && point <= 15) return `${sign}${digits.slice(0, point)}.${digits.slice(point)}`;
  if (-4 < point && point <= 0) return `${sign}0.${"0".repeat(-point)}${digits}`;
  const power = Math.abs(point - 1).toString().padStart(2, "0");
  const tail = n > 1 ? `.${digits.slice(1)}` : "";
  return `${sign}${digits[0]}${tail}e${point - 1 < 0 ? "-" : "+"}${power}`;
}

// ---- for the module ----

/** Writes variables in the format that web/wasm/exports.c reads. */
export class Writer {
  constructor() {
    this.bytes = new Uint8Array(1024);
    this.view = new DataView(this.bytes.buffer);
    this.n = 0;
  }

  static variables(variables) {
    const writer = new Writer();
    const named = Object.entries(variables).filter(([, value]) => value !== undefined);
    writer.size(named.length);
    for (const [name, value] of named) {
      writer.text(keyOf(name), []);
      writer.value(value);
    }
    return writer.bytes.subarray(0, writer.n);
  }

  static path(steps) {
    const writer = new Writer();
    for (const step of steps) {
      if (typeof step === "number") {
        writer.letter("i");
        writer.size(step);
      } else {
        const bytes = encoder.encode(step);
        writer.letter("s");
        writer.size(bytes.length);
        writer.put(bytes);
      }
    }
    return writer.bytes.subarray(0, writer.n);
  }

  room(n) {
    if (this.n + n <= this.bytes.length) return;
    const bytes = new Uint8Array(2 * (this.n + n));
    bytes.set(this.bytes.subarray(0, this.n));
    this.bytes = bytes;
    this.view = new DataView(bytes.buffer);
  }

  put(bytes) {
    this.room(bytes.length);
    this.bytes.set(bytes, this.n);
    this.n += bytes.length;
  }

  letter(letter) {
    this.room(1);
    this.bytes[this.n++] = letter.charCodeAt(0);
  }

  size(n) {
    this.room(4);
    this.view.setUint32(this.n, n, true);
    this.n += 4;
  }

  text(text, ranges) {
    const bytes = encoder.encode(text);
    this.size(bytes.length);
    this.size(ranges.length);
    for (const [begin, end] of ranges) {
      this.size(begin);
      this.size(end);
    }
    this.put(bytes);
  }

  value(value) {
    if (value === null) return this.letter("n");
    if (typeof value === "boolean") return this.letter(value ? "t" : "f");
    if (typeof value === "number") return this.number(value);
    if (value instanceof Json) {
      const bytes = encoder.encode(value.source);
      this.letter("j");
      this.size(bytes.length);
      return this.put(bytes);
    }
    if (isText(value)) {
      this.letter("s");
      return this.text(textOf(value), value instanceof Text ? value.ranges : []);
    }
    if (Array.isArray(value)) {
      this.letter("l");
      this.size(value.length);
      for (const item of value) this.value(item);
      return undefined;
    }
    const entries = Object.entries(value).filter(([, item]) => item !== undefined);
    this.letter("m");
    this.size(entries.length);
    for (const [key, item] of entries) {
      this.value(keyOf(key));
      this.value(item);
    }
    return undefined;
  }

  number(value) {
    this.letter(Number.isSafeInteger(value) && !Object.is(value, -0) ? "i" : "d");
    this.room(8);
    if (this.bytes[this.n - 1] === 0x69) this.view.setBigInt64(this.n, BigInt(value), true);
    else this.view.setFloat64(this.n, value, true);
    this.n += 8;
  }
}
