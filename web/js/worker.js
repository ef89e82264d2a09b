// A tokenizer in a worker, with the same methods, which return promises. A call that exceeds its
// time budget terminates the worker.
import { compiledModule } from "./engine.js";
import { fromData, GgtokError, LimitError } from "./errors.js";
import { ENCODE, readOptions, refuse } from "./options.js";
import { encoderOver } from "./stream-encoder.js";
import { STREAM, streamOver } from "./stream.js";

const BUDGET = 10_000; // milliseconds per call
const LOADING = 10_000; // milliseconds: the least limit for starting the worker and for each read
const LONGEST = 2 ** 31 - 1; // milliseconds: the longest timeout that setTimeout supports
const METHODS = [
  "encode", "encodeBatch", "count", "encodeBlock", "spans", "trace", "traceToken", "decode", "decodeBytes",
  "piece", "token", "tokenBytes", "type", "score", "find", "pieces", "merges",
  "metadata", "templates", "renderChat", "chatOrigins", "encodeChat", "countChat",
]; // prettier-ignore

const LOAD = {
  wasm: undefined, budget: BUDGET, worker: undefined,
  signal: undefined, onProgress: undefined, pre: null,
}; // prettier-ignore

export class WorkerTokenizer {
  #worker;
  #budget;
  #calls = new Map(); // pending calls by number: { resolve, reject, onProgress }
  #next = 0;
  #timer;
  #ended; // the error that ended the worker

  static async load(source, options) {
    const { wasm, budget, worker, signal, onProgress, pre } = readOptions(options, LOAD);
    signal?.throwIfAborted();
    if (!(budget > 0)) throw refuse("budget must be a positive number");
    const self = new WorkerTokenizer();
    self.#budget = budget > LONGEST ? Infinity : budget;
    const module = await compiledModule(wasm);
    self.#worker = await start(worker, (message) => self.#answer(message), (error) =>
      self.#end(new GgtokError("worker", `the worker failed: ${error.message ?? error}`)),
    );
    const abort = () => self.#end(signal.reason);
    signal?.addEventListener("abort", abort);
    try {
      signal?.throwIfAborted();
      const address = source instanceof URL ? String(source) : source;
      self.info = await self.#call("load", [module, absolute(address), { pre }], onProgress);
      return self;
    } catch (error) {
      self.#end(error);
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  streamDecoder(options) {
    const { unparseSpecial } = readOptions(options, STREAM);
    return streamOver(async (ids) =>
      this.decodeBytes(ids, { unparseSpecial, cleanSpaces: false }),
    );
  }

  streamEncoder(options) {
    const given = readOptions(options, ENCODE);
    const encoder = encoderOver(async (bytes, block) =>
      this.encodeBlock(bytes, { ...given, ...block }),
    );
    let last = Promise.resolve();
    const queued = (call) => (text) => {
      const result = last.then(() => call(text));
      last = result.catch(() => {});
      return result;
    };
    const entries = Object.entries(encoder).map(([name, call]) => [name, queued(call)]);
    return Object.fromEntries(entries);
  }

  free() {
    this.#end(new GgtokError("freed", "this tokenizer was freed"));
  }

  #call(method, args, onProgress) {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw this.#ended;
      const number = this.#next++;
      this.#worker.postMessage({ number, method, args: args.map(withoutUnusedBytes) });
      this.#calls.set(number, { resolve, reject, onProgress });
      if (this.#calls.size > 1) return;
      this.#worker.ref?.();
      this.#wait();
    });
  }

  /** (Re)starts the timer for the worker's current call. */
  #wait() {
    clearTimeout(this.#timer);
    if (!this.#calls.size || this.#budget === Infinity) return;
    const budget = this.info ? this.#budget : Math.max(this.#budget, LOADING);
    this.#timer = setTimeout(() => {
      const what = `took longer than ${budget} ms, so its worker was ended`;
      this.#end(new LimitError("time", `the call ${what}`));
    }, budget);
  }

  #answer({ number, result, error, progress }) {
    const call = this.#calls.get(number);
    if (!call) return;
    if (progress) {
      try {
        call.onProgress?.(progress);
      } catch (error) {
        this.#end(error);
      }
    } else {
      this.#calls.delete(number);
      if (!this.#calls.size) this.#worker.unref?.();
      if (error) call.reject(fromData(error));
      else call.resolve(result);
    }
    this.#wait();
  }

  #end(error) {
    if (this.#ended) return;
    this.#ended = error;
    clearTimeout(this.#timer);
    this.#worker.terminate();
    for (const { reject } of this.#calls.values()) reject(error);
    this.#calls.clear();
  }

  static {
    for (const name of METHODS) {
      this.prototype[name] = function (...args) {
        return this.#call(name, args);
      };
    }
  }
}

/** Copies views of larger buffers, because a message contains the whole buffer of each view. */
function withoutUnusedBytes(value) {
  if (Array.isArray(value)) return value.some(ArrayBuffer.isView) ? value.map(withoutUnusedBytes) : value;
  const Type = [Uint8Array, Int32Array].find((type) => value instanceof type);
  return Type && value.byteLength < value.buffer.byteLength ? new Type(value) : value;
}

/** Makes an address absolute, because a worker would resolve it relative to its own script. */
function absolute(source) {
  if (typeof source !== "string" || typeof document === "undefined") return source;
  return String(new URL(source, document.baseURI));
}

/** Starts a worker: one that the caller creates, one from a script's address, or this package's. */
async function start(script, onMessage, onError) {
  let worker = typeof script === "function" ? script() : undefined;
  if (!worker) {
    const url = script ?? new URL("./worker-main.js", import.meta.url);
    const threads = typeof Worker === "undefined" ? await import("node:worker_threads") : undefined;
    worker = threads ? new threads.Worker(url) : new Worker(url, { type: "module" });
  }
  if (worker.on) {
    worker.on("message", onMessage);
    worker.on("error", onError);
    worker.unref(); // an unused tokenizer doesn't keep Node running
  } else {
    worker.onmessage = ({ data }) => onMessage(data);
    worker.onerror = onError;
    worker.onmessageerror = onError;
  }
  return worker;
}
