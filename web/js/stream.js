// Decodes ids that arrive one by one.

export const STREAM = { unparseSpecial: true }; // the options

/** Returns a stream decoder. `decodeBytes` returns the bytes of ids, or a promise of the bytes. */
export function streamOver(decodeBytes) {
  const decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  const text = (bytes) => decoder.decode(bytes, { stream: true });
  return {
    feed(ids) {
      const bytes = decodeBytes(typeof ids === "number" ? [ids] : ids);
      return bytes instanceof Uint8Array ? text(bytes) : bytes.then(text);
    },
    finish: () => decoder.decode(),
  };
}
