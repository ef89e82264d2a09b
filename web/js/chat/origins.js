// Finds which message each part of a prompt comes from.
//
// The input of a rendering can mark texts as the template's own, and its output says which bytes of
// the prompt are the template's own. So each field of the messages gets a number, and each binary
// digit of the numbers takes two renderings: one marks the fields whose digit is 0, the other marks
// the fields whose digit is 1. A byte that is the template's own in all renderings is from the
// template. If it is in exactly one rendering of each pair, the digits spell the number of its
// field. Otherwise its origin is unknown: the template computed it from several texts, or from
// numbers, JSON, tools or variables.
import { keyOf, sizeOf } from "./values.js";

const MOST_FIELDS = 4096; // numbers with 12 binary digits: 24 renderings
const TEMPLATE = { from: "template" };
const UNKNOWN = { from: "unknown" };

/** Returns the parts of a prompt in order. `render` takes, for each message, the set of fields to
 * mark as the template's own, and returns a prompt. */
export function originsOf(prompt, body, dialect, render) {
  const { text } = prompt;
  const fields = fieldsOf(body, dialect);
  const digits = Math.max(1, Math.ceil(Math.log2(fields.length)));
  const owned = [new Uint16Array(sizeOf(text)), new Uint16Array(sizeOf(text))];
  for (let digit = 0; digit < digits; digit++) {
    for (const [value, found] of owned.entries()) {
      const marks = body.messages.map(() => new Set());
      fields.forEach(([i, field], number) => {
        if (((number >> digit) & 1) === value) marks[i].add(field);
      });
      const marked = render(marks);
      if (marked.text !== text) return partsOf(text, () => UNKNOWN);
      for (const [begin, end] of marked.ranges) {
        for (let at = begin; at < end; at++) found[at] |= 1 << digit;
      }
    }
  }
  const all = (1 << digits) - 1;
  const names = fields.map(([message, key]) => ({ from: "message", message, field: keyOf(key) }));
  const [zeros, ones] = owned;
  return partsOf(text, (at) => {
    if (zeros[at] === all && ones[at] === all) return TEMPLATE;
    return ((zeros[at] ^ ones[at]) === all && names[ones[at]]) || UNKNOWN;
  });
}

/** Returns [message index, field name] for each field whose text can be followed. */
function fieldsOf({ messages, continue_final_message: final }, dialect) {
  // transformers changes the text of a message that is continued.
  const followed = final && dialect === "transformers" ? messages.slice(0, -1) : messages;
  return followed
    .flatMap((message, i) => Object.keys(message).map((field) => [i, field]))
    .slice(0, MOST_FIELDS);
}

/** Divides a text into parts whose bytes have the same origin; their positions are in UTF-16
 * units. */
function partsOf(text, originAt) {
  const parts = [];
  let last;
  let [bytes, units] = [0, 0];
  for (const character of text) {
    const end = bytes + sizeOf(character);
    let origin = originAt(bytes);
    while (++bytes < end) if (originAt(bytes) !== origin) origin = UNKNOWN;
    if (origin !== last) parts.push({ start: units, end: units, ...origin });
    last = origin;
    units += character.length;
    parts.at(-1).end = units;
  }
  return parts;
}
