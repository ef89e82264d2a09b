// Encodes a text that grows.
import { asBytes } from "./engine.js";
import { refuse } from "./options.js";

const HIGH = /[\ud800-\udbff]$/; // the first half of a character's surrogate pair

/**
 * Returns a stream encoder. `encodeBlock(bytes, { isFirst, isLast })` returns the ids of a block and
 * the number of bytes that they cover, or a promise of both; calls must then wait for each other.
 */
export function encoderOver(encodeBlock) {
  const encoder = new TextEncoder();
  let rest = []; // the bytes whose ids aren't final, in parts
  let size = 0;
  let enough = 0; // the size from which the rest is searched for a cut
  let high = ""; // a high surrogate at the end of the text, or ""
  let isFirst = true;
  let finals = 0; // the number of ids that were returned
  let isFinished = false;

  /** Returns a text's bytes, and the high surrogate at its end. */
  function read(text) {
    if (typeof text !== "string") return [joined([encoder.encode(high), asBytes(text)]), ""];
    const whole = high + text;
    const [last = ""] = HIGH.exec(whole) ?? [];
    return [encoder.encode(whole.slice(0, whole.length - last.length)), last];
  }

  function feed(text) {
    if (isFinished) throw refuse("the text is finished: call streamEncoder() for another");
    const [bytes, last] = read(text);
    if (size + bytes.length < enough) {
      rest.push(bytes);
      size += bytes.length;
      high = last;
      return new Int32Array(0);
    }
    const whole = joined([...rest, bytes]);
    return after(encodeBlock(whole, { isFirst, isLast: false }), ({ ids, used }) => {
      rest = [whole.subarray(used)];
      size = whole.length - used;
      enough = used ? 0 : 2 * size;
      high = last;
      isFirst &&= !used;
      finals += ids.length;
      return ids;
    });
  }

  function pending() {
    if (isFinished) return new Int32Array(0);
    const whole = joined([...rest, encoder.encode(high)]);
    return after(encodeBlock(whole, { isFirst, isLast: true }), ({ ids }) => ids);
  }

  return {
    feed,
    pending,
    count: () => after(pending(), (ids) => finals + ids.length),
    finish: () =>
      after(pending(), (ids) => {
        isFinished = true;
        finals += ids.length;
        return ids;
      }),
  };
}

function after(result, use) {
  return result instanceof Promise ? result.then(use) : use(result);
}

function joined(parts) {
  const whole = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
