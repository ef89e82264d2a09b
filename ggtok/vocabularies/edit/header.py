"""The header of a GGUF file, in which each value is kept as the file's bytes.

The header consists of the key/value pairs and the table of tensors. The tensors' data begins at the
next multiple of the alignment. Positions in the table are relative to the beginning of the data, so
a header can be replaced without changing the table. Values that an edit doesn't change keep their
bytes, type and byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from ggtok.base.files import read_up_to
from ggtok.errors import GGUFError, InvalidTypeError, InvalidValueError
from ggtok.sources import prefix

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = range(10)
UINT64, INT64, FLOAT64 = 10, 11, 12
FORMATS = dict(enumerate("BbHhIif?")) | {UINT64: "Q", INT64: "q", FLOAT64: "d"}
NAMES = {
    UINT8: "uint8",
    INT8: "int8",
    UINT16: "uint16",
    INT16: "int16",
    UINT32: "uint32",
    INT32: "int32",
    FLOAT32: "float32",
    BOOL: "bool",
    STRING: "string",
    ARRAY: "array",
    UINT64: "uint64",
    INT64: "int64",
    FLOAT64: "float64",
}
ALIGNMENT = "general.alignment"
PADDING = "ggtok.padding"
_FIRST = 24  # the number of bytes of the magic, the version and the two counts
_STEP = 1 << 20
_MOST_DIMENSIONS = 4
_SHOWN_BITS = 128  # the maximum size of an integer that a message quotes, in bits


class Entry(NamedTuple):
    """A value: its type, and its bytes in the file (without the key and the type)."""

    kind: int
    raw: bytes


class Header:
    """The header of a GGUF file.

    Attributes:
        entries: the values by key, in the order of the file.
        order: the byte order, ``"<"`` or ``">"``.
        size: the size of the header in bytes, without padding.
        data_offset: where the tensors' data begins.
        n_tensors: the number of tensors.
        tensors: the table of tensors, as bytes.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Reads the header of an open file, which the C library has already checked."""
        self._name = name
        data = prefix.read_file(file, name)
        file.seek(len(data))
        version = data[4:8]
        self.order = "<" if struct.unpack("<I", version)[0] < 1 << 16 else ">"
        self._begin = data[:8]
        self.n_tensors, n_entries = self._unpack("QQ", data, 8)
        self.entries: dict[str, Entry] = {}
        at = _FIRST
        for _ in range(n_entries):
            (length,) = self._unpack("Q", data, at)
            key = data[at + 8 : at + 8 + length].decode("utf-8", "surrogateescape")
            at += 8 + length
            (kind,) = self._unpack("I", data, at)
            begin = at + 4
            at = self._end(data, begin, kind)
            self.entries.setdefault(key, Entry(kind, data[begin:at]))
        self.tensors = self._read_tensors(file)
        self.size = at + len(self.tensors)
        self.data_offset = self.aligned(self.size)

    @property
    def alignment(self) -> int:
        entry = self.entries.get(ALIGNMENT)
        value = 32 if entry is None or entry.kind != UINT32 else self.value(entry)
        assert isinstance(value, int)
        return value

    def aligned(self, size: int) -> int:
        """Returns where the data begins after a header of `size` bytes."""
        return -(-size // self.alignment) * self.alignment

    # ---- values ----

    def value(self, entry: Entry) -> object:
        """Returns the value of an entry: strings as bytes, arrays as lists."""
        kind, raw = entry
        if kind == STRING:
            return raw[8:]
        if kind != ARRAY:
            return self._unpack(FORMATS[kind], raw, 0)[0]
        of, n = self._unpack("IQ", raw, 0)
        if of == STRING:
            return list(self._strings(raw, n))
        return list(self._unpack(f"{n}{FORMATS[of]}", raw, 12))

    def length(self, entry: Entry) -> tuple[int, int]:
        """Returns the type of an array's elements, and their number."""
        return self._unpack("IQ", entry.raw, 0)  # type: ignore[return-value]

    def set_element(
        self, raw: bytearray, index: int, value: object, name: str
    ) -> tuple[object, bool]:
        """Changes an element in the bytes of an array of scalars. Returns the old value, and
        whether the new value differs from it."""
        (of,) = self._unpack("I", raw, 0)
        packed = self._packed(of, value, name)
        at = 12 + len(packed) * index
        (before,) = self._unpack(FORMATS[of], raw, at)
        differs = raw[at : at + len(packed)] != packed
        raw[at : at + len(packed)] = packed
        return before, differs

    def encoded(self, kind: int, value: object, key: str, of: int | None = None) -> Entry:
        """Encodes a value as an entry of type `kind`; `of` is the type of an array's elements.

        Raises InvalidTypeError or InvalidValueError, with the key, if the type can't hold the
        value.
        """
        if kind != ARRAY:
            return Entry(kind, self._packed(kind, value, key))
        if not isinstance(value, (list, tuple)) or of is None:
            raise InvalidTypeError(f"{key} is an array, not {type(value).__name__}")
        items = (self._packed(of, item, f"{key}[{i}]") for i, item in enumerate(value))
        return Entry(ARRAY, struct.pack(self.order + "IQ", of, len(value)) + b"".join(items))

    # ---- the whole header ----

    def to_bytes(self, entries: Mapping[str, Entry], *, tensors: bool = True) -> bytes:
        """Returns the header with these entries, without padding. `tensors` says whether to include
        the table of tensors."""
        n_tensors = self.n_tensors if tensors else 0
        parts = [self._begin, struct.pack(self.order + "QQ", n_tensors, len(entries))]
        for key, entry in entries.items():
            name = key.encode("utf-8", "surrogateescape")
            parts += [struct.pack(self.order + "Q", len(name)), name]
            parts += [struct.pack(self.order + "I", entry.kind), entry.raw]
        return b"".join([*parts, self.tensors if tensors else b""])

    def padded(self, entries: Mapping[str, Entry]) -> bytes:
        """Returns the header with these entries, padded with zeros up to the start of the data."""
        header = self.to_bytes({key: entry for key, entry in entries.items() if key != PADDING})
        return header + bytes(self.aligned(len(header)) - len(header) if self.n_tensors else 0)

    def metadata(self, entries: Mapping[str, Entry]) -> bytes:
        """Returns only the values, as a GGUF file without tensors."""
        return self.to_bytes(entries, tensors=False)

    def fitted(self, entries: Mapping[str, Entry]) -> bytes | None:
        """Returns the header with these entries, padded so that the data begins where it does now.
        Returns None if that isn't possible: the entries are too large, or too few bytes remain for
        the padding."""
        entries = {key: entry for key, entry in entries.items() if key != PADDING}
        size = len(self.to_bytes(entries))
        if self.aligned(size) != self.data_offset:
            key = len(PADDING)
            room = self.data_offset - size - (8 + key + 4 + 8)
            if room < 0:
                return None
            entries[PADDING] = self.encoded(STRING, b" " * room, PADDING)
        header = self.to_bytes(entries)
        return header + bytes(self.data_offset - len(header))

    # ---- the parts of the file ----

    def _unpack(self, form: str, data: bytes | bytearray, at: int) -> tuple[int, ...]:
        return struct.unpack_from(self.order + form, data, at)

    def _end(self, data: bytes, at: int, kind: int) -> int:
        """Returns where the value at `at` ends."""
        if kind == STRING:
            return at + 8 + self._unpack("Q", data, at)[0]
        if kind != ARRAY:
            return at + struct.calcsize("<" + FORMATS[kind])
        of, n = self._unpack("IQ", data, at)
        at += 12
        if of != STRING:
            return at + n * struct.calcsize("<" + FORMATS[of])
        length = struct.Struct(self.order + "Q").unpack_from
        for _ in range(n):
            at += 8 + length(data, at)[0]
        return at

    def _strings(self, raw: bytes, n: int) -> Iterator[bytes]:
        at = 12
        for _ in range(n):
            end = at + 8 + self._unpack("Q", raw, at)[0]
            yield raw[at + 8 : end]
            at = end

    def _read_tensors(self, file: BinaryIO) -> bytes:
        """Returns the table of tensors, which follows the values."""
        data, at = bytearray(), 0

        def unpack(form: str) -> tuple[int, ...]:
            nonlocal at
            end = at + struct.calcsize("<" + form)
            ensure(end)
            values = struct.unpack_from(self.order + form, data, at)
            at = end
            return values

        def ensure(end: int) -> None:
            if end > len(data):
                data.extend(read_up_to(file, max(_STEP, end - len(data))))
            if end > len(data):
                raise GGUFError(f"{self._name}: the file ends in the table of tensors")

        for i in range(self.n_tensors):
            (length,) = unpack("Q")
            if length > _STEP:
                raise GGUFError(f"{self._name}: the name of tensor {i} has {length} bytes")
            at += length
            (n,) = unpack("I")
            if n > _MOST_DIMENSIONS:
                raise GGUFError(f"{self._name}: tensor {i} has {n} dimensions")
            unpack(f"{n}QIQ")
        return bytes(data[:at])

    def _packed(self, kind: int, value: object, key: str) -> bytes:
        if kind == STRING:
            if isinstance(value, str):
                value = utf8(value, key)
            if not isinstance(value, bytes):
                raise InvalidTypeError(f"{key} is a string, not {type(value).__name__}")
            return struct.pack(self.order + "Q", len(value)) + value
        if kind == ARRAY:
            raise InvalidTypeError(f"{key}: arrays of arrays can't be changed")
        expected = {BOOL: (bool,), FLOAT32: (int, float), FLOAT64: (int, float)}.get(kind, (int,))
        if not isinstance(value, expected) or (kind != BOOL and isinstance(value, bool)):
            raise InvalidTypeError(f"{key} is {NAMES[kind]}, not {type(value).__name__}")
        try:
            return struct.pack(self.order + FORMATS[kind], value)
        except (struct.error, OverflowError):
            bits = value.bit_length() if isinstance(value, int) else 0
            number = repr(value) if bits <= _SHOWN_BITS else f"a number of {bits} bits"
            message = f"{key} is {NAMES[kind]}, which can't be {number}"
            raise InvalidValueError(message) from None


def utf8(text: str, name: str) -> bytes:
    """Encodes a string, in which surrogates stand for bytes that aren't UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        raise InvalidValueError(
            f"{name}: the character {e.start} is a lone surrogate, which UTF-8 can't contain"
        ) from None
