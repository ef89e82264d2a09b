"""The header of a GGUF file, in which each value is kept as the file's bytes.

The header consists of the key/value pairs and the table of tensors. The tensors' data begins at the
next multiple of the alignment. Positions in the table are relative to the beginning of the data, so
a header can be replaced without changing the table. Values that an edit doesn't change keep their
bytes, type and byte order.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import BinaryIO, NamedTuple

from ggtok.base.files import read_up_to
from ggtok.errors import GGUFError, InvalidTypeError, InvalidValueError
from ggtok.native.gguf import (
    ARRAY,
    BOOL,
    FLOAT32,
    FLOAT64,
    FORMATS,
    INT8,
    INT16,
    INT32,
    INT64,
    STRING,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    FileHeader,
    Pair,
)
from ggtok.sources import prefix

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
_STEP = 1 << 20
_SHOWN_BITS = 128  # the maximum size of an integer that a message quotes, in bits


class HeaderEntry(NamedTuple):
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
        alignment: the tensors' data begins at a multiple of it.
        n_tensors: the number of tensors.
        tensors: the table of tensors, as bytes.
    """

    def __init__(self, file: BinaryIO, name: str) -> None:
        """Reads the header of an open file."""
        self._name = name
        parsed = FileHeader(prefix.read_file(file, name), name)
        data = parsed.data
        self.order = parsed.order
        self.entries = {
            pair.key.decode("utf-8", "surrogateescape"): HeaderEntry(
                pair.kind, data[pair.begin : pair.end]
            )
            for pair in parsed.pairs()
        }
        self._begin = data[:8]
        self.n_tensors = parsed.n_tensors
        self.tensors = self._read_tensors(file, data)
        self.size = len(data) + len(self.tensors)
        self.alignment = self._read_alignment()
        self.data_offset = self.aligned(self.size)

    def aligned(self, size: int) -> int:
        """Returns where the data begins after a header of `size` bytes."""
        return -(-size // self.alignment) * self.alignment

    # ---- values ----

    def value(self, entry: HeaderEntry) -> object:
        """Returns the value of an entry: strings as bytes, arrays as lists."""
        header, pair = self._parsed(entry)
        is_numbers = pair.kind == ARRAY and pair.of != STRING
        return header.numbers(pair) if is_numbers else header.value(pair)

    def length(self, entry: HeaderEntry) -> tuple[int, int]:
        """Returns the type of an array's elements, and their number."""
        _, pair = self._parsed(entry)
        return pair.of, pair.n

    def _parsed(self, entry: HeaderEntry) -> tuple[FileHeader, Pair]:
        """Parses an entry, as the only one of a file."""
        header = FileHeader(self.metadata({"value": entry}))
        return header, next(header.pairs())

    def set_element(
        self, raw: bytearray, of: int, index: int, value: object, name: str
    ) -> tuple[object, bool]:
        """Changes an element in the bytes of an array of scalars. Returns the old value, and
        whether the new value differs from it."""
        packed = self._packed(of, value, name)
        at = 12 + len(packed) * index
        (before,) = struct.unpack_from(self.order + FORMATS[of], raw, at)
        differs = raw[at : at + len(packed)] != packed
        raw[at : at + len(packed)] = packed
        return before, differs

    def encoded(self, kind: int, value: object, key: str, of: int | None = None) -> HeaderEntry:
        """Encodes a value as an entry of type `kind`; `of` is the type of an array's elements.

        Raises InvalidTypeError or InvalidValueError, with the key, if the type can't hold the
        value.
        """
        if kind != ARRAY:
            return HeaderEntry(kind, self._packed(kind, value, key))
        if not isinstance(value, (list, tuple)) or of is None:
            raise InvalidTypeError(f"{key} is an array, not {type(value).__name__}")
        items = (self._packed(of, item, f"{key}[{i}]") for i, item in enumerate(value))
        return HeaderEntry(ARRAY, struct.pack(self.order + "IQ", of, len(value)) + b"".join(items))

    # ---- the whole header ----

    def to_bytes(self, entries: Mapping[str, HeaderEntry], *, tensors: bool = True) -> bytes:
        """Returns the header with these entries, without padding. `tensors` says whether to include
        the table of tensors."""
        n_tensors = self.n_tensors if tensors else 0
        parts = [self._begin, struct.pack(self.order + "QQ", n_tensors, len(entries))]
        for key, entry in entries.items():
            name = key.encode("utf-8", "surrogateescape")
            parts += [struct.pack(self.order + "Q", len(name)), name]
            parts += [struct.pack(self.order + "I", entry.kind), entry.raw]
        return b"".join([*parts, self.tensors if tensors else b""])

    def padded(self, entries: Mapping[str, HeaderEntry]) -> bytes:
        """Returns the header with these entries, padded with zeros up to the start of the data."""
        header = self.to_bytes({key: entry for key, entry in entries.items() if key != PADDING})
        return header + bytes(self.aligned(len(header)) - len(header) if self.n_tensors else 0)

    def metadata(self, entries: Mapping[str, HeaderEntry]) -> bytes:
        """Returns only the values, as a GGUF file without tensors."""
        return self.to_bytes(entries, tensors=False)

    def fitted(self, entries: Mapping[str, HeaderEntry]) -> bytes | None:
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

    def _read_alignment(self) -> int:
        entry = self.entries.get(ALIGNMENT)
        if entry is None or entry.kind != UINT32:
            return 32
        value = int.from_bytes(entry.raw, "little" if self.order == "<" else "big")
        if value.bit_count() != 1:
            raise GGUFError(f"{self._name}: {ALIGNMENT} is {value}, not a power of two")
        return value

    def _read_tensors(self, file: BinaryIO, data: bytes) -> bytes:
        """Returns the table of tensors, which follows the pairs in `data`."""
        size = len(data)
        file.seek(size)
        while (end := FileHeader(data, self._name).tensors()[1]) > len(data):
            # Doubling limits the number of steps, each of which parses from the start.
            data += read_up_to(file, max(_STEP, end - len(data), len(data) - size))
            if end > len(data):
                raise GGUFError(f"{self._name}: the file ends in the table of tensors")
        return data[size:end]

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
