// Opens models. Each model has a worker that holds its tokenizer.

import { spaceIn } from "./stored.js";
import { NORMAL, VocabularyTable } from "./vocabulary-table.js";
import { strings } from "./strings.js";
import { WorkerTokenizer } from "../js/index.js";

// page.html embeds the module and the worker's script as data blocks.
const text = (id) => document.getElementById(id).textContent;

let module; // promise of the compiled module

function compiledModule() {
  module ??= unpacked(text("ggtok-wasm")).then((bytes) => WebAssembly.compile(bytes));
  return module;
}

function startWorker() {
  const url = URL.createObjectURL(new Blob([text("ggtok-worker")], { type: "text/javascript" }));
  const worker = new Worker(url);
  worker.addEventListener("message", () => URL.revokeObjectURL(url), { once: true });
  return worker;
}

const BUDGET = 10_000; // milliseconds: the default time limit of a call
// Codes of errors that end a tokenizer.
const FATAL = new Set(["time", "crash", "stack", "worker"]);
const OTHERS = ["constructor", "free", "streamDecoder", "streamEncoder"];
const METHODS = Object.getOwnPropertyNames(WorkerTokenizer.prototype).filter((name) => !OTHERS.includes(name));

let last = 0;

/**
 * An open model:
 *   id       a number, unique in the page
 *   name     what the page calls it
 *   link     its name in links: an address, or the name of an offered model; "" for files
 *   source   a File, a URL or bytes
 *   tok      the methods of the worker's tokenizer, which is reloaded after a call that ended it
 *   info     its facts (type, pre, tokens, special ids, flags, context length)
 *   vocab    its VocabularyTable
 *   offered  the entry of models.json that it comes from, if any
 */
export class Model {
  #loaded; // promise of the tokenizer; undefined after a failed reload
  #space; // the character that the file stores for a space; undefined until it is known

  constructor(tok, vocab, { name, link = "", source, offered }) {
    this.id = last += 1;
    this.#loaded = Promise.resolve(tok);
    this.tok = Object.fromEntries(METHODS.map((method) => [method, (...args) => this.#call(method, args)]));
    this.info = tok.info;
    this.vocab = vocab;
    this.name = name;
    this.link = link;
    this.source = source;
    this.offered = offered;
  }

  async #call(method, args) {
    const loaded = (this.#loaded ??= this.#load());
    const tok = await loaded;
    try {
      return await tok[method](...args);
    } catch (error) {
      if (FATAL.has(error.code) && loaded === this.#loaded) {
        tok.free();
        this.#loaded = this.#load();
      }
      throw error;
    }
  }

  #load() {
    const loading = load(this.source);
    loading.catch(() => (this.#loaded = undefined));
    return loading;
  }

  close() {
    this.#loaded?.then((tok) => tok.free(), () => {});
  }

  /** Returns the character that the file stores for a space at a token's beginning, or "". */
  async storedSpace() {
    if (this.#space === undefined) {
      const { vocab } = this;
      let id = 0;
      while (id < vocab.size && (vocab.types[id] !== NORMAL || vocab.bytes(id)[0] !== 0x20)) id += 1;
      this.#space = id < vocab.size ? spaceIn(await this.tok.token(id)) : "";
    }
    return this.#space;
  }

  /** Returns the options that encode a text without added tokens and, if the vocabulary supports
   * it, without a space prefix. */
  async alone() {
    try {
      await this.tok.count("a", { addSpecial: false, continuation: true });
      return { addSpecial: false, continuation: true };
    } catch (error) {
      if (error.code !== "unsupported" && error.code !== "argument") throw error;
      return { addSpecial: false };
    }
  }
}

async function load(source) {
  return WorkerTokenizer.load(source, { wasm: await compiledModule(), worker: startWorker, budget: offeredModels().budget });
}

export async function open(source, facts) {
  const tok = await load(source);
  try {
    return new Model(tok, new VocabularyTable(await tok.pieces()), { ...facts, source });
  } catch (error) {
    tok.free();
    throw error;
  }
}

/** Opens one of the models that the page offers. */
export async function openOffered(offered) {
  const facts = { name: offered.name, link: offered.name, offered };
  if (offered.data !== undefined) return open(await unpacked(offered.data), facts);
  const url = new URL(offered.url, document.baseURI);
  return open(offered.whole ? await fetched(url) : url, facts);
}

/** Fetches a whole file in one request, whose answer may be compressed and cached. */
async function fetched(url) {
  const response = await fetch(url);
  if (!response.ok) throw new Error(strings.error.status(url, response.status));
  return response.arrayBuffer();
}

/** Returns why a server's file can't be read. Browsers don't tell a page, so this asks the server
 * for an answer that the page can't read. */
export async function networkReason(url) {
  const t = strings.error;
  if (!navigator.onLine) return t.offline;
  if (location.protocol === "https:" && url.protocol === "http:") return t.insecure;
  try {
    await fetch(url, { method: "HEAD", mode: "no-cors", signal: AbortSignal.timeout(5000) });
    return t.forbidden(url.host);
  } catch {
    return t.unreachable(url.host);
  }
}

/** Decodes base64 text and decompresses it with gzip. */
async function unpacked(base64) {
  const packed = Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).arrayBuffer();
}

/** Returns what `ggtok view` or a site wrote into the page: the models, the server's address, and
 * the time limit of a tokenizer's call, in milliseconds. */
export function offeredModels() {
  const block = document.getElementById("ggtok-models");
  try {
    const { models = [], server, budget = BUDGET, writer } = JSON.parse(block?.textContent ?? "{}");
    return { models, server, budget, writer };
  } catch {
    return { models: [], budget: BUDGET };
  }
}

/** Returns the message that tells the user about an error. */
export function messageOf(error) {
  if (error?.code === "time") return strings.error.budget;
  return error?.message ?? String(error);
}
