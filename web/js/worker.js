// A tokenizer in a worker: the same methods, which return promises. A call that takes longer than
// its budget ends the worker.
import { compiledModule } from "./engine.js";
import { fromData, GgtokError, LimitError } from "./errors.js";
import { streamOver } from "./stream.js";

const BUDGET = 10_000; // milliseconds
const LOADING = 10_000; // at least, for the worker's start and each read
const METHODS = [
  "encode", "count", "spans", "trace", "traceToken", "decode", "decodeBytes",
  "piece", "token", "tokenBytes", "type", "score", "find", "pieces", "merges",
  "metadata", "templates", "renderChat", "chatOrigins", "encodeChat",
]; // prettier-ignore

export class WorkerTokenizer {
  #worker;
  #budget;
  #calls = new Map(); // by number: resolve, reject and onProgress
  #next = 0;
  #timer;
  #ended; // the error that ended the worker

  static async load(source, options = {}) {
    const { wasm, budget = BUDGET, worker, signal, onProgress, pre } = options;
    signal?.throwIfAborted();
    const self = new WorkerTokenizer();
    self.#budget = budget;
    const module = await compiledModule(wasm);
    self.#worker = await start(worker, (message) => self.#answer(message), (error) =>
      self.#end(new GgtokError("worker", `the worker failed: ${error.message ?? error}`)),
    );
    const abort = () => self.#end(signal.reason);
    signal?.addEventListener("abort", abort);
    try {
      signal?.throwIfAborted();
      const given = source instanceof URL ? String(source) : source;
      self.info = await self.#call("load", [module, absolute(given), { pre }], onProgress);
      return self;
    } catch (error) {
      self.#end(error);
      throw error;
    } finally {
      signal?.removeEventListener("abort", abort);
    }
  }

  streamDecoder({ unparseSpecial = true } = {}) {
    return streamOver(async (ids) =>
      this.decodeBytes(ids, { unparseSpecial, cleanSpaces: false }),
    );
  }

  free() {
    this.#end(new GgtokError("freed", "this tokenizer was freed"));
  }

  #call(method, args, onProgress) {
    return new Promise((resolve, reject) => {
      if (this.#ended) throw this.#ended;
      const number = this.#next++;
      this.#worker.postMessage({ number, method, args });
      this.#calls.set(number, { resolve, reject, onProgress });
      if (this.#calls.size === 1) this.#wait();
    });
  }

  /** (Re)starts the time of the call that the worker is at. */
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
      call.onProgress?.(progress);
    } else {
      this.#calls.delete(number);
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

/** A worker has another base for relative addresses. */
function absolute(source) {
  if (typeof source !== "string" || typeof document === "undefined") return source;
  return String(new URL(source, document.baseURI));
}

/** Starts a worker: one that the caller makes, of the script at an address, or of this package's. */
async function start(given, onMessage, onError) {
  let worker = typeof given === "function" ? given() : undefined;
  if (!worker) {
    const url = given ?? new URL("./worker-main.js", import.meta.url);
    const threads = typeof Worker === "undefined" ? await import("node:worker_threads") : undefined;
    worker = threads ? new threads.Worker(url) : new Worker(url, { type: "module" });
  }
  if (worker.on) {
    worker.on("message", onMessage);
    worker.on("error", onError);
    worker.unref(); // a tokenizer doesn't keep Node running
  } else {
    worker.onmessage = ({ data }) => onMessage(data);
    worker.onerror = onError;
    worker.onmessageerror = onError;
  }
  return worker;
}
