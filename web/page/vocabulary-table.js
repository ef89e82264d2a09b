// All pieces of a vocabulary, kept in the page so that tokens are drawn without asking the worker.

import { strings } from "./strings.js";

const decoder = new TextDecoder("utf-8", { fatal: true });

/** The number of colours of tokens, .h0 to .h7 in style.css. */
export const HUES = 8;

export const NORMAL = 1;
export const UNKNOWN = 2;
export const CONTROL = 3;
export const USER_DEFINED = 4;
export const UNUSED = 5;
export const BYTE = 6;

/** Code points that have no visible glyph, or that change the direction of nearby text. */
const INVISIBLE = /[\p{C}\p{Zl}\p{Zp}\u00a0\u115f\u1160\u1680\u2000-\u200a\u202f\u205f\u3000\u3164\ufe00-\ufe0f\uffa0]/u;
const MARK = /^\p{M}/u;

/** The most characters of a piece that are drawn; the rest is only counted. */
const MOST_CHARACTERS = 200;

const hex = (byte) => byte.toString(16).toUpperCase().padStart(2, "0");

/** Returns the length of the well-formed UTF-8 character at `i`, or 0. */
function characterAt(bytes, i) {
  const first = bytes[i];
  if (first < 0x80) return 1;
  const n = first >= 0xc2 && first < 0xe0 ? 2 : first >= 0xe0 && first < 0xf0 ? 3 : first >= 0xf0 && first < 0xf5 ? 4 : 0;
  if (n === 0 || i + n > bytes.length) return 0;
  try {
    decoder.decode(bytes.subarray(i, i + n));
    return n;
  } catch {
    return 0;
  }
}

/**
 * Returns how to draw bytes: a list of `{ kind, text }`, where kind is "text", "space", "tab",
 * "newline", "return", "code" (a character without a glyph, such as U+200B), "byte" (a byte that
 * isn't part of a whole character, such as E2) or "more" (the number of bytes that aren't drawn).
 */
export function partsOf(bytes, most = MOST_CHARACTERS) {
  const parts = [];
  let plain = "";
  const flush = () => {
    if (plain) parts.push({ kind: "text", text: MARK.test(plain) && parts.length === 0 ? `\u25cc${plain}` : plain });
    plain = "";
  };
  const add = (kind, text) => {
    flush();
    parts.push({ kind, text });
  };
  let i = 0;
  for (let drawn = 0; i < bytes.length && drawn < most; drawn += 1) {
    const n = characterAt(bytes, i);
    if (n === 0) {
      add("byte", hex(bytes[i]));
      i += 1;
      continue;
    }
    const character = decoder.decode(bytes.subarray(i, i + n));
    i += n;
    if (character === " ") add("space", " ");
    else if (character === "\n") add("newline", "\n");
    else if (character === "\t") add("tab", "\t");
    else if (character === "\r") add("return", "\r");
    else if (INVISIBLE.test(character)) add("code", `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`);
    else plain += character;
  }
  flush();
  if (i < bytes.length) parts.push({ kind: "more", text: bytes.length - i });
  return parts;
}

const SPOKEN = { space: "␠", tab: "→", newline: "↵", return: "␍" };

/** Returns the parts as one line of text with visible white space. */
export function visible(parts) {
  return parts.map(({ kind, text }) => SPOKEN[kind] ?? (kind === "byte" ? `<${text}>` : kind === "code" ? `<${text}>` : kind === "more" ? "…" : text)).join("");
}

/**
 * Returns the parts as a screen reader should read them: the drawn words in order, and names for
 * white space at the ends, which changes the token.
 */
export function spoken(parts) {
  const isSpace = ({ kind }) => kind in SPOKEN;
  const words = parts.map((part, i) => {
    if (!isSpace(part)) return part.kind === "more" ? strings.token.hiddenBytes(part.text) : part.text;
    const inside = parts.slice(0, i).some((other) => !isSpace(other)) && parts.slice(i).some((other) => !isSpace(other));
    return inside ? " " : ` ${SPOKEN[part.kind]} `;
  });
  return words.join("").trim() || strings.token.empty;
}

/** The scripts that the filter and the chart distinguish. A token belongs to the first script of
 * this list that occurs in it. */
const SCRIPTS = [
  "Latin", "Han", "Cyrillic", "Arabic", "Hangul", "Hiragana", "Katakana", "Devanagari", "Greek", "Hebrew", "Thai",
  "Bengali", "Tamil", "Telugu", "Kannada", "Malayalam", "Gujarati", "Gurmukhi", "Sinhala", "Khmer", "Lao", "Myanmar",
  "Tibetan", "Georgian", "Armenian", "Ethiopic", "Mongolian",
].map((name) => [name, new RegExp(`\\p{Script=${name}}`, "u")]);

function scriptOf(bytes) {
  let ascii = true;
  let letters = false;
  let digits = false;
  for (const byte of bytes) {
    if (byte >= 0x80) {
      ascii = false;
      break;
    }
    if ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a) letters = true;
    else if (byte >= 0x30 && byte <= 0x39) digits = true;
  }
  if (ascii) return letters ? "Latin" : digits ? "Digits" : "Punctuation and space";
  let text;
  try {
    text = decoder.decode(bytes.subarray(0, 256));
  } catch {
    text = new TextDecoder().decode(bytes.subarray(0, 256));
    if (bytes.length < 256 && !/[^\ufffd\s]/u.test(text)) return "Parts of characters";
  }
  for (const [name, pattern] of SCRIPTS) if (pattern.test(text)) return name;
  if (/\p{L}/u.test(text)) return "Other scripts";
  if (/\p{Extended_Pictographic}/u.test(text)) return "Emoji";
  return "Symbols";
}

export class VocabularyTable {
  #parts = new Map();
  #scripts;

  /** `pieces` is the result of the tokenizer's pieces(). */
  constructor({ bytes, offsets, types, scores }) {
    this.data = bytes;
    this.offsets = offsets;
    this.types = types;
    this.scores = scores;
    this.size = offsets.length - 1;
    this.hasScores = scores.some((score) => score !== 0);
    this.breaks = this.#breaks();
  }

  /** Returns for each id whether its piece ends with a line feed. */
  #breaks() {
    const breaks = new Uint8Array(this.size);
    for (let id = 0; id < this.size; id += 1) {
      const end = this.offsets[id + 1];
      if (end > this.offsets[id] && this.data[end - 1] === 0x0a) breaks[id] = 1;
    }
    return breaks;
  }

  /** Compares two tokens' bytes, for sorting. */
  compare = (a, b) => {
    const { data, offsets } = this;
    const n = Math.min(this.length(a), this.length(b));
    for (let i = 0, p = offsets[a], q = offsets[b]; i < n; i += 1, p += 1, q += 1) if (data[p] !== data[q]) return data[p] - data[q];
    return this.length(a) - this.length(b);
  };

  bytes(id) {
    return this.data.subarray(this.offsets[id], this.offsets[id + 1]);
  }

  length(id) {
    return this.offsets[id + 1] - this.offsets[id];
  }

  has(id) {
    return Number.isInteger(id) && id >= 0 && id < this.size;
  }

  /** Whether the token's type is control, unknown or unused, so that it doesn't represent text. */
  isSpecial(id) {
    const type = this.types[id];
    return type === CONTROL || type === UNKNOWN || type === UNUSED;
  }

  /** Returns {@link partsOf} of the piece, cached. */
  parts(id) {
    let parts = this.#parts.get(id);
    if (parts === undefined) {
      parts = partsOf(this.bytes(id));
      if (this.#parts.size > 20_000) this.#parts.clear();
      this.#parts.set(id, parts);
    }
    return parts;
  }

  /** Returns the piece as one line of text with visible white space. */
  visible(id) {
    return visible(this.parts(id));
  }

  spoken(id) {
    return spoken(this.parts(id));
  }

  /** Returns the piece as text, with U+FFFD for bytes that aren't UTF-8. */
  text(id) {
    return new TextDecoder().decode(this.bytes(id));
  }

  /** Returns the token's bytes as hex pairs, at most `most` of them. */
  hex(id, most = Infinity) {
    return Array.from(this.bytes(id).subarray(0, most), hex).join(" ");
  }

  /** The scripts: `names`, and for each token the index of its script's name. Computed once. */
  get scripts() {
    if (this.#scripts === undefined) {
      const names = [];
      const numbers = new Map();
      const of = new Uint8Array(this.size);
      for (let id = 0; id < this.size; id += 1) {
        const name = this.isSpecial(id) ? "Special" : scriptOf(this.bytes(id));
        let number = numbers.get(name);
        if (number === undefined) {
          number = names.length;
          numbers.set(name, number);
          names.push(name);
        }
        of[id] = number;
      }
      this.#scripts = { names, of };
    }
    return this.#scripts;
  }

  /** Returns the number of a token's own colour. */
  hue(id) {
    return (Math.imul(id, 0x9e3779b1) >>> 0) % HUES;
  }
}
