// A program for TypeScript to check, which uses every export and every method. If an expected error
// doesn't occur, that is an error.
import {
  ArgumentError,
  FormatError,
  GgtokError,
  init,
  LimitError,
  load,
  NetworkError,
  TemplateError,
  Tokenizer,
  UnsupportedError,
  VocabError,
  WorkerTokenizer,
} from "ggtok";
import type { ChatOrigin, ChatRequest, EncodedChat, Info, LoadOptions, MetadataEntry, Trace } from "ggtok";

export async function open(file: File, signal: AbortSignal): Promise<Tokenizer> {
  await init(fetch("ggtok.wasm"));
  await init(new Uint8Array(8));
  const options: LoadOptions = { signal, onProgress: ({ bytesRead, size }) => bytesRead / (size ?? 1) };
  for (const source of [new ArrayBuffer(8), new URL("https://example.com/"), "model.gguf", file.slice(8)]) {
    (await load(source)).free();
  }
  // @ts-expect-error: a number isn't a source
  await load(5);
  // @ts-expect-error: tokenizers come from load()
  new Tokenizer();
  return load(file, options);
}

export function use(tok: Tokenizer): number {
  const ids: Int32Array = tok.encode("text", { addSpecial: false, parseSpecial: true, continuation: true });
  const batch: number = tok.encodeBatch(["text", new Uint8Array(4)], { addSpecial: false }).offsets.length;
  const n: number = tok.count(new Uint8Array(4)) + batch;
  const { starts, ends } = tok.spans("text", { unit: "utf16" });
  const text: string = tok.decode(ids, { removeSpecial: true, unparseSpecial: false, cleanSpaces: null });
  const bytes: Uint8Array = tok.decodeBytes([1, 2, 3]);
  const stream = tok.streamDecoder({ unparseSpecial: false });
  const streamed: string = stream.feed(5) + stream.feed([1, 2]) + stream.finish();
  const grows = tok.streamEncoder({ addSpecial: false });
  const grown: number = grows.feed("a").length + grows.pending().length + grows.count() + grows.finish().length;
  const used: number = tok.encodeBlock(bytes, { isFirst: false }).used + grown;
  const piece: Uint8Array = tok.piece(5, { special: false });
  const stored: [string, Uint8Array] = [tok.token(5), tok.tokenBytes(5)];
  if (tok.type(5) === "user_defined") return tok.score(5);
  const id: number | null = tok.find("the");
  const { offsets, types, scores } = tok.pieces();
  const merges: Int32Array = tok.merges();
  const templates: Record<string, string> = tok.templates();
  const info: Info = tok.info;
  const bos: number | null = info.special.bos;
  const lengths = [starts, ends, text, bytes, streamed, piece, ...stored, offsets, types, scores, merges];
  tok.free();
  // @ts-expect-error: the id may be missing
  const wrong: number = tok.find("the");
  // @ts-expect-error: there is no such unit
  tok.spans("text", { unit: "bits" });
  // @ts-expect-error: a type has one of seven names
  tok.type(5) === "special";
  return n + used + (id ?? 0) + (bos ?? 0) + lengths.reduce((sum, { length }) => sum + length, templates.default?.length ?? wrong);
}

export function look(tok: Tokenizer): string[] {
  const trace: Trace = tok.trace("text");
  const words = trace.fragments.flatMap(({ words }) => words.map(({ text }) => text));
  const whole: boolean = tok.traceToken(5).whole_word;
  const entries: MetadataEntry[] = tok.metadata({ items: 3 });
  for (const entry of entries) {
    if (entry.type === "array") words.push(`${entry.elementType}[${entry.length}] ${entry.value.join()}`);
    else words.push(String(entry.value), String(whole));
  }
  return words;
}

export function chat(tok: Tokenizer): string[] {
  const request: ChatRequest = { messages: [{ role: "user", content: "Hi" }], add_generation_prompt: true };
  const { text, own } = tok.renderChat(request, { like: "transformers", template: "chatml", now: new Date() });
  const counted: number = tok.countChat(request, { trusted: true }).count;
  const encoded: EncodedChat = tok.encodeChat("{}", { trusted: true, userDefined: "plain", mediaMarker: null });
  const where = ({ start, end, ...origin }: ChatOrigin): string => {
    const shown = text.slice(start, end);
    return origin.from === "message" ? `${origin.message} ${origin.field}: ${shown}` : shown;
  };
  // @ts-expect-error: the template has no message
  tok.chatOrigins(request).origins.map((origin) => origin.from === "template" && origin.message);
  return [...tok.chatOrigins(request).origins.map(where), ...own.map(([begin, end]) => text.slice(begin, end)), encoded.text, String(counted)];
}

export async function work(file: Blob, module: WebAssembly.Module): Promise<number> {
  const tok = await WorkerTokenizer.load(file, { wasm: module, budget: 500, worker: () => new Worker("worker.js") });
  const stream = tok.streamDecoder();
  const text: string = (await stream.feed([1, 2])) + stream.finish();
  const grown: Int32Array = await tok.streamEncoder().feed(text);
  const ids: Int32Array = grown.length ? grown : await tok.encode(text);
  const origins: ChatOrigin[] = (await tok.chatOrigins({ messages: [] })).origins;
  // @ts-expect-error: a worker's methods return promises
  const wrong: number = tok.count("text");
  tok.free();
  return ids.length + tok.info.tokens + origins.length + wrong;
}

export function explain(error: unknown): string {
  if (error instanceof TemplateError) return `line ${error.line}`;
  if (error instanceof NetworkError) return `status ${error.status ?? 0}`;
  if (error instanceof VocabError) return error.pre ?? "";
  if (error instanceof LimitError) return error.code;
  if (error instanceof FormatError) return `${error.key} at ${error.offset}`;
  if (error instanceof ArgumentError || error instanceof UnsupportedError) return error.message;
  // @ts-expect-error: only some errors have a line
  return error instanceof GgtokError ? `${error.code} ${error.line}` : String(error);
}
