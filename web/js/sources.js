// Reads the beginning of a file: from memory, from a Blob in slices, from a path, or over HTTP.
import { ArgumentError, NetworkError } from "./errors.js";
import { isLocal, LocalFile, unreadable } from "./node.js";

/**
 * Opens a source. The result has `size` in bytes (Infinity if unknown), `read(from, to)` and
 * `close()`. A read must begin where the previous read ended; it returns fewer bytes than requested
 * only at the end of the file.
 */
export async function open(source, signal) {
  if (source instanceof ArrayBuffer) return new Memory(new Uint8Array(source));
  if (source instanceof Uint8Array) return new Memory(source);
  if (source instanceof Blob) return new Slices(source);
  if (source instanceof URL || typeof source === "string") {
    const address = String(source);
    return isLocal(address) ? LocalFile.open(address) : new Url(address, signal);
  }
  throw new ArgumentError(
    "argument",
    "the source must be an ArrayBuffer, a Uint8Array, a Blob, a File, a URL or, in Node, a path",
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
    const reading = this.blob.slice(from, to).arrayBuffer();
    return new Uint8Array(await reading.catch(unreadable));
  }

  close() {}
}

/** A URL, read by HTTP ranges. If the server sends the whole file instead, its answer is read as a
 * stream. */
class Url {
  constructor(url, signal) {
    this.url = url;
    this.signal = signal;
    this.size = Infinity;
    this.etag = undefined;
    this.stream = undefined; // reader of the current answer's body
    this.rest = new Uint8Array(0); // unread bytes of the last chunk
  }

  async read(from, to) {
    const parts = [];
    for (let at = from; at < to; ) {
      const { bytes, isLast } = this.stream
        ? { bytes: await this.next(to - at), isLast: true }
        : await this.range(at, to);
      parts.push(bytes);
      at += bytes.length;
      if (isLast || !bytes.length) break;
    }
    return joined(parts);
  }

  /** Returns the bytes of a range, or fewer. `isLast`: another request would return no more. */
  async range(from, to) {
    const answer = await this.answer(from, to);
    this.stream = answer.body?.getReader();
    if (answer.status === 206) {
      // Cross-origin pages see this header only if the server allows it.
      const range = /^bytes (\d+)-\d+\/(\d+|\*)$/.exec(answer.headers.get("content-range") ?? "");
      const size = range && range[2] !== "*" ? Number(range[2]) : undefined;
      if (range && (Number(range[1]) !== from || size <= from)) {
        this.close();
        throw new NetworkError("range", `${this.url}: the server sent another range`);
      }
      if (size !== undefined) this.size = size;
      const bytes = await this.next(Math.min(to, this.size) - from);
      this.close();
      // A server may send fewer bytes than requested.
      return { bytes, isLast: !range || from + bytes.length >= Math.min(to, this.size) };
    }
    const length = Number(answer.headers.get("content-length") ?? NaN);
    const encoded = (answer.headers.get("content-encoding") ?? "identity") !== "identity";
    if (!encoded && Number.isSafeInteger(length)) this.size = length;
    if (from > 0) await this.next(from); // the server sent the whole file: skip to `from`
    return { bytes: await this.next(to - from), isLast: true };
  }

  /** Returns the server's answer, with status 200 or 206. The answer is empty if the file ends
   * before `from`. */
  async answer(from, to) {
    const headers = { Range: `bytes=${from}-${to - 1}` };
    const { signal } = this;
    const answer = await this.withNetworkErrors(() => fetch(this.url, { headers, signal }));
    if (answer.status === 416) {
      await answer.body?.cancel();
      return new Response(new Uint8Array(0), { status: 206 });
    }
    if (answer.status !== 200 && answer.status !== 206) {
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
    return answer;
  }

  /** Returns the next n bytes of the answer, or fewer at its end. */
  async next(n) {
    const parts = [];
    let have = 0;
    while (have < n) {
      if (!this.rest.length) {
        const reading = () => this.stream?.read() ?? { done: true };
        const { done, value } = await this.withNetworkErrors(reading);
        if (done) break;
        this.rest = value;
      }
      const part = this.rest.subarray(0, n - have);
      this.rest = this.rest.subarray(part.length);
      parts.push(part);
      have += part.length;
    }
    return joined(parts);
  }

  /** Returns the result of `call`; turns a connection error into a NetworkError. */
  async withNetworkErrors(call) {
    try {
      return await call();
    } catch (error) {
      if (this.signal?.aborted) throw error;
      const reason = error.cause?.message ?? error.message;
      throw new NetworkError("network", `${this.url}: ${reason}`, { cause: error });
    }
  }

  close() {
    this.stream?.cancel().catch(() => {});
    this.stream = undefined;
    this.rest = new Uint8Array(0);
  }
}

function joined(parts) {
  if (parts.length === 1) return parts[0];
  const bytes = new Uint8Array(parts.reduce((n, part) => n + part.length, 0));
  let at = 0;
  for (const part of parts) {
    bytes.set(part, at);
    at += part.length;
  }
  return bytes;
}
