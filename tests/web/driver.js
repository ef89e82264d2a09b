// Runs the tests' commands, in Node and in a browser. Values are JSON, with these additions:
// {"$bytes": base64} for bytes, {"$file": address} for a file (a Blob in browsers, a URL in Node),
// {"$contents": address} for a file's bytes, {"$repeat": [text, times]} and {"$date": [year, ...]}.
import * as ggtok from "../../web/js/index.js";

const tokenizers = [];
const memories = []; // memories of all instances of the WebAssembly module
const { Instance } = WebAssembly;
WebAssembly.Instance = function (...args) {
  const instance = new Instance(...args);
  memories.push(instance.exports.memory);
  return instance;
};

export async function run(command, open) {
  try {
    return { result: encoded(await COMMANDS[command.do](command, open)) };
  } catch (error) {
    const { name, message, stack } = error;
    const isGgtok = error instanceof ggtok.GgtokError;
    return { error: { ...error, name, message, stack, isGgtok, cause: String(error.cause) } };
  }
}

const COMMANDS = {
  async init({ wasm }, open) {
    await ggtok.init(await contents(await decoded(wasm, open)));
  },
  /** Drops all references to tokenizers, so that their memory can be freed. */
  async forget() {
    tokenizers.length = memories.length = 0;
  },
  async load({ source, options: { aborted, ...options } = {}, worker = false }, open) {
    const given = await decoded(source, open);
    const progress = [];
    if (options.onProgress) options.onProgress = (p) => progress.push(p);
    if (aborted) options.signal = AbortSignal.abort();
    const load = worker ? ggtok.WorkerTokenizer.load : ggtok.load;
    const tokenizer = await load(given, options);
    tokenizers.push(tokenizer);
    return { number: tokenizers.length - 1, info: tokenizer.info, progress };
  },
  async call({ number, method, args }, open) {
    return tokenizers[number][method](...(await Promise.all(args.map((a) => decoded(a, open)))));
  },
  /** Calls a method with each list of arguments. Errors are returned as results. */
  async each({ number, method, all }, open) {
    const results = [];
    for (const args of all) {
      results.push(await run({ do: "call", number, method, args }, open));
    }
    return results;
  },
  /** Returns a stream decoder's text for each id, and its text at the end. */
  async stream({ number, ids, options }) {
    const stream = tokenizers[number].streamDecoder(options);
    const texts = [];
    for (const id of ids) texts.push(await stream.feed(id));
    return [...texts, stream.finish()];
  },
  /** Feeds parts of a text; returns the ids after each part (final and pending), and all at the
   * end. */
  async grow({ number, parts, options }, open) {
    const stream = tokenizers[number].streamEncoder(options);
    const final = [];
    const after = [];
    for (const part of parts) {
      final.push(...(await stream.feed(await decoded(part, open))));
      after.push([...final, ...(await stream.pending())]);
      if ((await stream.count()) !== after.at(-1).length) throw new Error("a wrong count");
    }
    return { after, n: final.length, whole: [...final, ...(await stream.finish())] };
  },
  /** Repeatedly loads, uses and frees a source; returns the modules' memory size after each
   * time. */
  async loadAndFree({ source, times }, open) {
    const given = await decoded(source, open);
    const sizes = [];
    for (let i = 0; i < times; i++) {
      const tokenizer = await ggtok.load(given);
      tokenizer.spans("Hello, world! ".repeat(100), { unit: "utf16" });
      tokenizer.decode(tokenizer.encode("Hello"));
      const request = { messages: [{ role: "user", content: "Hello" }] };
      tokenizer.encodeChat(request, { template: "chatml" });
      tokenizer.pieces();
      tokenizer.merges();
      tokenizer.free();
      sizes.push(memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0));
    }
    return sizes;
  },
  /** Loads the first n bytes of a source for each n; returns the errors' names, or null. */
  async truncated({ source, sizes }, open) {
    const whole = await contents(await decoded(source, open));
    const names = [];
    for (const size of sizes) {
      try {
        (await ggtok.load(whole.slice(0, size))).free();
        names.push(null);
      } catch (error) {
        names.push(error.name);
      }
    }
    return names;
  },
};

/** Returns the bytes of a Blob or, in Node, of a file URL. */
async function contents(file) {
  if (file instanceof Blob) return new Uint8Array(await file.arrayBuffer());
  return new Uint8Array(await (await import("node:fs/promises")).readFile(file));
}

async function decoded(value, open) {
  if (value === null || typeof value !== "object") return value;
  if (Array.isArray(value)) {
    const isPlain = value.every((item) => item === null || typeof item !== "object"); // a long list of ids
    return isPlain ? value : Promise.all(value.map((item) => decoded(item, open)));
  }
  if ("$bytes" in value) return Uint8Array.from(atob(value.$bytes), (c) => c.charCodeAt(0));
  if ("$file" in value) return open(value.$file);
  if ("$contents" in value) return contents(await open(value.$contents));
  if ("$repeat" in value) return value.$repeat[0].repeat(value.$repeat[1]);
  if ("$date" in value) return new Date(...value.$date);
  const entries = Object.entries(value).map(async ([k, v]) => [k, await decoded(v, open)]);
  return Object.fromEntries(await Promise.all(entries));
}

function encoded(value) {
  if (value instanceof Uint8Array) {
    let text = "";
    for (let i = 0; i < value.length; i += 4096) {
      text += String.fromCharCode(...value.subarray(i, i + 4096));
    }
    return { $bytes: btoa(text) };
  }
  if (ArrayBuffer.isView(value)) return Array.from(value, encoded);
  if (typeof value === "bigint") return Number(value);
  if (Object.is(value, -0)) return { $float: "-0" };
  if (typeof value === "number" && !Number.isFinite(value)) return { $float: String(value) };
  if (Array.isArray(value)) return value.map(encoded);
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, encoded(v)]));
  }
  return value;
}
