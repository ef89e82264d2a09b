/** llama.cpp's tokenizer for GGUF vocabularies. */

/** Something went wrong; `code` says what in one word. */
export class GgtokError extends Error {
  code: string;
  /** The GGUF key at fault. */
  key?: string;
  /** A position in the file, in bytes. */
  offset?: number;
}
/** The file isn't GGUF, is malformed or is cut off. */
export class FormatError extends GgtokError {}
/** The file is readable, but its vocabulary is unusable. */
export class VocabError extends GgtokError {
  /** The name of an unknown pre-tokenizer. */
  pre?: string;
}
/** An argument is invalid. */
export class ArgumentError extends GgtokError {}
/** The vocabulary has no such operation. */
export class UnsupportedError extends GgtokError {}
/** A chat template failed. */
export class TemplateError extends GgtokError {
  /** The line of the template, from 1; 0: the error has no line. */
  line: number;
}
/** Memory ("memory"), the stack ("stack") or the time of a worker's call ("time") is used up. */
export class LimitError extends GgtokError {}
/** A server doesn't answer as it should; or the network fails. */
export class NetworkError extends GgtokError {
  /** The status of an HTTP answer. */
  status?: number;
}

export type Wasm =
  | BufferSource
  | WebAssembly.Module
  | Response
  | Promise<BufferSource | WebAssembly.Module | Response>;

/** Sets the module, ggtok.wasm, before the first load(). */
export function init(wasm: Wasm): Promise<void>;

/** A GGUF file. Only its metadata is read: of a Blob by slices, of a URL by HTTP ranges, or, if the
 * server has none, by taking the answer up to the metadata's end. */
export type Source = ArrayBuffer | Uint8Array | Blob | File | URL | string;

export interface LoadOptions {
  signal?: AbortSignal;
  /** `size` is null as long as it isn't known. */
  onProgress?: (progress: { bytesRead: number; size: number | null }) => void;
  /** Overrides tokenizer.ggml.pre. */
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
  /** tokenizer.ggml.model */
  model: string;
  /** The pre-tokenizer in effect; null unless the type is "bpe". */
  pre: string | null;
  /** The number of tokens. */
  tokens: number;
  /** general.name */
  name: string | null;
  contextLength: number | null;
  /** How many bytes of the file were read. */
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
  /** tokenizer.ggml.suppress_tokens */
  suppress: number[];
  /** What is odd about the file, but not fatal; one sentence each. */
  warnings: string[];
}

export type ValueType =
  | "u8" | "i8" | "u16" | "i16" | "u32" | "i32" | "u64" | "i64" | "f32" | "f64" | "bool" | "string";
/** Integers that a number can't hold exactly are bigints. */
export type Value = string | number | bigint | boolean;
export type MetadataEntry =
  | { key: string; type: ValueType; value: Value }
  | {
      key: string;
      type: "array";
      elementType: ValueType;
      /** The number of all elements. */
      length: number;
      /** The first elements. */
      value: Value[];
    };

export interface EncodeOptions {
  /** Add BOS and EOS as the vocabulary's flags say; true unless set. */
  addSpecial?: boolean;
  /** The text of a control token becomes that token; false unless set. */
  parseSpecial?: boolean;
  /** The text follows other tokens: no BOS, EOS or space prefix. */
  continuation?: boolean;
}

export interface SpansOptions extends EncodeOptions {
  /** What offsets count; "bytes" (of UTF-8) unless set. "utf16" counts like a string's indices. */
  unit?: "bytes" | "codepoints" | "utf16";
}

export interface Spans {
  ids: Int32Array;
  /** The source of ids[i] is text[starts[i] .. ends[i]). Added tokens have empty spans. */
  starts: Int32Array;
  ends: Int32Array;
}

/** In the texts of a trace, bytes that aren't UTF-8 are lone surrogates: U+DC80 to U+DCFF. Positions
 * are bytes of the text. */
export interface TraceToken {
  /** -1 if llama.cpp returns -1 because there is no unknown token. */
  id: number;
  /** The token's piece. */
  text: string;
  how:
    | "added" | "special" | "whole word" | "merged" | "symbol" | "byte" | "longest match"
    | "best path" | "unknown" | "k-mer" | "tag" | "hash";
  /** The token's score, if scores decide ("spm", "ugm", "plamo2", "plamo3"). */
  score: number | null;
  /** The sum of scores up to and including it ("ugm"), or from it to the end (PLaMo). */
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
  /** The number of the left symbol among the word's initial symbols. */
  at: number;
}
/** The best path to a position of a word (PLaMo: from it to the end). */
export interface TracePlace {
  /** In bytes (PLaMo: characters) of the word. */
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
  /** The alternative by which each scanner of the pre-tokenizer found the word ("bpe"); null: the
   * word is between two matches. */
  rules: Array<{ scanner: string; expression: string | null }>;
  /** The initial symbols ("bpe", "spm"). */
  symbols: string[];
  /** The merges in order. */
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
  /** Whether they result in the token. */
  reached: boolean;
  /** Whether a word equal to the token becomes it without merging. */
  whole_word: boolean;
  symbols: string[];
  merges: TraceMerge[];
  tokens: TraceToken[];
  /** All pairs whose merge is the token, in the order of precedence. */
  pairs: TraceMerge[];
  /** The parts into which the pre-tokenizer splits the text, if there are several. */
  words: string[];
  notes: string[];
}

export interface DecodeOptions {
  /** Drop a leading BOS and a trailing EOS, if the vocabulary adds them; false unless set. */
  removeSpecial?: boolean;
  /** Write control tokens as their text; true unless set. */
  unparseSpecial?: boolean;
  /** Remove spaces before punctuation: null, as llama_detokenize does; true, always; false, keep all
   * spaces, so that the text is the tokens' pieces, joined. */
  cleanSpaces?: boolean | null;
}

export type Ids = Iterable<number> & ArrayLike<number>;

/** All tokens in order. Those of id i have bytes[offsets[i] .. offsets[i + 1]). */
export interface Pieces {
  bytes: Uint8Array;
  offsets: Uint32Array;
  /** GGUF's numbers: 0 undefined, 1 normal, 2 unknown, 3 control, 4 user-defined, 5 unused, 6 byte. */
  types: Uint8Array;
  scores: Float32Array;
}

/** Joined, the texts are decode() with cleanSpaces: false. */
export interface StreamDecoder {
  push(ids: number | Ids): string;
  finish(): string;
}

/** The body of a chat request to llama-server, or its JSON text (which tells 1.0 from 1). */
export type ChatRequest = { messages: object[]; [field: string]: unknown } | string;

export interface ChatOptions {
  /** Whose template engine and rules apply: llama-server's ("llama") unless set, or those of
   * transformers' apply_chat_template. */
  dialect?: "llama" | "transformers";
  /** A template, the name of one of the file's, or "chatml". Unless set, the file's. */
  template?: string | null;
  /** The time that a template may ask for. */
  now?: Date;
  /** What stands for each image, audio and video in the prompt, as in llama-server, which is
   * "<__media__>" unless set. Templates of transformers write their own. */
  mediaMarker?: string | null;
}

export interface RenderedChat {
  text: string;
  /** The ranges of the text, in UTF-16 units, that the template wrote itself, or that are media
   * markers. The rest comes from the request. */
  own: Array<[start: number, end: number]>;
}

/** Where a part of a prompt comes from: the template, a field of the message with this index, or
 * something else. What a template makes of several texts, of numbers, JSON, tools or variables is
 * "unknown"; but a number that a text formats, as in `"%d" % n`, belongs to that text. */
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
  /** Control tokens are parsed in the request's text, too, not only in the template's own. */
  trusted?: boolean;
  /** Whether user-defined tokens are parsed in the request's text ("parse") or not ("plain"). */
  userDefined?: "parse" | "plain";
}

export interface EncodedChat extends RenderedChat {
  ids: Int32Array;
  /** The images, audio and video in the messages, whose tokens aren't included: a vocabulary doesn't
   * say how many there are. */
  uncountedParts: number;
}

export class Tokenizer {
  private constructor();
  readonly info: Info;

  /** The ids of a text, which is UTF-8 if it is a Uint8Array: llama_tokenize. */
  encode(text: string | Uint8Array, options?: EncodeOptions): Int32Array;
  count(text: string | Uint8Array, options?: EncodeOptions): number;
  spans(text: string | Uint8Array, options?: SpansOptions): Spans;
  /** The steps from a text of up to 16 KiB to its ids. */
  trace(text: string | Uint8Array, options?: EncodeOptions): Trace;
  /** The merges that build a token, if any do ("bpe", "spm"). */
  traceToken(id: number): TokenTrace;

  /** llama_detokenize; malformed UTF-8 becomes U+FFFD. */
  decode(ids: Ids, options?: DecodeOptions): string;
  decodeBytes(ids: Ids, options?: DecodeOptions): Uint8Array;
  streamDecoder(options?: { unparseSpecial?: boolean }): StreamDecoder;

  /** The bytes of a token: llama_token_to_piece. Control tokens have none if not `special`. */
  piece(id: number, options?: { special?: boolean }): Uint8Array;
  /** The token's text as stored in the file: llama_vocab_get_text. */
  token(id: number): string;
  tokenBytes(id: number): Uint8Array;
  type(id: number): TokenType;
  score(id: number): number;
  /** The id of the token with exactly this stored text. */
  find(text: string | Uint8Array): number | null;
  pieces(): Pieces;
  /** The merges of a "bpe" vocabulary, in order: three ids each, of the left and right part and of
   * the whole; -1 if there is no such token. Empty for other types. */
  merges(): Int32Array;

  /** The file's keys and values; of arrays the first `items` (8) elements. */
  metadata(options?: { items?: number }): MetadataEntry[];
  /** The chat templates by name; the unnamed one is "default". */
  templates(): Record<string, string>;

  /** The prompt of a chat request. Throws TemplateError with the line if the template fails, and
   * ArgumentError where llama-server, or transformers, refuses the request. */
  renderChat(request: ChatRequest, options?: ChatOptions): RenderedChat;
  /** The prompt, and which message each part of it comes from. This takes two more renderings for
   * each binary digit of the number of the messages' fields. */
  chatOrigins(request: ChatRequest, options?: ChatOptions): ChatOrigins;
  /** The prompt and its ids, with BOS and EOS if the vocabulary adds them. The texts around media
   * markers are encoded separately. ArgumentError if the prompt has fewer or more markers than
   * parts. */
  encodeChat(request: ChatRequest, options?: EncodeChatOptions): EncodedChat;

  /** Gives back the memory. Later calls throw. */
  free(): void;
}

type Promised<T> = {
  [K in keyof T]: T[K] extends (...args: infer A) => infer R ? (...args: A) => Promise<R> : T[K];
};

export interface WorkerOptions extends LoadOptions {
  /** The module; unless set, that of init(). */
  wasm?: Wasm;
  /** How many milliseconds a call may take. Then its worker is ended, and this call and all others
   * throw LimitError. 10,000 unless set, and at least that for the worker's start and for each read
   * while loading. */
  budget?: number;
  /** The worker: a function that makes it, or the address of the script. Unless set, this package's
   * worker-main.js. */
  worker?: (() => Worker) | string | URL;
}

/** A Tokenizer in a worker of its own. */
export interface WorkerTokenizer
  extends Promised<Omit<Tokenizer, "info" | "free" | "streamDecoder">> {
  readonly info: Info;
  streamDecoder(options?: { unparseSpecial?: boolean }): {
    push(ids: number | Ids): Promise<string>;
    finish(): string;
  };
  /** Ends the worker, and thereby gives back its memory. */
  free(): void;
}
export const WorkerTokenizer: {
  load(source: Source, options?: WorkerOptions): Promise<WorkerTokenizer>;
};
