// A rendered prompt: its text, and which parts of it the template wrote.
import { joined, sizeOf } from "./values.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

export class Prompt {
  /** `ranges` are the ranges of the template's own text, in bytes, ascending. */
  constructor(text, ranges) {
    this.text = text;
    this.ranges = ranges;
  }

  /** Returns the prompt's first `at` UTF-16 units. */
  cut(at) {
    const text = this.text.slice(0, at);
    return new Prompt(text, within(this.ranges, 0, sizeOf(text)));
  }

  /** Returns the prompt without the first `at` UTF-16 units. */
  rest(at) {
    const begin = sizeOf(this.text.slice(0, at));
    return new Prompt(this.text.slice(at), within(this.ranges, begin, Infinity));
  }

  followedBy(pieces) {
    const { text, ranges } = joined(pieces);
    return this.with(new Prompt(text, ranges));
  }

  with(other) {
    const at = sizeOf(this.text);
    const ranges = this.ranges.map((range) => [...range]);
    for (const [begin, end] of other.ranges) {
      const last = ranges.at(-1);
      if (last?.[1] === begin + at) last[1] = end + at;
      else ranges.push([begin + at, end + at]);
    }
    return new Prompt(this.text + other.text, ranges);
  }

  withoutEnds(bos, eos) {
    let prompt = this;
    if (bos && prompt.text.startsWith(bos) && this.covers(0, sizeOf(bos))) {
      prompt = prompt.rest(bos.length);
    }
    const end = sizeOf(this.text);
    if (eos && prompt.text.endsWith(eos) && this.covers(end - sizeOf(eos), end)) {
      prompt = prompt.cut(prompt.text.length - eos.length);
    }
    return prompt;
  }

  /** Returns `begin` as a list of one piece if the prompt ends with `end`, else an empty list. */
  turn(end, begin) {
    if (!begin || !this.text.endsWith(end)) return [];
    const size = sizeOf(this.text);
    return [[begin, this.covers(size - sizeOf(end), size)]];
  }

  /** Whether these bytes are the template's own. */
  covers(begin, end) {
    return begin === end || this.ranges.some(([b, e]) => b <= begin && end <= e);
  }

  /** Returns the text after the common prefix with another prompt, in pieces. */
  after(other) {
    return this.rest(nShared(this.text, other.text)).pieces();
  }

  /** Returns the text as pieces [text, isOwn]; isOwn: whether the text is the template's own. */
  pieces() {
    const data = encoder.encode(this.text);
    const text = (begin, end) => decoder.decode(data.subarray(begin, end));
    const pieces = [];
    let at = 0;
    for (const [begin, end] of this.ranges) {
      pieces.push([text(at, begin), false], [text(begin, end), true]);
      at = end;
    }
    pieces.push([text(at, data.length), false]);
    return pieces.filter(([piece]) => piece);
  }

  /** Returns the prompt with the last occurrence of `old` replaced by `text`. */
  withLast(old, text) {
    const at = this.text.lastIndexOf(old);
    if (at < 0) return this;
    const begin = sizeOf(this.text.slice(0, at));
    const isOwn = this.covers(begin, begin + sizeOf(old));
    const middle = new Prompt(text, isOwn ? [[0, sizeOf(text)]] : []);
    return this.cut(at).with(middle).with(this.rest(at + old.length));
  }
}

/** Returns the parts of the ranges that are in [begin, end), relative to begin. */
function within(ranges, begin, end) {
  return ranges
    .filter(([b, e]) => b < end && e > begin)
    .map(([b, e]) => [Math.max(b, begin) - begin, Math.min(e, end) - begin]);
}

/** Returns the length of the common prefix, which never splits a surrogate pair. */
export function nShared(a, b) {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a[n] === b[n]) n++;
  return n > 0 && isHigh(a, n - 1) && (n < a.length || n < b.length) ? n - 1 : n;
}

/** Returns the length of the common suffix, which never splits a surrogate pair. */
export function nSharedEnd(a, b) {
  const most = Math.min(a.length, b.length);
  let n = 0;
  while (n < most && a[a.length - 1 - n] === b[b.length - 1 - n]) n++;
  return n > 0 && isLow(a, a.length - n) ? n - 1 : n;
}

function isHigh(text, at) {
  return (text.charCodeAt(at) & 0xfc00) === 0xd800;
}

function isLow(text, at) {
  return (text.charCodeAt(at) & 0xfc00) === 0xdc00;
}
