// Opening models: each has a worker with its tokenizer.

import { VocabularyTable } from "./vocabulary-table.js";
import { strings } from "./strings.js";
import { WorkerTokenizer } from "../js/index.js";

let last = 0;

/**
 * An open model:
 *   id       a number, unique in the page
 *   name     what the page calls it
 *   link     its name in links: an address, or the name of an offered model; "" for files
 *   source   a File, a URL or bytes
 *   tok      the worker's tokenizer
 *   info     its facts (type, pre, tokens, special ids, flags, context length)
 *   vocab    its VocabularyTable
 *   offered  the entry of models.json that it comes from, if any
 */
export class Model {
  constructor(tok, vocab, { name, link = "", source, offered }) {
    this.id = last += 1;
    this.tok = tok;
    this.info = tok.info;
    this.vocab = vocab;
    this.name = name;
    this.link = link;
    this.source = source;
    this.offered = offered;
  }

  close() {
    this.tok.close();
  }
}

export async function open(source, facts) {
  const tok = await WorkerTokenizer.load(source);
  try {
    return new Model(tok, new VocabularyTable(await tok.pieces()), { ...facts, source });
  } catch (error) {
    tok.close();
    throw error;
  }
}

/** Opens one of the models that the page offers. */
export async function openOffered(offered) {
  const facts = { name: offered.name, link: offered.name, offered };
  if (offered.data === undefined) return open(new URL(offered.url, document.baseURI), facts);
  return open(await unpacked(offered.data), facts);
}

/** The bytes of base64 text that gzip compressed. */
async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** The models that `ggtok view` or a site wrote into the page: `{ models, server }`. */
export function offeredModels() {
  const block = document.getElementById("ggtok-models");
  try {
    const { models = [], server } = JSON.parse(block?.textContent ?? "{}");
    return { models, server };
  } catch {
    return { models: [] };
  }
}

/** What an error of opening or tokenizing says to the user. */
export function messageOf(error) {
  if (error?.name === "TimeoutError" || error?.code === "timeout") return strings.error.budget;
  return error?.message ?? String(error);
}
