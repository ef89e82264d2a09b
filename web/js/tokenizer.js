// A loaded vocabulary, with the methods in index.d.ts.
import { Chats, ownRanges } from "./chat.js";
import * as engines from "./engine.js";
import { FormatError, GgtokError, VocabError } from "./errors.js";
import { entry } from "./metadata.js";
import { ENCODE, checkChoice, kindOf, readOptions, refuse } from "./options.js";
import { open } from "./sources.js";
import { encoderOver } from "./stream-encoder.js";
import { STREAM, streamOver } from "./stream.js";

const FIRST = 1 << 20; // bytes of the first read; each further read doubles the total
const ITEMS = 8; // array elements that metadata() returns by default

const VOCAB_TYPES = ["none", "spm", "bpe", "wpm", "ugm", "rwkv", "plamo2", "test", "plamo3"];
const SPECIALS = [
  "bos", "eos", "eot", "eom", "unk", "sep", "nl", "pad", "mask",
  "fim_pre", "fim_suf", "fim_mid", "fim_pad", "fim_rep", "fim_sep",
]; // prettier-ignore
const FLAGS = [
  "addBos", "addEos", "addSep", "addSpacePrefix", "ignoreMerges", "cleanSpaces",
  "removeExtraWhitespaces", "escapeWhitespaces", "lowercase", "stripAccents",
]; // prettier-ignore
const UNITS = ["byte", "char", "utf16"];

const TOKEN_TYPES = ["undefined", "normal", "unknown", "control", "user_defined", "unused", "byte"];
// For each token type, its bit in ggtok_attr.
const TYPE_BITS = [0, 4, 1, 8, 16, 2, 32];

const LOAD = { signal: undefined, onProgress: undefined, pre: null };
const ENCODE_BLOCK = { ...ENCODE, isFirst: true, isLast: false };
const ENCODE_SPANS = { ...ENCODE, unit: "byte" };
const DECODE = { removeSpecial: false, unparseSpecial: true, cleanSpaces: null };

// Flags for ggtok_encode.
const ADD_SPECIAL = 1;
const PARSE_SPECIAL = 2;
const NOT_FIRST_BLOCK = 8;
const CONTINUATION = 32;
const SPANS = 64;
// Flags for ggtok_decode.
const REMOVE_SPECIAL = 1;
const UNPARSE_SPECIAL = 2;
const KEEP_SPACES = 4;
const CLEAN_SPACES = 8;

export async function load(source, options) {
  const { signal, onProgress, pre } = readOptions(options, LOAD);
  if (pre != null && typeof pre !== "string") {
    throw refuse(`pre must be a string, not ${kindOf(pre)}`);
  }
  const reader = await open(source, signal);
  let engine, handle;
  try {
    engine = await engines.acquire();
    handle = engine.try("file_new");
    const bytesRead = await read(engine, handle, reader, signal, onProgress);
    const load = (at) => engine.try("file_load", handle, at);
    if (pre == null) load(0);
    else engine.withText(`${pre}\0`, load);
    return new Tokenizer(engine, handle, bytesRead);
  } catch (error) {
    if (handle && !engine.broken) engine.call("file_free", handle);
    if (engine) engines.release(engine);
    const isFaulty = error instanceof FormatError || error instanceof VocabError;
    if (isFaulty && reader.name) error.message = `${reader.name}: ${error.message}`;
    throw error;
  } finally {
    reader.close();
  }
}

/** Reads the file's metadata into the module's memory; returns how many bytes were read. */
async function read(engine, handle, reader, signal, onProgress) {
  let have = 0;
  let want = Math.min(FIRST, reader.size);
  for (;;) {
    signal?.throwIfAborted();
    const bytes = await reader.read(have, want);
    signal?.throwIfAborted();
    const ended = have + bytes.length < want;
    const at = engine.try("file_room", handle, have + bytes.length);
    new Uint8Array(engine.memory.buffer, at + have, bytes.length).set(bytes);
    have += bytes.length;
    onProgress?.({ bytesRead: have, size: Number.isFinite(reader.size) ? reader.size : null });
    engine.try("file_parse", handle, have, ended ? have : reader.size);
    if (engine.report.number === 0) return have;
    want = Math.min(2 * have, reader.size);
  }
}

export class Tokenizer {
  #engine;
  #handle;
  #chats;

  constructor(engine, handle, bytesRead) {
    this.#engine = engine;
    this.#handle = handle;
    this.info = this.#info(bytesRead);
  }

  // ---- text to ids ----

  encode(text, options) {
    return this.#encode(text, options, () => {
      const { data, n } = this.#engine.report;
      return this.#engine.int32(data, n);
    });
  }

  encodeBatch(texts, options) {
    const flags = encodeFlags(readOptions(options, ENCODE));
    if (!Array.isArray(texts)) throw refuse(`texts must be an array, not ${kindOf(texts)}`);
    const offsets = new Uint32Array(texts.length + 1);
    let ids = new Int32Array(2 * texts.length);
    texts.forEach((text, i) =>
      this.#encodeWith(text, flags, () => {
        const { data, n } = this.#engine.report;
        const end = offsets[i] + n;
        if (end > ids.length) {
          const larger = new Int32Array(2 * end);
          larger.set(ids);
          ids = larger;
        }
        ids.set(new Int32Array(this.#engine.memory.buffer, data, n), offsets[i]);
        offsets[i + 1] = end;
      }),
    );
    return { ids: ids.slice(0, offsets[texts.length]), offsets };
  }

  count(text, options) {
    return this.#encode(text, options, () => this.#engine.report.n);
  }

  spans(text, options) {
    const given = readOptions(options, ENCODE_SPANS);
    checkChoice("unit", given.unit, UNITS);
    const unit = UNITS.indexOf(given.unit);
    if (unit && typeof text !== "string") throw refuse('bytes have spans in unit "byte" only');
    return this.#encodeWith(text, encodeFlags(given) | SPANS, (at, size) => {
      const { data, n } = this.#engine.report;
      const ids = this.#engine.int32(data, n);
      this.#engine.try("spans", this.#handle, at, size, n, unit);
      const found = this.#engine.report.data;
      const starts = this.#engine.int32(found, n);
      const ends = this.#engine.int32(found + 4 * n, n);
      this.#engine.free(found);
      return { ids, starts, ends };
    });
  }

  encodeBlock(text, options) {
    const handle = this.#alive();
    const { isFirst, isLast, ...given } = readOptions(options, ENCODE_BLOCK);
    const flags = encodeFlags(given) | (isFirst ? 0 : NOT_FIRST_BLOCK);
    return this.#engine.withText(text, (at, size) => {
      this.#engine.try(isLast ? "encode" : "encode_block", handle, at, size, flags);
      const { data, n, number } = this.#engine.report;
      return { ids: this.#engine.int32(data, n), used: isLast ? size : number };
    });
  }

  streamEncoder(options) {
    const given = readOptions(options, ENCODE);
    return encoderOver((bytes, block) => this.encodeBlock(bytes, { ...given, ...block }));
  }

  trace(text, options) {
    const handle = this.#alive();
    const flags = encodeFlags(readOptions(options, ENCODE));
    return this.#engine.withText(text, (at, n) => {
      this.#engine.try("trace", handle, at, n, flags);
      return this.#steps();
    });
  }

  traceToken(id) {
    const handle = this.#alive();
    this.#engine.try("trace_token", handle, checkedId(id));
    return this.#steps();
  }

  /** Parses the module's JSON, which writes non-finite scores as strings. */
  #steps() {
    const { data, n } = this.#engine.report;
    const isScore = (key) => key === "score" || key === "total";
    return JSON.parse(this.#engine.string(data, n), (key, value) =>
      isScore(key) && value !== null ? Number(value) : value,
    );
  }

  #encode(text, options, use) {
    return this.#encodeWith(text, encodeFlags(readOptions(options, ENCODE)), use);
  }

  #encodeWith(text, flags, use) {
    const handle = this.#alive();
    return this.#engine.withText(text, (at, n) => {
      this.#engine.try("encode", handle, at, n, flags);
      return use(at, n);
    });
  }

  // ---- ids to text ----

  decode(ids, options) {
    return this.#decode(ids, options, (at, n) => this.#engine.string(at, n));
  }

  decodeBytes(ids, options) {
    return this.#decode(ids, options, (at, n) => this.#engine.bytes(at, n));
  }

  #decode(ids, options, use) {
    const handle = this.#alive();
    const { removeSpecial, unparseSpecial, cleanSpaces } = readOptions(options, DECODE);
    const flags =
      (removeSpecial ? REMOVE_SPECIAL : 0) |
      (unparseSpecial ? UNPARSE_SPECIAL : 0) |
      (cleanSpaces == null ? 0 : cleanSpaces ? CLEAN_SPACES : KEEP_SPACES);
    const list = idList(ids);
    return this.#engine.withNumbers(list, (at) => {
      this.#engine.try("decode", handle, at, list.length, flags);
      const { data, n } = this.#engine.report;
      return use(data, n);
    });
  }

  streamDecoder(options) {
    const { unparseSpecial } = readOptions(options, STREAM);
    return streamOver((ids) => this.decodeBytes(ids, { unparseSpecial, cleanSpaces: false }));
  }

  // ---- the vocabulary ----

  piece(id, options) {
    const { special } = readOptions(options, { special: true });
    return this.#of(id, "piece", ({ data, n }) => this.#engine.bytes(data, n), special ? 1 : 0);
  }

  token(id) {
    return this.#of(id, "token_text", ({ data, n }) => this.#engine.string(data, n));
  }

  tokenBytes(id) {
    return this.#of(id, "token_text", ({ data, n }) => this.#engine.bytes(data, n));
  }

  type(id) {
    return this.#of(id, "token_attr", ({ number }) => TOKEN_TYPES[typeOf(number)]);
  }

  score(id) {
    return this.#of(id, "token_score", ({ number }) => number);
  }

  #of(id, name, use, ...args) {
    const handle = this.#alive();
    this.#engine.try(name, handle, checkedId(id), ...args);
    return use(this.#engine.report);
  }

  find(text) {
    const handle = this.#alive();
    return orNull(this.#engine.withText(text, (at, n) => this.#engine.call("find", handle, at, n)));
  }

  pieces() {
    const handle = this.#alive();
    const engine = this.#engine;
    const n = engine.call("n_tokens", handle);
    return engine.withRoom(8 * n, (at) => {
      engine.call("attributes", handle, at, at + 4 * n);
      engine.call("pieces", handle);
      const report = engine.report;
      const { buffer } = engine.memory;
      return {
        bytes: engine.bytes(report.data, report.n),
        offsets: new Uint32Array(buffer, report.more, n + 1).slice(),
        types: Uint8Array.from(new Uint32Array(buffer, at, n), typeOf),
        scores: new Float32Array(buffer, at + 4 * n, n).slice(),
      };
    });
  }

  merges() {
    const handle = this.#alive();
    this.#engine.try("merges", handle);
    const { data, n } = this.#engine.report;
    const ids = this.#engine.int32(data, n);
    this.#engine.free(data);
    return ids;
  }

  // ---- the file ----

  metadata(options) {
    const { items } = readOptions(options, { items: ITEMS });
    if (typeof items !== "number" || !(items >= 0)) {
      throw refuse("items must be a number that isn't negative");
    }
    const handle = this.#alive();
    const n = this.#engine.call("file_n_keys", handle);
    return Array.from({ length: n }, (_, i) => entry(this.#engine, handle, i, items));
  }

  templates() {
    const named = {};
    let unnamed;
    for (const { key, type, value } of this.metadata({ items: 0 })) {
      if (type !== "string") continue;
      if (key === TEMPLATE) unnamed ??= value;
      else if (key.startsWith(`${TEMPLATE}.`)) named[key.slice(TEMPLATE.length + 1)] = value;
    }
    return unnamed === undefined ? named : { ...named, default: unnamed };
  }

  // ---- chat ----

  renderChat(request, options) {
    const { text, origins } = this.#chat().render(request, options);
    return { text, own: ownRanges(origins) };
  }

  chatOrigins(request, options) {
    const { text, origins } = this.#chat().render(request, options);
    return { text, origins };
  }

  encodeChat(request, options) {
    return this.#chat().encode(request, options);
  }

  countChat(request, options) {
    return this.#chat().count(request, options);
  }

  #chat() {
    const handle = this.#alive();
    this.#chats ??= new Chats(this.#engine, handle);
    return this.#chats;
  }

  #info(bytesRead) {
    const call = (name, ...args) => this.#engine.call(name, this.#handle, ...args);
    const ids = (name) => {
      call(name);
      const { data, n } = this.#engine.report;
      return [...this.#engine.int32(data, n)];
    };
    const values = Object.fromEntries(
      this.metadata({ items: 0 })
        .filter(({ type }) => type !== "array")
        .map(({ key, value }) => [key, value]),
    );
    const warnings = [];
    for (let at; (at = call("warning", warnings.length)); ) warnings.push(this.#engine.text(at));
    const length = values[`${values["general.architecture"]}.context_length`];
    return {
      type: VOCAB_TYPES[call("type")],
      model: this.#engine.text(call("model")),
      pre: this.#engine.text(call("pre")),
      tokens: call("n_tokens"),
      name: typeof values["general.name"] === "string" ? values["general.name"] : null,
      contextLength: typeof length === "number" ? length : null,
      bytesRead,
      ...Object.fromEntries(FLAGS.map((name, i) => [name, Boolean(call("flag", i))])),
      special: Object.fromEntries(SPECIALS.map((name, i) => [name, orNull(call("special_id", i))])),
      eog: ids("eog_ids"),
      suppress: ids("suppress_tokens"),
      warnings,
    };
  }

  // ---- memory ----

  free() {
    if (!this.#handle) return;
    this.#chats?.free();
    if (!this.#engine.broken) this.#engine.call("file_free", this.#handle);
    engines.release(this.#engine);
    this.#handle = 0;
  }

  [Symbol.dispose ?? Symbol("dispose")]() {
    this.free();
  }

  #alive() {
    if (!this.#handle) throw new GgtokError("freed", "this tokenizer was freed");
    return this.#handle;
  }
}

const TEMPLATE = "tokenizer.chat_template";

function encodeFlags({ addSpecial, parseSpecial, continuation }) {
  return (
    (addSpecial ? ADD_SPECIAL : 0) |
    (parseSpecial ? PARSE_SPECIAL : 0) |
    (continuation ? CONTINUATION : 0)
  );
}

function orNull(id) {
  return id < 0 ? null : id;
}

function typeOf(attr) {
  return Math.max(0, TYPE_BITS.findIndex((bit) => attr & bit));
}

/** Returns ids as an Int32Array, whether or not the vocabulary has these tokens. */
function idList(ids) {
  if (ids instanceof Int32Array) return ids;
  const n = typeof ids === "object" ? ids?.length : undefined;
  if (!Number.isInteger(n) || n < 0 || n > 0x7fffffff) {
    throw refuse(`ids must be an array of integers, not ${kindOf(ids)}`);
  }
  const list = new Int32Array(n);
  for (let i = 0; i < list.length; i++) list[i] = checkedId(ids[i], `ids[${i}]`);
  return list;
}

function checkedId(id, what = "the id") {
  if (typeof id !== "number") throw refuse(`${what} must be an integer, not ${kindOf(id)}`);
  if (id !== (id | 0)) throw refuse(`${what} must be an integer of 32 bits, not ${id}`);
  return id;
}
