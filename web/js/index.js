export { init } from "./engine.js";
export * from "./errors.js";
export { load, Tokenizer } from "./tokenizer.js";
export { WorkerTokenizer } from "./worker.js";
