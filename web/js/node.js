// What only Node has: files by their paths, and ggtok.wasm beside this file.
import { GgtokError } from "./errors.js";

const IS_NODE = typeof process === "object" && Boolean(process?.versions?.node);
const SCHEME = /^[a-z][a-z0-9+.-]+:/i; // of at least two letters: "C:" is a drive

/** Whether a source is a file's path or a "file:" URL, as text. */
export function isLocal(source) {
  return source.startsWith("file:") || (IS_NODE && !SCHEME.test(source));
}

/** Returns the bytes of the package's ggtok.wasm, or undefined outside Node. */
export function packagedModule() {
  return IS_NODE ? readModule() : undefined;
}

async function readModule() {
  try {
    const { readFile } = await import("node:fs/promises");
    return await readFile(new URL("./ggtok.wasm", import.meta.url));
  } catch (cause) {
    const how = "run 'npm run prepare' in the folder web/js, or call init() with ggtok.wasm";
    throw new GgtokError("init", `ggtok.wasm can't be read: ${how}`, { cause });
  }
}

export function unreadable(error) {
  throw new GgtokError("io", error.message, { cause: error });
}

/** A file in Node, read without a Blob: Node's Blobs return wrong data for files of more than 2 GB
 * (nodejs/node#52585). */
export class LocalFile {
  static async open(source) {
    const self = new LocalFile();
    self.name = source; // for errors
    try {
      const { open } = await import("node:fs/promises");
      self.file = await open(source.startsWith("file:") ? new URL(source) : source);
      self.size = (await self.file.stat()).size;
    } catch (error) {
      self.close();
      unreadable(error);
    }
    return self;
  }

  async read(from, to) {
    const bytes = new Uint8Array(to - from);
    let n = 0;
    while (n < bytes.length) {
      const reading = this.file.read(bytes, n, bytes.length - n, from + n);
      const { bytesRead } = await reading.catch(unreadable);
      if (!bytesRead) break;
      n += bytesRead;
    }
    return bytes.subarray(0, n);
  }

  close() {
    this.file?.close();
  }
}
