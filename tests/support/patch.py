"""Reads and rewrites the key/value pairs of small GGUF files, pair by pair, in milliseconds.

This reader is independent of ggtok's, which the tests check, and of the gguf package's, which takes
seconds for a large vocabulary. It raises an error for files with tensors.

    gguf = GGUF.read(path)
    gguf.set("tokenizer.ggml.pre", "qwen2")
    gguf.set("tokenizer.ggml.eos_token_id", 7)          # keeps the key's type
    gguf.set("tokenizer.ggml.scores", [1, 2], "i32")    # an array of another type
    gguf.write(other)
"""

from __future__ import annotations

import os
import struct
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

Scalar = int | float | bool | bytes
Value = Scalar | list[Scalar]

TYPES = ("u8", "i8", "u16", "i16", "u32", "i32", "f32", "bool", "str", "arr", "u64", "i64", "f64")
FORMATS = dict(
    zip(
        (t for t in TYPES if t not in ("str", "arr")),
        ("B", "b", "H", "h", "I", "i", "f", "?", "Q", "q", "d"),
        strict=True,
    )
)
_STR, _ARR = TYPES.index("str"), TYPES.index("arr")


class GGUF:
    """The header and the raw key/value pairs of a file, in order."""

    def __init__(self, version: int, order: str) -> None:
        self.version = version
        self.order = order  # "<" or ">", as in struct
        # Each value as raw bytes, preceded by its type.
        self.raw: dict[bytes, bytes] = {}

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> GGUF:
        status = os.stat(path)
        parsed = _parsed(os.fspath(path), status.st_mtime_ns, status.st_size)
        self = cls(parsed.version, parsed.order)
        self.raw = dict(parsed.raw)
        return self

    @classmethod
    def parse(cls, data: bytes) -> GGUF:
        if data[:4] != b"GGUF":
            raise ValueError("not a GGUF file")
        order = "<" if data[4:6] != b"\0\0" else ">"
        version, n_tensors, n_kv = struct.unpack_from(order + "IQQ", data, 4)
        if n_tensors:
            raise ValueError("the file has tensors")
        self = cls(version, order)
        at = 24
        for _ in range(n_kv):
            key, at = self._string(data, at)
            end = self._skip(data, at)
            self.raw[key] = data[at:end]
            at = end
        return self

    def _string(self, data: bytes, at: int) -> tuple[bytes, int]:
        (n,) = struct.unpack_from(self.order + "Q", data, at)
        return data[at + 8 : at + 8 + n], at + 8 + n

    def _skip(self, data: bytes, at: int) -> int:
        (kind,) = struct.unpack_from(self.order + "I", data, at)
        at += 4
        n = 1
        if kind == _ARR:
            kind, n = struct.unpack_from(self.order + "IQ", data, at)
            at += 12
        if kind != _STR:
            return at + n * struct.calcsize(FORMATS[TYPES[kind]])
        unpack = struct.Struct(self.order + "Q").unpack_from
        for _ in range(n):
            at += 8 + unpack(data, at)[0]
        return at

    def __contains__(self, key: str) -> bool:
        return key.encode() in self.raw

    def type(self, key: str) -> str:
        """Returns the type of a scalar, or of an array's elements."""
        raw = self.raw[key.encode()]
        kind, inner = struct.unpack_from(self.order + "II", raw + bytes(4))
        return TYPES[inner if kind == _ARR else kind]

    def get(self, key: str) -> Value:
        """Returns the value of a key: a scalar or an array, with strings as bytes."""
        raw = self.raw[key.encode()]
        (kind,) = struct.unpack_from(self.order + "I", raw)
        if kind != _ARR:
            return self._elements(TYPES[kind], 1, raw, 4)[0]
        inner, n = struct.unpack_from(self.order + "IQ", raw, 4)
        return self._elements(TYPES[inner], n, raw, 16)

    def array(self, key: str) -> list[Scalar]:
        value = self.get(key)
        assert isinstance(value, list)
        return value

    def strings(self, key: str) -> list[bytes]:
        return [value for value in self.array(key) if isinstance(value, bytes)]

    def _elements(self, kind: str, n: int, raw: bytes, at: int) -> list[Scalar]:
        if kind != "str":
            return list(struct.unpack_from(f"{self.order}{n}{FORMATS[kind]}", raw, at))
        strings: list[Scalar] = []
        for _ in range(n):
            string, at = self._string(raw, at)
            strings.append(string)
        return strings

    def set(self, key: str, value: object, kind: str | None = None) -> None:
        """Sets a scalar or, from a list or tuple, an array.

        `kind` is the type of the scalar or of the elements. By default, it is the key's current
        type or, for a new key, follows from the value.
        """
        many = isinstance(value, list | tuple)
        values: Sequence[object] = value if isinstance(value, list | tuple) else [value]
        if kind is None:
            kind = self.type(key) if key in self else _natural(values)
        if kind == "str":
            strings = [s.encode() if isinstance(s, str) else s for s in values]
            body = b"".join(
                struct.pack(self.order + "Q", len(s)) + s for s in strings if isinstance(s, bytes)
            )
        else:
            body = struct.pack(f"{self.order}{len(values)}{FORMATS[kind]}", *values)
        head = struct.pack(self.order + "I", TYPES.index(kind))
        if many:
            head = struct.pack(self.order + "I", _ARR) + head
            head += struct.pack(self.order + "Q", len(values))
        self.raw[key.encode()] = head + body

    def remove(self, *keys: str) -> None:
        for key in keys:
            self.raw.pop(key.encode(), None)

    def dump(self) -> bytes:
        parts = [b"GGUF", struct.pack(self.order + "IQQ", self.version, 0, len(self.raw))]
        for key, raw in self.raw.items():
            parts += [struct.pack(self.order + "Q", len(key)), key, raw]
        return b"".join(parts)

    def write(self, path: str | os.PathLike[str]) -> Path:
        Path(path).write_bytes(self.dump())
        return Path(path)


@lru_cache(maxsize=4)
def _parsed(path: str, changed: int, size: int) -> GGUF:
    """Parses a file. The result is cached, because many tests modify copies of the same file."""
    return GGUF.parse(Path(path).read_bytes())


def add_tokens(gguf: GGUF, texts: Sequence[str | bytes], types: int | Sequence[int]) -> None:
    kinds = [types] * len(texts) if isinstance(types, int) else types
    added = {"tokens": texts, "token_type": kinds, "scores": [0.0] * len(texts)}
    for name, values in added.items():
        key = f"tokenizer.ggml.{name}"
        if key in gguf:
            gguf.set(key, [*gguf.array(key), *values], gguf.type(key))


def _natural(values: Sequence[object]) -> str:
    first = values[0] if values else 0
    kinds = ((bool, "bool"), (int, "u32"), (float, "f32"), (str | bytes, "str"))
    for python, kind in kinds:  # bool comes first, because it is a subclass of int
        if isinstance(first, python):
            return kind
    raise TypeError(f"no GGUF type for {first!r}")
