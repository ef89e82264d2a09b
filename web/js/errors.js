// Error classes; an error's `code` names its cause in one word.

export class GgtokError extends Error {
  constructor(code, message, details = {}) {
    super(message);
    this.code = code;
    Object.assign(this, details);
  }
}

/** The file isn't GGUF, is malformed or is truncated; `key` and `offset` tell where. */
export class FormatError extends GgtokError {}
/** The file is readable, but its vocabulary is unusable; `key` names the invalid value. */
export class VocabError extends GgtokError {}
/** An argument is invalid. */
export class ArgumentError extends GgtokError {}
/** The vocabulary doesn't support this operation. */
export class UnsupportedError extends GgtokError {}
/** A chat template failed; `line` is the line in the template, from 1. */
export class TemplateError extends GgtokError {}
/** A limit was reached: memory, the stack or time. */
export class LimitError extends GgtokError {}
/** A server's answer is unusable, or the network fails. */
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

// Bundlers shorten the names of the classes themselves.
for (const [name, Class] of Object.entries(CLASSES)) Class.prototype.name = name;

// The codes of ggtok_status, from 1.
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

/** Returns an error as plain data, for another thread. */
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
