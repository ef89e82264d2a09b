// Values of a GGUF file's keys. The module has already checked their bounds.

const TYPES = [
  "u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "string", "array", "u64", "i64", "f64",
]; // prettier-ignore
const STRING = 8;
const ARRAY = 9;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

const FIXED = {
  u8: [1, (v, at) => v.getUint8(at)],
  i8: [1, (v, at) => v.getInt8(at)],
  u16: [2, (v, at, little) => v.getUint16(at, little)],
  i16: [2, (v, at, little) => v.getInt16(at, little)],
  u32: [4, (v, at, little) => v.getUint32(at, little)],
  i32: [4, (v, at, little) => v.getInt32(at, little)],
  f32: [4, (v, at, little) => v.getFloat32(at, little)],
  bool: [1, (v, at) => v.getUint8(at) !== 0],
  u64: [8, (v, at, little) => integer(v.getBigUint64(at, little))],
  i64: [8, (v, at, little) => integer(v.getBigInt64(at, little))],
  f64: [8, (v, at, little) => v.getFloat64(at, little)],
};

/** Returns a number if it is exact, else a bigint. */
function integer(value) {
  const number = Number(value);
  return Number.isSafeInteger(number) ? number : value;
}

/** Returns the i-th key with its value, or with the first `items` elements of an array. */
export function entry(engine, handle, i, items) {
  engine.call("file_key", handle, i);
  const little = !engine.call("file_is_big_endian", handle);
  const report = engine.report;
  const key = engine.string(report.data, report.n);
  const view = new DataView(engine.memory.buffer, report.more, report.nMore);
  if (report.kind !== ARRAY) {
    return { key, type: TYPES[report.kind], value: values(view, report.kind, 1, little)[0] };
  }
  const { number: length, elem } = report;
  const value = values(view, elem, Math.min(length, items), little);
  return { key, type: "array", elementType: TYPES[elem], length, value };
}

function values(view, type, n, little) {
  const found = [];
  if (type === STRING) {
    let at = 0;
    for (let i = 0; i < n; i++) {
      const size = Number(view.getBigUint64(at, little));
      found.push(decoder.decode(new Uint8Array(view.buffer, view.byteOffset + at + 8, size)));
      at += 8 + size;
    }
    return found;
  }
  const [size, read] = FIXED[TYPES[type]];
  for (let i = 0; i < n; i++) found.push(read(view, i * size, little));
  return found;
}
