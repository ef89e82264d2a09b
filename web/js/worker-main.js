// Runs in the worker that worker.js starts.
import { init } from "./engine.js";
import { toData } from "./errors.js";
import { load } from "./tokenizer.js";

let tokenizer;

async function run(number, method, args, post) {
  if (method !== "load") return tokenizer[method](...args);
  const [module, source, options] = args;
  await init(module);
  const onProgress = (progress) => post({ number, progress });
  tokenizer = await load(source, { ...options, onProgress });
  return tokenizer.info;
}

async function answer({ number, method, args }, post) {
  try {
    const result = await run(number, method, args, post);
    post({ number, result }, buffers(result));
  } catch (error) {
    post({ number, error: toData(error) });
  }
}

/** Returns a result's buffers, which are transferred instead of copied. */
function buffers(result) {
  const values = result?.constructor === Object ? Object.values(result) : [result];
  return values.filter(ArrayBuffer.isView).map(({ buffer }) => buffer);
}

if (typeof self === "undefined") {
  const { parentPort } = await import("node:worker_threads");
  parentPort.on("message", (data) => answer(data, (...args) => parentPort.postMessage(...args)));
} else {
  self.onmessage = ({ data }) => answer(data, (...args) => self.postMessage(...args));
}
