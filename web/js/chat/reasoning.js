// Finds the tags around reasoning by comparing renderings, as llama-server does for templates
// without a handler. Two renderings that differ in one thing are split into markers (<...>, [...])
// and text; the segments that they don't share contain the tags.
import { fits } from "./handlers.js";
import { SPACES, strip } from "./messages.js";
import { nShared, nSharedEnd } from "./prompt.js";
import { json } from "./values.js";

const SPACE = `[${SPACES}]*`;
const MARKER = "(?:<[^>]*>|\\[[^\\]]*\\])";

const USER = { role: "user", content: "U_USER_MSG Hello END_U" };
const THOUGHT = "REASON_PART I am thinking END_R";
const SAID = { role: "assistant", content: "A_ASST_MSG I can help END_A" };
const REASONED = { ...SAID, reasoning_content: THOUGHT };
const FIRST = "AA_ARG_FST_AA";
const SECOND = "BB_ARG_SND_BB";
const SCHEMA = {
  type: "object",
  properties: {
    [FIRST]: { type: "string", description: "First argument" },
    [SECOND]: { type: "string", description: "Second argument" },
  },
  required: [],
};
const TOOLS = [
  ["FFF_FIRST_FUN_F", "Test function foo"],
  ["SSS_SECOND_FUN_S", "Test function bar"],
].map(([name, description]) => ({
  type: "function",
  function: { name, description, parameters: SCHEMA },
}));

function call(first, second) {
  const given = { [FIRST]: first, [SECOND]: second };
  const called = { name: "FFF_FIRST_FUN_F", arguments: given };
  return [{ id: "call00001", type: "function", function: called }];
}

const CALLED = { role: "assistant", content: "", tool_calls: call("XXXX", "YYYY") };
const REASONED_CALL = {
  role: "assistant",
  content: null,
  reasoning_content: THOUGHT,
  tool_calls: call("VVVV", "XXXX"),
};
const NAMED = new RegExp(`[{:][${SPACES}]*"FFF_FIRST_FUN_F"`); // a function's name in JSON
const ENDED = new RegExp(`${THOUGHT}${SPACE}(?<post>(?:${MARKER}${SPACE})?)`);
const ANCHOR = 64; // bytes at the end of one rendering to search for in the other

// Templates whose tags can't be detected: texts that the source has, texts that it lacks, whether
// the row applies only if nothing was found, and the tags.
const KNOWN = [
  [
    ["content.split('</think>')"],
    ["reasoning_content", "<SPECIAL_12>"],
    true,
    "<think>",
    "</think>",
  ],
  [
    [
      "Write your thoughts between <think></think> and write your response between " +
        "<response></response>",
    ],
    [],
    false,
    "<think>",
    "</think>",
  ],
  [
    ["<SPECIAL_10>", "<SPECIAL_11>", "<SPECIAL_12>", "<TOOL_RESPONSE>"],
    [],
    false,
    "<think>\n",
    "</think>",
  ],
];

/** Returns the texts before and after reasoning, including white space; "" for none. `render` takes
 * messages, tools, add_generation_prompt and enable_thinking, and returns null if it fails. */
export function find(render, source, toolCalls) {
  const tags = { start: "", end: "", found: false, unreadable: "" };
  byPresence(render, tags);
  byThinking(render, tags);
  if (toolCalls) {
    byScope(render, tags);
    tags.unreadable = faultOfCalls(render, tags);
  }
  for (const [present, absent, onlyUnfound, start, end] of KNOWN) {
    if (fits(source, present, absent) && !(onlyUnfound && tags.found)) {
      Object.assign(tags, { start, end, found: true });
    }
  }
  if (source.includes("laguna_glm_thinking")) {
    tags.start = strip(tags.start);
    tags.end = strip(tags.end);
  }
  return tags;
}

/** Compares an answer with reasoning and an answer without. */
function byPresence(render, tags) {
  const without = render([USER, SAID], null, false, true);
  const withIt = render([USER, REASONED], null, false, true);
  if (without === null || withIt === null) return;
  const [, right] = difference(without, withIt);
  if (!right.includes(THOUGHT)) return;
  const found = wrapped(withIt, true);
  if (found) {
    [tags.start, tags.end] = found;
    tags.found = true;
    return;
  }
  const post = ENDED.exec(withIt)?.groups.post;
  if (post) {
    tags.end = post;
    tags.found = true;
  }
}

/** Compares the generation prompts with thinking turned off and on. */
function byThinking(render, tags) {
  const off = render([USER], null, true, false);
  const on = render([USER], null, true, true);
  if (off === null || on === null) return;
  const [left, right] = difference(off, on);
  const leftText = strip(left);
  const rightText = strip(right);
  if (!leftText && right) {
    if (rightText && on.endsWith(rightText) && !tags.start) {
      tags.start = right;
      tags.found = true;
    }
  } else if (!rightText && left) {
    if (leftText && off.endsWith(leftText) && !tags.end) {
      const [before, last] = notBlank(segments(off)).slice(-2);
      if (last && last[1] === leftText && before[0]) tags.start = before[1];
      tags.end = left;
      tags.found = true;
    }
  } else if (leftText && rightText) {
    byTail(off, on, tags);
  }
}

/** Handles renderings that each have text the other lacks: looks in each for the last bytes of the
 * other, followed by exactly two markers, which are the tags. */
function byTail(off, on, tags) {
  for (const [base, longer] of [[on, off], [off, on]]) {
    const whole = binary(longer);
    const anchor = binary(base).slice(-ANCHOR);
    const at = whole.lastIndexOf(anchor);
    if (at < 0) continue;
    const pieces = notBlank(segments(strip(fromBinary(whole.slice(at + anchor.length)))));
    if (pieces.length === 2 && pieces[0][0] && pieces[1][0]) {
      tags.start ||= pieces[0][1];
      tags.end ||= pieces[1][1];
      tags.found = true;
      return;
    }
  }
}

/** Returns a string with one unit for each byte of the text's UTF-8. */
function binary(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => String.fromCharCode(byte)).join("");
}

function fromBinary(bytes) {
  const data = Uint8Array.from(bytes, (unit) => unit.charCodeAt(0));
  return new TextDecoder("utf-8", { ignoreBOM: true }).decode(data);
}

/** Finds reasoning that is written only together with calls. */
function byScope(render, tags) {
  const said = render([USER, REASONED], TOOLS, false, true);
  const called = render([USER, REASONED_CALL], TOOLS, false, true);
  if (said === null || called === null) return;
  if (said.includes(THOUGHT) || !called.includes(THOUGHT)) return;
  tags.found = true;
  const found = wrapped(called, false);
  if (found) [tags.start, tags.end] = found;
  else tags.end = ENDED.exec(called)?.groups.post ?? tags.end;
}

/** Returns the error that the server reports when it parses the JSON of a call, or "". */
function faultOfCalls(render, tags) {
  const said = render([USER, SAID], TOOLS, false, true);
  const called = render([USER, CALLED], TOOLS, false, true);
  if (said === null || called === null) return "";
  let [, text] = difference(said, called);
  if (!NAMED.test(text)) return "";
  for (const tag of [tags.start, tags.end]) {
    const at = text.indexOf(tag);
    if (at >= 0) text = text.slice(0, at) + text.slice(at + tag.length);
  }
  const begin = text.indexOf("{");
  try {
    json(begin >= 0 ? text.slice(begin, text.lastIndexOf("}") + 1) : "", "the call");
  } catch (error) {
    return error.message;
  }
  return "";
}

/**
 * Returns the markers directly before and after the reasoning, with only white space in between.
 * `withSpace`: the second result includes the white space before the marker.
 */
function wrapped(text, withSpace) {
  let first = text.length;
  let found = null;
  for (let at = text.indexOf(THOUGHT); at >= 0; at = text.indexOf(THOUGHT, at + 1)) {
    const end = at + THOUGHT.length;
    const begin = opened(text, skipped(text, at, -1));
    const after = skipped(text, end, 1);
    const closing = CLOSING[text[after]];
    if (begin < 0 || begin >= first || !closing || text.lastIndexOf(closing) <= after) continue;
    const closed = text.indexOf(closing, after) + 1;
    const post = text.slice(withSpace ? end : after, skipped(text, closed, 1));
    first = begin;
    found = [text.slice(begin, at), post];
  }
  return found;
}

/** Returns the position after skipping white space forward (step 1) or backward (step -1). */
function skipped(text, at, step) {
  const isSpace = (i) => i >= 0 && i < text.length && " \t\n\v\f\r".includes(text[i]);
  while (isSpace(step > 0 ? at : at - 1)) at += step;
  return at;
}

/** Returns the start of the marker that ends at `end`, or -1 if there is none. */
function opened(text, end) {
  for (const [opening, closing] of Object.entries(CLOSING)) {
    if (end < 1 || text[end - 1] !== closing) continue;
    const from = end >= 2 ? text.lastIndexOf(closing, end - 2) + 1 : 0;
    const at = text.indexOf(opening, from);
    return at < end ? at : -1;
  }
  return -1;
}

// ---- differences ----

const CLOSING = { "<": ">", "[": "]" };

/** Splits a text into markers and the text between them: [is a marker, text]. Everything after an
 * unclosed bracket is text. */
function segments(text) {
  const found = [];
  const opening = /[<[]/g;
  let at = 0;
  for (;;) {
    opening.lastIndex = at;
    const match = opening.exec(text);
    if (!match) break;
    const begin = match.index;
    if (begin > at) found.push([false, text.slice(at, begin)]);
    at = begin;
    const end = text.indexOf(CLOSING[match[0]], begin) + 1;
    if (!end) break;
    found.push([true, text.slice(begin, end)]);
    at = end;
  }
  if (at < text.length) found.push([false, text.slice(at)]);
  return found;
}

function notBlank(pieces) {
  return pieces.filter(([, text]) => strip(text));
}

/**
 * Returns what remains of the left and right text without their common prefix and suffix.
 *
 * Whole segments are removed from both ends first, then characters of text segments. The order of
 * the steps is the server's. It looks odd in places, but decides what happens to segments that are
 * equal at both ends.
 */
function difference(left, right) {
  const a = segments(left);
  const b = segments(right);
  if (!a.length || !b.length) return [left, right];
  const same = (x, y) => x[0] === y[0] && x[1] === y[1];
  // The first and last remaining segment of each side, and whether the last one is removed, too.
  let [i, j, m, n] = [0, 0, a.length - 1, b.length - 1];
  let [aUsed, bUsed] = [false, false];
  while (i !== m && j !== n) {
    const sameHead = same(a[i], b[j]);
    if (sameHead) {
      i++;
      j++;
    }
    const sameTail = same(a[m], b[n]);
    if (sameTail) {
      if (i !== m) m--;
      else aUsed = true;
      if (j !== n) n--;
      else bUsed = true;
    }
    if (!(sameHead || sameTail)) break;
  }
  if (i === m && j !== n) {
    if (same(a[i], b[n])) {
      n--;
      aUsed = true;
    } else if (same(a[i], b[j])) {
      j++;
      aUsed = true;
    }
  } else if (j === n && i !== m) {
    if (same(a[m], b[j])) {
      m--;
      bUsed = true;
    } else if (same(a[i], b[j])) {
      i++;
      bUsed = true;
    }
  } else if (i === m && j === n && same(a[i], b[j]) && a[i][0]) {
    aUsed = bUsed = true;
  }
  const textsAtHead = !a[i][0] && !b[j][0];
  const textsAtTail = !a[m][0] && !b[n][0];
  const rest = (all, from, to) => all.slice(from, to).map(([, text]) => text).join("");
  let aRest = rest(a, i, m + (aUsed ? 0 : 1));
  let bRest = rest(b, j, n + (bUsed ? 0 : 1));
  if (textsAtTail) {
    const k = nSharedEnd(aRest, bRest);
    aRest = aRest.slice(0, aRest.length - k);
    bRest = bRest.slice(0, bRest.length - k);
  }
  if (textsAtHead) {
    const k = nShared(aRest, bRest);
    aRest = aRest.slice(k);
    bRest = bRest.slice(k);
  }
  if (!aRest && bRest && right.startsWith(left)) bRest = right.slice(left.length);
  return [aRest, bRest];
}
