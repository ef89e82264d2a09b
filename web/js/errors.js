// What goes wrong, as classes; `code` says it in one word.

export class GgtokError extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.code = code;
    Object.assign(this, details);
  }
}

/** The file isn't GGUF, is malformed or is cut off; `key` and `offset` say where. */
export class FormatError extends GgtokError {}
/** The file is readable, but its vocabulary is unusable; `key` says which value is at fault. */
export class VocabError extends GgtokError {}
/** An argument is invalid. */
export class ArgumentError extends GgtokError {}
/** The vocabulary has no such operation. */
export class UnsupportedError extends GgtokError {}
/** A chat template failed; `line` says where in it, from 1. */
export class TemplateError extends GgtokError {}
/** Memory, the stack or the time is used up. */
export class LimitError extends GgtokError {}
/** A server doesn't answer as it should. */
export class NetworkError extends GgtokError {}

const CLASSES = {
  GgtokError,
  FormatError,
  VocabError,
  ArgumentError,
  UnsupportedError,
  TemplateError,
  LimitError,
  NetworkError,
};

// Bundlers shorten the classes' own names.
for (const [name, Class] of Object.entries(CLASSES)) Class.prototype.name = name;

// ggtok_status, from 1.
const OF_STATUS = [
  [LimitError, "memory"],
  [GgtokError, "io"],
  [FormatError, "gguf"],
  [VocabError, "vocab"],
  [VocabError, "pretokenizer"],
  [ArgumentError, "argument"],
  [UnsupportedError, "unsupported"],
  [GgtokError, "stopped"],
  [TemplateError, "template"],
];

export function ofStatus(status, message, details) {
  const [Class, code] = OF_STATUS[status - 1];
  return new Class(code, message, details);
}

/** An error as plain data, for another thread. */
export function toData(error) {
  if (!(error instanceof Error)) return { name: "Error", message: String(error) };
  const { name, message, stack } = error;
  return { name, message, stack, ...error };
}

export function fromData({ name, message, stack, code, ...details }) {
  const Class = CLASSES[name];
  if (Class) return new Class(code, message, details);
  const error = name === "AbortError" ? new DOMException(message, name) : new Error(message);
  return Object.defineProperty(error, "remoteStack", { value: stack });
}
