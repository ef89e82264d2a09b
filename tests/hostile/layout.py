"""The positions of lengths, counts, types, keys and values in a valid GGUF file."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from tests.support.patch import FORMATS, TYPES

STR, ARR = TYPES.index("str"), TYPES.index("arr")
SHOWN = 3  # of an array of strings, how many lengths at either end are fields


@dataclass(frozen=True)
class Field:
    name: str  # "n_kv", "key length", "type", ...
    at: int
    size: int
    key: str = ""


@dataclass(frozen=True)
class Layout:
    order: str  # "<" or ">", as in struct
    fields: tuple[Field, ...]
    end: int  # the position after the last key/value pair

    def numbers(self) -> list[Field]:
        """Returns the fields that are lengths and counts."""
        return [f for f in self.fields if f.name.startswith("n_") or f.name.endswith(" length")]

    def heads(self) -> list[int]:
        """Returns the positions of all bytes after the header, except those of arrays' elements."""
        inside = [f for f in self.fields if f.at >= 24 and not f.name.startswith("string")]
        return [at for f in inside for at in range(f.at, f.at + f.size)]

    def contents(self) -> list[int]:
        """Returns the positions of the bytes in the elements of arrays."""
        return sorted(set(range(24, self.end)) - set(self.heads()))


def layout(data: bytes) -> Layout:
    order = "<" if data[4:6] != b"\0\0" else ">"
    u32 = struct.Struct(order + "I").unpack_from
    u64 = struct.Struct(order + "Q").unpack_from
    fields = [Field("version", 4, 4), Field("n_tensors", 8, 8), Field("n_kv", 16, 8)]
    at = 24
    for _ in range(u64(data, 16)[0]):
        (n,) = u64(data, at)
        key = data[at + 8 : at + 8 + n].decode()
        fields += [Field("key length", at, 8, key), Field("key", at + 8, n, key)]
        at += 8 + n
        (kind,) = u32(data, at)
        fields.append(Field("type", at, 4, key))
        at += 4
        if kind == ARR:
            (inner,), (count,) = u32(data, at), u64(data, at + 4)
            fields += [Field("element type", at, 4, key), Field("n_elements", at + 4, 8, key)]
            at += 12
            if inner != STR:
                at += count * struct.calcsize(FORMATS[TYPES[inner]])
                continue
            for i in range(count):
                (n,) = u64(data, at)
                if i < SHOWN or i >= count - SHOWN:
                    fields.append(Field("string length", at, 8, key))
                at += 8 + n
        elif kind == STR:
            (n,) = u64(data, at)
            fields += [Field("value length", at, 8, key), Field("value", at + 8, n, key)]
            at += 8 + n
        else:
            size = struct.calcsize(FORMATS[TYPES[kind]])
            fields.append(Field("value", at, size, key))
            at += size
    return Layout(order, tuple(fields), at)
