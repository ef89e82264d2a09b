// Images, audio and video in messages, as llama-server and its library mtmd treat them: a marker in
// the prompt stands for each part, and the texts between the markers are tokenized separately.
import { VocabError } from "../errors.js";
import { isObject, refuse, sizeOf, wellFormed } from "./values.js";

const MARKER = "<__media__>"; // the default in mtmd
export const KINDS = ["image_url", "input_audio", "input_video", "video_url"];
// Part types that templates for transformers know.
const TRANSFORMERS = [...KINDS, "image", "audio", "audio_url", "video"];
const SHOWN = 80; // the most UTF-16 units of a marker that an error shows

/** Stands for a part that isn't text in the list of a message's parts, which otherwise are
 * strings. */
export class Marker {
  constructor(text) {
    this.text = text;
  }
}

/** Returns the marker that a caller chose, or the default for null. */
export function markerOf(given) {
  if (given === null) return MARKER;
  if (typeof given !== "string") throw refuse("mediaMarker must be a string");
  if (!given) throw refuse("mediaMarker must not be empty");
  return wellFormed(given, "mediaMarker");
}

/** Counts the message parts that aren't text. */
export function countParts(messages, dialect) {
  const types = dialect === "transformers" ? TRANSFORMERS : KINDS;
  let n = 0;
  for (const { content } of messages) {
    if (!Array.isArray(content)) continue;
    n += content.filter((part) => isObject(part) && types.includes(part.type)).length;
  }
  return n;
}

/** Returns the non-empty texts around the markers, each with the ranges that are the template's
 * own. Throws unless there are exactly `nParts` markers. */
export function around({ text, ranges }, marker, nParts) {
  const texts = text.split(marker);
  if (texts.length - 1 !== nParts) {
    const shown = JSON.stringify(marker.slice(0, SHOWN));
    throw refuse(
      `the prompt has ${number(texts.length - 1, "media marker")} (${shown}) ` +
        `for ${number(nParts, "image, audio or video part")}, which llama-server refuses: ` +
        "the template drops or repeats some, or a text contains the marker " +
        "(mediaMarker chooses another)",
    );
  }
  const size = sizeOf(marker);
  const found = [];
  let begin = 0;
  let first = 0; // the first range that ends after `begin`
  for (const text of texts) {
    const end = begin + sizeOf(text);
    while (first < ranges.length && ranges[first][1] <= begin) first++;
    const inside = [];
    for (let i = first; i < ranges.length && ranges[i][0] < end; i++) {
      inside.push([Math.max(ranges[i][0], begin) - begin, Math.min(ranges[i][1], end) - begin]);
    }
    if (text) found.push({ text, ranges: inside });
    begin = end + size;
  }
  return found;
}

function number(n, what) {
  return `${n} ${what}${n === 1 ? "" : "s"}`;
}

/** Returns BOS or EOS as a list of one id, empty if encoding doesn't add it. */
export function added(info, name) {
  if (!info[name === "bos" ? "addBos" : "addEos"]) return [];
  const id = info.special[name];
  if (id !== null) return [id];
  const what = name.toUpperCase();
  throw new VocabError("vocab", `the vocabulary adds ${what} to texts, but has no such token`);
}
