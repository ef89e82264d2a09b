"""Reads the metadata of GGUF files in Python."""

from __future__ import annotations

import os
import struct
from typing import Any

from ggtok.base.files import read_regular

STRING, ARRAY = 8, 9
# The struct module's format character for each of GGUF's type numbers.
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}


def first_bytes(source: str | bytes, size: int) -> bytes:
    """Returns the first `size` bytes of a GGUF file. As for :func:`ggtok.load`, `source` is a path,
    a model's name, or the file's contents."""
    from ggtok import sources
    from ggtok.sources.files import first_shard

    if isinstance(source, bytes):
        return source[:size]
    path = first_shard(source) if "-of-" in source else source
    if not os.path.exists(path):
        found = sources.find(path)
        if found is not None and found.data is not None:
            return bytes(found.data[:size])
        path = path if found is None else str(found.source.path)
    return read_regular(path, size)


class Reader:
    """A reader of metadata that the C library has already checked."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.at = 4
        self._order = "<" if struct.unpack_from("<I", data, 4)[0] < 1 << 16 else ">"

    def begin(self) -> int:
        """Reads the header. Returns the number of key/value pairs."""
        self.scalars("I", 1)  # skips the version
        n: int = self.scalars("Q", 2)[1]
        return n

    def metadata(self) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for _ in range(self.begin()):
            key = self.string().decode("utf-8", "surrogateescape")
            value = self._value(self.scalars("I", 1)[0])
            values.setdefault(key, value)
        return values

    def scalars(self, kind: str, n: int) -> tuple[Any, ...]:
        form = f"{self._order}{n}{kind}"
        values = struct.unpack_from(form, self._data, self.at)
        self.at += struct.calcsize(form)
        return values

    def little(self, kind: int, n: int) -> bytes:
        """Reads `n` scalars, and returns their bytes in little-endian order."""
        size = struct.calcsize("<" + _SCALARS[kind])
        raw = self._data[self.at : self.at + n * size]
        self.at += len(raw)
        if self._order == "<" or size == 1:
            return raw
        swapped = bytearray(len(raw))
        for i in range(size):
            swapped[i::size] = raw[size - 1 - i :: size]
        return bytes(swapped)

    def string(self) -> bytes:
        (n,) = self.scalars("Q", 1)
        self.at += n
        return self._data[self.at - n : self.at]

    def strings(self, n: int) -> list[bytes]:
        """Reads `n` strings, in one loop for speed."""
        data, at, strings = self._data, self.at, []
        length = struct.Struct(self._order + "Q").unpack_from
        for _ in range(n):
            end = at + 8 + length(data, at)[0]
            strings.append(data[at + 8 : end])
            at = end
        self.at = at
        return strings

    def _value(self, kind: int) -> Any:
        if kind == STRING:
            return self.string()
        if kind != ARRAY:
            return self.scalars(_SCALARS[kind], 1)[0]
        (of,) = self.scalars("I", 1)
        (n,) = self.scalars("Q", 1)
        if of == STRING:
            return self.strings(n)
        values = self.scalars(_SCALARS[of], n)
        return bytearray(b & 0xFF for b in values) if _SCALARS[of] in "Bb" else list(values)
