export { init } from "./engine.js";
export {
  ArgumentError,
  FormatError,
  GgtokError,
  LimitError,
  NetworkError,
  TemplateError,
  UnsupportedError,
  VocabError,
} from "./errors.js";
export { load, Tokenizer } from "./tokenizer.js";
export { WorkerTokenizer } from "./worker.js";
