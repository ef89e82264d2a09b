"""Reads the header of any GGUF file: its key/value pairs and the descriptions of its tensors."""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from typing import Any, NamedTuple

from ggtok.native.library import bytes_of, error, ffi, lib, string

UINT8, INT8, UINT16, INT16, UINT32, INT32, FLOAT32, BOOL, STRING, ARRAY = range(10)
UINT64, INT64, FLOAT64 = 10, 11, 12
# The struct module's format character for each type of numbers.
FORMATS = dict(enumerate("BbHhIif?")) | {UINT64: "Q", INT64: "q", FLOAT64: "d"}
_UNSIGNED = {2: "H", 4: "I", 8: "Q"}  # array.array's type codes by size


class Pair(NamedTuple):
    """A key, and where its value is in the file.

    Attributes:
        position: the index among all pairs.
        kind, of: the value's type, and the type of an array's elements (else the same).
        n: the number of elements in an array, else 1.
        begin, end: the range of the value's bytes, which follow its type.
        first: where an array's first element begins; else `begin`.
    """

    position: int
    key: bytes
    kind: int
    of: int
    n: int
    begin: int
    end: int
    first: int


class TensorRow(NamedTuple):
    """The description of a tensor; its data's `offset` is relative to all tensors' data."""

    name: bytes
    dims: tuple[int, ...]
    offset: int


class FileHeader:
    """The key/value pairs and tensors in the first bytes of a GGUF file.

    Attributes:
        data: the file's first bytes.
        order: the byte order, ``"<"`` or ``">"``.
        size: the end of the pairs, which is where the descriptions of tensors begin.
        n_tensors: the number of tensors.
    """

    def __init__(self, data: bytes, name: str | None = None) -> None:
        """Parses the pairs, which `data` must contain. `name` is the file's, for messages.

        Raises:
            GGUFError: the file is malformed, or `data` ends too early.
        """
        out, err = ffi.new("ggtok_header **"), ffi.new("ggtok_error *")
        self.data = data
        self._view = ffi.from_buffer("char[]", data)
        if lib.ggtok_header_open(self._view, len(data), out, err):
            raise error(err, filename=name, data=self._view, file_size=len(data))
        self._name = name
        self._header = ffi.gc(out[0], lib.ggtok_header_free)
        info = lib.ggtok_header_get_info(self._header)
        self.order = ">" if info.big_endian else "<"
        self.size: int = info.size
        self.n_tensors: int = info.n_tensors

    def pairs(self) -> Iterator[Pair]:
        pair = ffi.new("ggtok_pair *")
        i = 0
        while lib.ggtok_header_pair(self._header, i, pair):
            kind, of = int(pair.type), int(pair.elem_type)
            yield Pair(i, bytes_of(pair.key), kind, of, pair.n, pair.begin, pair.end, pair.first)
            i += 1

    def values(self) -> dict[str, Any]:
        """Returns all values by key: strings as bytes, arrays of 8-bit integers as bytearrays,
        other arrays as lists."""
        return {string(pair.key): self.value(pair) for pair in self.pairs()}

    def value(self, pair: Pair) -> Any:
        if pair.of == STRING:
            strings = self.strings(pair)
            return strings if pair.kind == ARRAY else strings[0]
        if pair.kind != ARRAY:
            return self.numbers(pair)[0]
        if pair.of in (UINT8, INT8):
            return bytearray(self.data[pair.first : pair.end])
        return self.numbers(pair)

    def numbers(self, pair: Pair) -> list[Any]:
        """Returns the numbers of an array, or the one number of another pair."""
        form = f"{self.order}{pair.n}{FORMATS[pair.of]}"
        return list(struct.unpack_from(form, self.data, pair.first))

    def strings(self, pair: Pair) -> list[bytes]:
        """Returns the strings of an array, or the one string of another pair."""
        data, begin = self.data, pair.first + 8
        if pair.kind != ARRAY:
            return [data[begin : pair.end]]
        ends, err = array("Q", bytes(8 * pair.n)), ffi.new("ggtok_error *")
        view = ffi.from_buffer("uint64_t[]", ends, require_writable=True)
        if lib.ggtok_header_string_ends(self._header, pair.position, view, err):
            raise error(err, filename=self._name)
        strings = []
        for end in ends:
            strings.append(data[begin:end])
            begin = end + 8
        return strings

    def little_endian(self, pair: Pair) -> bytes:
        """Returns the bytes of a value, as in a little-endian file."""
        if self.order == "<":
            return self.data[pair.begin : pair.end]
        begin = struct.pack("<IQ", pair.of, pair.n) if pair.kind == ARRAY else b""
        if pair.of == STRING:
            size = struct.Struct("<Q").pack
            return begin + b"".join([size(len(text)) + text for text in self.strings(pair)])
        numbers = self.data[pair.first : pair.end]
        code = _UNSIGNED.get(struct.calcsize("<" + FORMATS[pair.of]))
        if code is not None:
            swapped = array(code, numbers)
            swapped.byteswap()
            numbers = swapped.tobytes()
        return begin + numbers

    def tensors(self) -> tuple[list[TensorRow], int]:
        """Returns the tensors whose descriptions `data` contains, and where the last of all
        descriptions ends; if `data` doesn't contain it, the least number of bytes to read.

        Raises:
            GGUFError: a description is malformed.
        """
        tensor, err = ffi.new("ggtok_tensor *"), ffi.new("ggtok_error *")
        rows, end = [], self.size
        for _ in range(self.n_tensors):
            if lib.ggtok_header_tensor(self._header, end, tensor, err):
                raise error(err, filename=self._name)
            end = tensor.end
            if end > len(self.data):
                break
            dims = tuple(tensor.dims[i] for i in range(tensor.n_dims))
            rows.append(TensorRow(bytes_of(tensor.name), dims, tensor.offset))
        return rows, end
