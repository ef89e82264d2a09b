// Reads the beginning of a file: from memory, from a Blob in slices, or over HTTP.
import { ArgumentError, GgtokError, NetworkError } from "./errors.js";

/**
 * Opens a source, which has `size` (Infinity: unknown), `read(from, to)`, which returns fewer bytes
 * only at the file's end, and `close()`. Each read begins where the last one ended.
 */
export async function open(source, signal) {
  if (source instanceof ArrayBuffer) return new Memory(new Uint8Array(source));
  if (source instanceof Uint8Array) return new Memory(source);
  if (source instanceof Blob) return new Slices(source);
  if (source instanceof URL || typeof source === "string") {
    const url = String(source);
    return url.startsWith("file:") ? FileUrl.open(url) : new Url(url, signal);
  }
  throw new ArgumentError(
    "argument",
    "the source must be an ArrayBuffer, a Uint8Array, a Blob, a File or a URL",
  );
}

class Memory {
  constructor(bytes) {
    this.bytes = bytes;
    this.size = bytes.length;
  }

  async read(from, to) {
    return this.bytes.subarray(from, to);
  }

  close() {}
}

class Slices {
  constructor(blob) {
    this.blob = blob;
    this.size = blob.size;
  }

  async read(from, to) {
    return new Uint8Array(await this.blob.slice(from, to).arrayBuffer());
  }

  close() {}
}

/** A file in Node. Node's Blobs return wrong data for files of more than 2 GB
 * (nodejs/node#52585). */
class FileUrl {
  static async open(url) {
    const { open } = await import("node:fs/promises");
    const self = new FileUrl();
    try {
      self.file = await open(new URL(url));
      self.size = (await self.file.stat()).size;
    } catch (error) {
      self.close();
      throw new GgtokError("io", error.message, { cause: error });
    }
    return self;
  }

  async read(from, to) {
    const bytes = new Uint8Array(to - from);
    let n = 0;
    while (n < bytes.length) {
      const { bytesRead } = await this.file.read(bytes, n, bytes.length - n, from + n);
      if (!bytesRead) break;
      n += bytesRead;
    }
    return bytes.subarray(0, n);
  }

  close() {
    this.file?.close();
  }
}

/** A URL, read by HTTP ranges. If the server sends the whole file instead, it is read as a
 * stream. */
class Url {
  constructor(url, signal) {
    this.url = url;
    this.signal = signal;
    this.size = Infinity;
    this.etag = undefined;
    this.stream = undefined; // reads the answer's body
    this.rest = new Uint8Array(0); // unread bytes of the last chunk
  }

  async read(from, to) {
    if (!this.stream) {
      const ranged = await this.range(from, to);
      if (ranged) return ranged;
    }
    return this.next(to - from);
  }

  /** Returns the bytes of a range, or undefined if the server sends the whole file. */
  async range(from, to) {
    const headers = { Range: `bytes=${from}-${to - 1}` };
    let answer;
    try {
      answer = await fetch(this.url, { headers, signal: this.signal });
    } catch (error) {
      if (this.signal?.aborted) throw error;
      throw new NetworkError("network", `${this.url}: ${error.message}`, { cause: error });
    }
    if (answer.status === 416 || (answer.status === 206 && !answer.body)) {
      await answer.body?.cancel();
      return new Uint8Array(0); // the file ends before `from`
    }
    if (!answer.ok) {
      await answer.body?.cancel();
      throw new NetworkError("status", `${this.url}: the server answered ${answer.status}`, {
        status: answer.status,
      });
    }
    const etag = answer.headers.get("etag");
    if (this.etag !== undefined && etag !== this.etag) {
      await answer.body?.cancel();
      throw new NetworkError("changed", `${this.url}: the file changed while it was read`);
    }
    this.etag = etag;
    this.stream = answer.body?.getReader();
    if (answer.status === 206) {
      // Cross-origin pages see this header only if the server allows it.
      const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(answer.headers.get("content-range") ?? "");
      if (range && Number(range[1]) !== from) {
        this.close();
        throw new NetworkError("range", `${this.url}: the server sent another range`);
      }
      if (range && range[2] !== "*") this.size = Number(range[2]);
      const bytes = await this.next(to - from);
      this.close();
      return bytes;
    }
    const length = Number(answer.headers.get("content-length") ?? NaN);
    const encoded = (answer.headers.get("content-encoding") ?? "identity") !== "identity";
    if (!encoded && Number.isSafeInteger(length)) this.size = length;
    if (from > 0) await this.next(from); // the server stopped honouring ranges: skip
    return undefined;
  }

  /** Returns the next n bytes of the answer, or fewer at its end. */
  async next(n) {
    const parts = [];
    let have = 0;
    while (have < n) {
      if (!this.rest.length) {
        const { done, value } = await this.stream.read();
        if (done) break;
        this.rest = value;
      }
      const part = this.rest.subarray(0, n - have);
      this.rest = this.rest.subarray(part.length);
      parts.push(part);
      have += part.length;
    }
    if (parts.length === 1) return parts[0];
    const bytes = new Uint8Array(have);
    let at = 0;
    for (const part of parts) {
      bytes.set(part, at);
      at += part.length;
    }
    return bytes;
  }

  close() {
    this.stream?.cancel().catch(() => {});
    this.stream = undefined;
    this.rest = new Uint8Array(0);
  }
}
