// Which message each part of a prompt comes from.
//
// A rendering says which bytes are the template's own, and its input says which texts count as such.
// So the fields of the messages are numbered, and for each binary digit of the numbers there are two
// renderings: in one, the fields with this digit count as the template's own, in the other one, the
// fields without it. A byte is the template's if all renderings say so. It is from a field if exactly
// one rendering of each pair says so. Otherwise its origin is unknown: what a template makes of several
// texts, of numbers, JSON, tools and variables.
import { keyOf, sizeOf } from "./values.js";

const MOST_FIELDS = 4096; // 24 renderings
const TEMPLATE = { from: "template" };
const UNKNOWN = { from: "unknown" };

/** The parts of a prompt in order. `render`: a function from what counts as the template's own, the
 * fields of each message, to a prompt. */
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

/** The message and the name of each field whose texts can be followed. */
function fieldsOf({ messages, continue_final_message: final }, dialect) {
  // transformers changes the text of a message that is continued.
  const followed = final && dialect === "transformers" ? messages.slice(0, -1) : messages;
  return followed
    .flatMap((message, i) => Object.keys(message).map((field) => [i, field]))
    .slice(0, MOST_FIELDS);
}

/** The parts of a text whose bytes have the same origin; a position is in UTF-16 units. */
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
