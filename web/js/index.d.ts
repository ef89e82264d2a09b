/** llama.cpp's tokenizer for GGUF vocabularies. */

/** The base of all errors; `code` names the cause in one word. */
export class GgtokError extends Error {
  code: string;
  /** The GGUF key, or the path in a chat request, of the invalid value. */
  key?: string;
  /** The position of the error in the file, in bytes. */
  offset?: number;
}
/** The file isn't GGUF, is malformed or is truncated. */
export class FormatError extends GgtokError {}
/** The file is readable, but its vocabulary is unusable. */
export class VocabError extends GgtokError {
  /** The pre-tokenizer's name, if it is unknown. */
  pre?: string;
}
/** An argument is invalid: a text, an option that doesn't exist, or a chat request, in which `key`
 * is the path of the wrong field ("messages[0].content"). */
export class ArgumentError extends GgtokError {}
/** The vocabulary doesn't support this operation. */
export class UnsupportedError extends GgtokError {}
/** A chat template failed. */
export class TemplateError extends GgtokError {
  /** The line in the template, from 1; 0 if the error has no line. */
  line: number;
}
/** A limit was reached: memory ("memory"), the stack ("stack") or the time of a worker's call
 * ("time"). */
export class LimitError extends GgtokError {}
/** A server's answer is unusable, or the network fails. */
export class NetworkError extends GgtokError {
  /** The HTTP status of the answer. */
  status?: number;
}

export type Wasm =
  | BufferSource
  | WebAssembly.Module
  | Response
  | Promise<BufferSource | WebAssembly.Module | Response>;

/** Sets the module, ggtok.wasm, before the first load(). In Node, load() finds the package's. */
export function init(wasm: Wasm): Promise<void>;

/** A GGUF file. Only its metadata is read: from a Blob in slices, from a URL by HTTP ranges or, if
 * the server doesn't support ranges, from the beginning of the whole answer. A string is a URL or,
 * in Node, a path. */
export type Source = ArrayBuffer | Uint8Array | Blob | File | URL | string;

export interface LoadOptions {
  signal?: AbortSignal;
  /** `size` is null while it is unknown. */
  onProgress?: (progress: { bytesRead: number; size: number | null }) => void;
  /** Replaces the value of tokenizer.ggml.pre. */
  pre?: string;
}

export function load(source: Source, options?: LoadOptions): Promise<Tokenizer>;

export type VocabType =
  | "none" | "spm" | "bpe" | "wpm" | "ugm" | "rwkv" | "plamo2" | "test" | "plamo3";
export type TokenType =
  | "undefined" | "normal" | "unknown" | "control" | "user_defined" | "unused" | "byte";
export type SpecialName =
  | "bos" | "eos" | "eot" | "eom" | "unk" | "sep" | "nl" | "pad" | "mask"
  | "fim_pre" | "fim_suf" | "fim_mid" | "fim_pad" | "fim_rep" | "fim_sep";

export interface Info {
  type: VocabType;
  /** The value of tokenizer.ggml.model. */
  model: string;
  /** The pre-tokenizer in effect; null unless the type is "bpe". */
  pre: string | null;
  /** The number of tokens. */
  tokens: number;
  /** The value of general.name. */
  name: string | null;
  contextLength: number | null;
  /** The number of bytes that were read from the file. */
  bytesRead: number;
  addBos: boolean;
  addEos: boolean;
  addSep: boolean;
  addSpacePrefix: boolean;
  ignoreMerges: boolean;
  cleanSpaces: boolean;
  removeExtraWhitespaces: boolean;
  escapeWhitespaces: boolean;
  lowercase: boolean;
  stripAccents: boolean;
  special: Record<SpecialName, number | null>;
  /** The ids that end generation, ascending. */
  eog: number[];
  /** The value of tokenizer.ggml.suppress_tokens. */
  suppress: number[];
  /** Oddities of the file that aren't fatal, one sentence each. */
  warnings: string[];
}

export type ValueType =
  | "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" | "f32" | "f64" | "bool" | "string";
/** A value of a key. Integers that a number can't represent exactly are bigints. */
export type Value = string | number | bigint | boolean;
export type MetadataEntry =
  | { key: string; type: ValueType; value: Value }
  | {
      key: string;
      type: "array";
      elementType: ValueType;
      /** The number of elements in the whole array. */
      length: number;
      /** The first elements of the array. */
      value: Value[];
    };

export interface EncodeOptions {
  /** Add BOS and EOS as the vocabulary's flags say. Default: true. */
  addSpecial?: boolean;
  /** Turn the text of a control token into that token. Default: false. */
  parseSpecial?: boolean;
  /** The text continues other tokens: no BOS, EOS or space prefix. */
  continuation?: boolean;
}

export interface BlockOptions extends EncodeOptions {
  /** Whether no block of the text precedes. Default: true. */
  isFirst?: boolean;
  /** Whether the text ends with this block. Default: false. */
  isLast?: boolean;
}

export interface EncodedBlock {
  ids: Int32Array;
  /** The number of bytes (of UTF-8) that the ids cover; the rest belongs to the next block. */
  used: number;
}

export interface SpansOptions extends EncodeOptions {
  /** The unit of offsets; "byte" (of UTF-8) by default. "char" counts code points, and "utf16"
   * counts like string indices. */
  unit?: "byte" | "char" | "utf16";
}

export interface Spans {
  ids: Int32Array;
  /** Where ids[i] comes from: text[starts[i] .. ends[i]). Added tokens have empty spans. */
  starts: Int32Array;
  ends: Int32Array;
}

/** A token in a trace. In all texts of a trace, lone surrogates (U+DC80 to U+DCFF) represent bytes
 * that aren't UTF-8. Positions are byte offsets in the text. */
export interface TraceToken {
  /** -1 where llama.cpp returns -1 because the vocabulary has no unknown token. */
  id: number;
  /** The token's piece. */
  text: string;
  how:
    | "added" | "special" | "whole word" | "merged" | "symbol" | "byte" | "longest match"
    | "best path" | "unknown" | "k-mer" | "tag" | "hash";
  /** The token's score, if scores decide the ids ("spm", "ugm", "plamo2", "plamo3"). */
  score: number | null;
  /** The sum of scores up to and including this token ("ugm"), or from this token to the end
   * (PLaMo). */
  total: number | null;
  /** A remark, possibly empty. */
  why: string;
  begin: number;
  end: number;
}
export interface TraceMerge {
  left: string;
  right: string;
  /** The index in the file's list of merges ("bpe"); the lowest is merged first. */
  rank: number | null;
  /** The score of the resulting token ("spm"); the highest is merged first. */
  score: number | null;
  /** The index of the left symbol among the word's initial symbols. */
  at: number;
}
/** The best path to a position in a word (for PLaMo: from the position to the end). */
export interface TracePlace {
  /** The position in the word, in bytes (for PLaMo: in characters). */
  at: number;
  id: number;
  text: string;
  score: number;
  total: number;
}
/** A part of a text that is tokenized separately. */
export interface TraceWord {
  /** The normalized text. */
  text: string;
  begin: number;
  end: number;
  tokens: TraceToken[];
  /** For each scanner of the pre-tokenizer, the alternative of its expression that matched the word
   * ("bpe"); null if the word is between two matches. */
  rules: Array<{ scanner: string; expression: string | null }>;
  /** The initial symbols ("bpe", "spm"). */
  symbols: string[];
  /** The merges in the order in which they happen. */
  merges: TraceMerge[];
  lattice: TracePlace[];
}
/** A special token, or raw text between special tokens. */
export interface TraceFragment {
  text: string;
  begin: number;
  end: number;
  special: TraceToken | null;
  /** The normalized raw text; null if normalization didn't change it. */
  normalized: string | null;
  notes: string[];
  words: TraceWord[];
}
export interface Trace {
  ids: number[];
  before: TraceToken[];
  after: TraceToken[];
  fragments: TraceFragment[];
}
/** The merges of one token's own text. */
export interface TokenTrace {
  text: string;
  /** Whether the merges result in the token. */
  reached: boolean;
  /** Whether a word equal to the token becomes it without merging. */
  whole_word: boolean;
  symbols: string[];
  merges: TraceMerge[];
  tokens: TraceToken[];
  /** All pairs that merge into the token, in order of precedence. */
  pairs: TraceMerge[];
  /** The words into which the pre-tokenizer splits the text, if there are several. */
  words: string[];
  notes: string[];
}

export interface DecodeOptions {
  /** Remove a leading BOS and a trailing EOS if the vocabulary adds them. Default: false. */
  removeSpecial?: boolean;
  /** Write control tokens as their text. Default: true. */
  unparseSpecial?: boolean;
  /** Whether to remove spaces before punctuation: null, as llama_detokenize does; true, always;
   * false, never, so that the text is the joined pieces of the tokens. */
  cleanSpaces?: boolean | null;
}

export type Ids = Iterable<number> & ArrayLike<number>;

/** The pieces of all tokens in order. Token i has bytes[offsets[i] .. offsets[i + 1]). */
export interface Pieces {
  bytes: Uint8Array;
  offsets: Uint32Array;
  /** Token types as GGUF numbers: 0 undefined, 1 normal, 2 unknown, 3 control, 4 user-defined, 5
   * unused, 6 byte. */
  types: Uint8Array;
  scores: Float32Array;
}

/** Decodes ids step by step. The joined texts equal decode() with cleanSpaces: false. */
export interface StreamDecoder {
  feed(ids: number | Ids): string;
  finish(): string;
}

/** The ids of several texts. Those of text i are ids.subarray(offsets[i], offsets[i + 1]). */
export interface Batch {
  ids: Int32Array;
  offsets: Uint32Array;
}

/** Encodes a text that grows. The ids from feed() and finish(), joined, are those of encode() for the
 * texts joined, which may be cut anywhere: inside a surrogate pair or, as bytes, a character. */
export interface StreamEncoder {
  /** Appends text; returns the ids that no further text can change. */
  feed(text: string | Uint8Array): Int32Array;
  /** Returns the ids of the rest of the text, as if it ended here. */
  pending(): Int32Array;
  /** Returns the number of ids of the text so far. */
  count(): number;
  /** Ends the text; returns the ids of its rest. */
  finish(): Int32Array;
}

/** The body of a chat request to llama-server, or its JSON text (which distinguishes 1.0 from 1).
 */
export type ChatRequest = { messages: object[]; [field: string]: unknown } | string;

export interface ChatOptions {
  /** Whose template engine and rules apply: llama-server's ("llama.cpp", the default) or those of
   * transformers' apply_chat_template. */
  like?: "llama.cpp" | "transformers";
  /** A template, the name of one of the file's templates, or "chatml". Default: the file's. */
  template?: string | null;
  /** The time for templates that ask for it. Default: the current time. */
  now?: Date | null;
  /** The text that replaces each image, audio and video in the prompt, as in llama-server. Default:
   * "<__media__>". Templates for transformers write their own. */
  mediaMarker?: string | null;
}

export interface RenderedChat {
  text: string;
  /** The ranges of the text, in UTF-16 units, that the template itself wrote, or that are roles or
   * media markers. The rest comes from the request. */
  own: Array<[start: number, end: number]>;
}

/** The origin of a part of a prompt: the template, a field of the message with this index, or
 * unknown. The origin is unknown if the part comes from tools or variables, or if the template
 * computes it from several texts or from numbers. Roles such as "user" count as the template's. */
export type ChatOrigin = { start: number; end: number } & (
  | { from: "template" | "unknown" }
  | { from: "message"; message: number; field: string }
);

export interface ChatOrigins {
  text: string;
  /** The parts of the text in order and without gaps, in UTF-16 units. */
  origins: ChatOrigin[];
}

export interface EncodeChatOptions extends ChatOptions {
  /** Parse control tokens in the request's text, too, not only in the template's own. */
  trusted?: boolean;
  /** Whether to parse user-defined tokens in the request's text ("parse") or not ("plain"). */
  userDefined?: "parse" | "plain";
}

export interface EncodedChat extends RenderedChat {
  ids: Int32Array;
  /** The number of images, audio and video parts in the messages. Their tokens aren't included,
   * since a vocabulary doesn't say how many there are. */
  uncountedParts: number;
}

export interface CountedChat {
  /** The number of ids that encodeChat() returns. */
  count: number;
  uncountedParts: number;
}

export class Tokenizer {
  private constructor();
  readonly info: Info;

  /** Returns the ids of a text (UTF-8 if it is a Uint8Array), like llama_tokenize. */
  encode(text: string | Uint8Array, options?: EncodeOptions): Int32Array;
  /** Encodes many texts, with one message if the tokenizer is in a worker. */
  encodeBatch(texts: (string | Uint8Array)[], options?: EncodeOptions): Batch;
  count(text: string | Uint8Array, options?: EncodeOptions): number;
  /** Encodes the part of an incomplete text whose ids no further text can change, like
   * ggtok_encode_block. streamEncoder() keeps the rest. */
  encodeBlock(text: string | Uint8Array, options?: BlockOptions): EncodedBlock;
  streamEncoder(options?: EncodeOptions): StreamEncoder;
  spans(text: string | Uint8Array, options?: SpansOptions): Spans;
  /** Returns the steps from a text of up to 16 KiB to its ids. */
  trace(text: string | Uint8Array, options?: EncodeOptions): Trace;
  /** Returns the merges that build a token, if any do ("bpe", "spm"). */
  traceToken(id: number): TokenTrace;

  /** Decodes ids to text, like llama_detokenize; malformed UTF-8 becomes U+FFFD. */
  decode(ids: Ids, options?: DecodeOptions): string;
  decodeBytes(ids: Ids, options?: DecodeOptions): Uint8Array;
  streamDecoder(options?: { unparseSpecial?: boolean }): StreamDecoder;

  /** Returns the bytes of a token, like llama_token_to_piece. Without `special`, control tokens
   * have none. */
  piece(id: number, options?: { special?: boolean }): Uint8Array;
  /** Returns the token's text as stored in the file, like llama_vocab_get_text. */
  token(id: number): string;
  tokenBytes(id: number): Uint8Array;
  type(id: number): TokenType;
  score(id: number): number;
  /** Returns the id of the token with exactly this stored text. */
  find(text: string | Uint8Array): number | null;
  pieces(): Pieces;
  /** Returns the merges of a "bpe" vocabulary, in order: the ids of the left part, the right part
   * and the whole, or -1 if there is no such token. Empty for other types. */
  merges(): Int32Array;

  /** Returns the file's keys and values; for arrays, the first `items` (default: 8) elements. */
  metadata(options?: { items?: number }): MetadataEntry[];
  /** Returns the chat templates by name; the unnamed one is "default". */
  templates(): Record<string, string>;

  /** Returns the prompt for a chat request. Throws TemplateError with the line if the template
   * fails, and ArgumentError where llama-server, or transformers, rejects the request. */
  renderChat(request: ChatRequest, options?: ChatOptions): RenderedChat;
  /** Returns the prompt, and which message each part of it comes from. */
  chatOrigins(request: ChatRequest, options?: ChatOptions): ChatOrigins;
  /** Returns the prompt and its ids, with BOS and EOS if the vocabulary adds them. The texts around
   * media markers are encoded separately. Throws ArgumentError if the prompt doesn't have exactly
   * one marker for each image, audio or video part. */
  encodeChat(request: ChatRequest, options?: EncodeChatOptions): EncodedChat;
  countChat(request: ChatRequest, options?: EncodeChatOptions): CountedChat;

  /** Frees the memory. Later calls throw. */
  free(): void;
}

type Promised<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : T[K];
};

export interface WorkerOptions extends LoadOptions {
  /** The module. Default: the one passed to init(). */
  wasm?: Wasm;
  /** Time limit for a call, in milliseconds. If a call exceeds it, the worker is terminated, and
   * this call and all other calls throw LimitError. Default: 10,000. Starting the worker and each
   * read while loading have a fixed limit of 10,000 ms. */
  budget?: number;
  /** The worker: a function that creates it, or the script's address. Default: this package's
   * worker-main.js. */
  worker?: (() => Worker) | string | URL;
}

/** A Tokenizer in a separate worker. */
export interface WorkerTokenizer
  extends Promised<Omit<Tokenizer, "info" | "free" | "streamDecoder" | "streamEncoder">> {
  readonly info: Info;
  streamDecoder(options?: { unparseSpecial?: boolean }): {
    feed(ids: number | Ids): Promise<string>;
    finish(): string;
  };
  /** Calls of its methods wait for each other. */
  streamEncoder(options?: EncodeOptions): Promised<StreamEncoder>;
  /** Terminates the worker, which also frees its memory. */
  free(): void;
}
export const WorkerTokenizer: {
  load(source: Source, options?: WorkerOptions): Promise<WorkerTokenizer>;
};
