// Searches a vocabulary.

import { bytesOfStored } from "./stored.js";
import { strings } from "./strings.js";

const t = strings.vocabulary;
const MOST_RANGES = 1000;

/** Returns a Uint8Array with 1 for each id that matches the query, or undefined for an empty
 * query. `matchCase` is for texts: the other modes always heed case. */
export async function search(model, mode, query, matchCase) {
  const { vocab } = model;
  if (query === "") return undefined;
  switch (mode) {
    case "id":
      return byId(vocab, query);
    case "bytes":
      return byBytes(vocab, bytesOf(query));
    case "regex":
      return byPattern(vocab, query);
    default:
      return byText(model, query, matchCase);
  }
}

const utf8 = new TextEncoder();

/** Finds the pieces that contain a text; if none does, those that contain the text for which the
 * query is the stored form. */
async function byText(model, query, matchCase) {
  const { vocab } = model;
  const find = (bytes) => (matchCase ? byBytes(vocab, bytes) : byBytes(foldedOf(vocab), lowered(bytes)));
  const found = find(utf8.encode(query));
  if (found.includes(1)) return found;
  const bytes = bytesOfStored(query, await model.storedSpace());
  return bytes ? find(bytes) : found;
}

function byId(vocab, query) {
  const found = new Uint8Array(vocab.size);
  const words = query.split(/[\s,;]+/).filter(Boolean).slice(0, MOST_RANGES);
  for (const word of words) {
    const range = /^(\d+)(?:-(\d*))?$/.exec(word);
    if (!range) throw new Error(t.badIds);
    const from = Number(range[1]);
    const to = range[2] === undefined ? from : range[2] === "" ? vocab.size - 1 : Number(range[2]);
    found.fill(1, Math.min(from, vocab.size), Math.min(to + 1, vocab.size));
  }
  return found;
}

function bytesOf(query) {
  const digits = query.replace(/0x|[\s,\\x]/gi, "");
  if (digits.length % 2 || !/^[0-9a-f]*$/i.test(digits)) throw new Error(t.badBytes);
  return Uint8Array.from(digits.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));
}

/** Finds the pieces that contain the wanted bytes, with Knuth, Morris and Pratt's algorithm: the
 * time is linear for any query and any pieces. */
function byBytes({ data, offsets }, wanted) {
  const found = new Uint8Array(offsets.length - 1);
  if (wanted.length === 0) return found.fill(1);
  const back = new Int32Array(wanted.length); // the longest proper prefix that ends at each byte
  for (let i = 1, k = 0; i < wanted.length; i += 1) {
    while (k > 0 && wanted[i] !== wanted[k]) k = back[k - 1];
    if (wanted[i] === wanted[k]) k += 1;
    back[i] = k;
  }
  for (let id = 0; id < found.length; id += 1) {
    const end = offsets[id + 1];
    for (let at = offsets[id], k = 0; at < end && !found[id]; at += 1) {
      while (k > 0 && data[at] !== wanted[k]) k = back[k - 1];
      if (data[at] === wanted[k]) k += 1;
      if (k === wanted.length) found[id] = 1;
    }
  }
  return found;
}

const folded = new WeakMap(); // for each vocabulary, its pieces in lower case: { data, offsets }

function foldedOf(vocab) {
  if (!folded.has(vocab)) folded.set(vocab, foldedPieces(vocab));
  return folded.get(vocab);
}

/** Returns bytes with their text in lower case, if they are UTF-8. */
function lowered(bytes) {
  try {
    return utf8.encode(new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(bytes).toLowerCase());
  } catch {
    return bytes;
  }
}

function foldedPieces(vocab) {
  const pieces = Array.from({ length: vocab.size }, (_, id) => utf8.encode(vocab.text(id).toLowerCase()));
  const offsets = new Float64Array(vocab.size + 1);
  pieces.forEach((piece, id) => (offsets[id + 1] = offsets[id] + piece.length));
  const data = new Uint8Array(offsets[vocab.size]);
  pieces.forEach((piece, id) => data.set(piece, offsets[id]));
  return { data, offsets };
}


// ---- regular expressions: they may take forever, so they run in a worker with a timeout ----

const BUDGET = 3000; // milliseconds for one search

const PROGRAM = `
onmessage = ({ data: { bytes, offsets, source, flags } }) => {
  const pattern = new RegExp(source, flags);
  const decoder = new TextDecoder();
  const found = new Uint8Array(offsets.length - 1);
  for (let id = 0; id < found.length; id += 1)
    found[id] = pattern.test(decoder.decode(bytes.subarray(offsets[id], offsets[id + 1]))) ? 1 : 0;
  postMessage(found, [found.buffer]);
};`;

function byPattern(vocab, source) {
  const flags = "u";
  try {
    new RegExp(source, flags);
  } catch (error) {
    throw new Error(t.badRegex(error.message.replace(/^Invalid regular expression: /, "")));
  }
  const url = URL.createObjectURL(new Blob([PROGRAM], { type: "text/javascript" }));
  const worker = new Worker(url);
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => reject(new Error(t.slowRegex)), BUDGET);
    worker.onmessage = ({ data }) => {
      clearTimeout(timer);
      resolve(data);
    };
    worker.onerror = (event) => reject(new Error(event.message));
    worker.postMessage({ bytes: vocab.data, offsets: vocab.offsets, source, flags });
  }).finally(() => {
    worker.terminate();
    URL.revokeObjectURL(url);
  });
}
