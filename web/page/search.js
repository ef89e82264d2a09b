// Searches a vocabulary.

import { strings } from "./strings.js";

const t = strings.vocabulary;
const MOST_RANGES = 1000;

/** Returns a Uint8Array with 1 for each id that matches the query, or undefined for an empty
 * query. */
export async function search(vocab, mode, query, matchCase) {
  if (query === "") return undefined;
  switch (mode) {
    case "id":
      return byId(vocab, query);
    case "bytes":
      return byBytes(vocab, bytesOf(query));
    case "regex":
      return byPattern(vocab, query, matchCase);
    default:
      return matchCase ? byBytes(vocab, new TextEncoder().encode(query)) : byText(vocab, query);
  }
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

function byBytes(vocab, wanted) {
  const found = new Uint8Array(vocab.size);
  if (wanted.length === 0) return found.fill(1);
  const { data, offsets } = vocab;
  let id = 0;
  for (let at = data.indexOf(wanted[0]); at >= 0; at = data.indexOf(wanted[0], at + 1)) {
    let k = 1;
    while (k < wanted.length && data[at + k] === wanted[k]) k += 1;
    if (k < wanted.length) continue;
    while (offsets[id + 1] <= at) id += 1;
    if (at + wanted.length <= offsets[id + 1]) found[id] = 1;
  }
  return found;
}

const folded = new WeakMap();

function byText(vocab, query) {
  if (!folded.has(vocab)) folded.set(vocab, Array.from({ length: vocab.size }, (_, id) => vocab.text(id).toLowerCase()));
  const wanted = query.toLowerCase();
  return Uint8Array.from(folded.get(vocab), (text) => (text.includes(wanted) ? 1 : 0));
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

function byPattern(vocab, source, matchCase) {
  const flags = matchCase ? "u" : "iu";
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
