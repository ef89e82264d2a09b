// The WebAssembly module: access to its memory, and its errors as exceptions.
import { ArgumentError, GgtokError, LimitError, ofStatus } from "./errors.js";
import { packagedModule } from "./node.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
// Names of options in C that differ here.
const OPTIONS = { media_marker: "mediaMarker" };
const TEMPLATE = 9; // GGTOK_ERR_TEMPLATE
const LARGE = 64 << 20; // bytes; an engine with more memory isn't reused
const SHORT = 1 << 16; // UTF-16 units; texts up to this length are encoded directly into the
                       // module's memory

let compiled; // promise of the compiled module
let current; // the engine for new tokenizers

/** Sets the module. `wasm`: its bytes, a response that contains them, or the compiled module; or a
 * promise of one of these. */
export async function init(wasm) {
  const compiling = compile(wasm);
  compiled = compiling;
  current = undefined;
  try {
    await compiling;
  } catch (error) {
    if (compiled === compiling) compiled = undefined;
    throw error;
  }
}

async function compile(wasm) {
  const source = await wasm;
  if (source instanceof WebAssembly.Module) return source;
  if (typeof Response !== "undefined" && source instanceof Response) {
    if (!source.ok) throw new GgtokError("init", `${source.url}: status ${source.status}`);
    return WebAssembly.compile(await source.arrayBuffer());
  }
  return WebAssembly.compile(source);
}

/** Returns the compiled module: compiled from `wasm`, set by init() or, in Node, the package's. */
export async function compiledModule(wasm) {
  if (wasm) return compile(wasm);
  if (!compiled) {
    const packaged = packagedModule();
    if (!packaged) throw new GgtokError("init", "call init() with ggtok.wasm first");
    await init(packaged);
  }
  return compiled;
}

/** Returns an engine for one more tokenizer. */
export async function acquire() {
  const module = await compiledModule();
  if (!current || current.broken) current = new Engine(module);
  current.users++;
  return current;
}

/** Reports that a tokenizer no longer uses its engine. Since an engine's memory never shrinks, a
 * large engine isn't kept. */
export function release(engine) {
  engine.users--;
  const isLarge = engine.memory.buffer.byteLength > LARGE;
  if (engine === current && engine.users === 0 && isLarge) current = undefined;
}

class Engine {
  constructor(module) {
    const instance = new WebAssembly.Instance(module, {
      wasi_snapshot_preview1: { clock_time_get: (...args) => this.clock(...args) },
    });
    this.exports = instance.exports;
    this.memory = instance.exports.memory;
    this.users = 0;
    this.broken = undefined;
    this.exports._initialize();
    this.reportAt = this.exports.get_report();
  }

  clock(id, precision, at) {
    const now = id === 0 ? Date.now() : performance.now();
    new DataView(this.memory.buffer).setBigUint64(at, BigInt(Math.round(now * 1e6)), true);
    return 0;
  }

  /** Calls an exported function. An engine that crashed isn't used again. */
  call(name, ...args) {
    if (this.broken) throw this.broken;
    try {
      return this.exports[name](...args);
    } catch (error) {
      const stack = error instanceof RangeError;
      const what = stack ? "too deeply nested for the stack" : `internal error: ${error.message}`;
      this.broken = new LimitError(stack ? "stack" : "crash", what, { cause: error });
      throw this.broken;
    }
  }

  /** Calls a function that returns a boolean or an address; throws the reported error if the
   * result is 0. */
  try(name, ...args) {
    const result = this.call(name, ...args);
    if (!result) throw this.error();
    return result;
  }

  get report() {
    return new Report(this.memory.buffer, this.reportAt);
  }

  error() {
    const { status, line, offset, ...at } = this.report.error();
    const details = {};
    let [key, name, message] = [at.key, at.name, at.message].map((p) => this.text(p));
    if (Object.hasOwn(OPTIONS, key ?? "")) {
      message = message.replaceAll(key, OPTIONS[key]);
      key = OPTIONS[key];
    }
    if (key) details.key = key;
    if (offset >= 0) details.offset = offset;
    if (status !== TEMPLATE) {
      if (name) details.pre = name;
      return ofStatus(status, message, details);
    }
    details.line = line; // `name` is the text of that template line
    return ofStatus(status, name ? `${message}, in: ${name}` : message, details);
  }

  /** Copies bytes from the module's memory. */
  bytes(at, n) {
    return new Uint8Array(this.memory.buffer, at, n).slice();
  }

  int32(at, n) {
    return new Int32Array(this.memory.buffer, at, n).slice();
  }

  string(at, n) {
    return decoder.decode(new Uint8Array(this.memory.buffer, at, n));
  }

  /** Returns the NUL-terminated text at an address, or null for address 0. */
  text(at) {
    if (!at) return null;
    const memory = new Uint8Array(this.memory.buffer);
    return this.string(at, memory.indexOf(0, at) - at);
  }

  /** Calls use(address, n) with a text's bytes in the module's memory. */
  withText(text, use) {
    if (typeof text !== "string") return this.withBytes(asBytes(text), use);
    if (text.length > SHORT) return this.withBytes(encoder.encode(text), use);
    const at = this.try("allocate", 3 * text.length);
    try {
      const room = new Uint8Array(this.memory.buffer, at, 3 * text.length);
      return use(at, encoder.encodeInto(text, room).written);
    } finally {
      this.free(at);
    }
  }

  withBytes(bytes, use) {
    const at = this.try("allocate", bytes.length);
    try {
      new Uint8Array(this.memory.buffer, at, bytes.length).set(bytes);
      return use(at, bytes.length);
    } finally {
      this.free(at);
    }
  }

  /** Calls use(address) with an array of numbers in the module's memory. */
  withNumbers(numbers, use) {
    const bytes = new Uint8Array(numbers.buffer, numbers.byteOffset, numbers.byteLength);
    return this.withBytes(bytes, use);
  }

  /** Calls use(address) with n bytes of memory. */
  withRoom(n, use) {
    const at = this.try("allocate", n);
    try {
      return use(at);
    } finally {
      this.free(at);
    }
  }

  free(at) {
    if (!this.broken) this.call("release", at);
  }
}

/** A view of the struct `report` in web/wasm/exports.c. */
class Report {
  constructor(buffer, at) {
    const view = new DataView(buffer, at);
    const word = (i) => view.getUint32(4 * i, true);
    this.data = word(0);
    this.n = word(1);
    this.more = word(2);
    this.nMore = word(3);
    this.number = view.getFloat64(16, true);
    this.kind = word(6);
    this.elem = word(7);
    this.error = () => ({
      status: word(8),
      line: word(9),
      key: word(10),
      name: word(11),
      message: word(12),
      offset: view.getFloat64(56, true),
    });
  }
}

export function asBytes(text) {
  if (text instanceof Uint8Array) return text;
  if (text instanceof ArrayBuffer) return new Uint8Array(text);
  throw new ArgumentError("argument", "the text must be a string or a Uint8Array");
}
