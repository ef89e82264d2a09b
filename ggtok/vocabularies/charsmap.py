"""A charsmap: what characters become, as SentencePiece stores it.

A double array over the bytes of UTF-8 (the format is Darts-clone's), then the texts, each ended
by a zero byte. Each node of the trie has a base: its child by the byte ``b`` is at ``base ^ b``,
the value of a character that ends there at the base itself. A unit holds its label and, by
exclusive or with its place, the base.
"""

from __future__ import annotations

import itertools
import struct
from collections.abc import Mapping

_IS_VALUE = 1 << 31
_HAS_VALUE = 1 << 8
_BASE = 10  # bits that a base is shifted by
# The root's base, and the first base of the other nodes. Below those there are only the 64
# continuation bytes, so their bases are 64 apart.
_ROOT, _OTHERS, _ROW = 256, 512, 64


def charsmap(becomes: Mapping[str, str]) -> bytes:
    """The bytes of a charsmap that replaces each key, one character other than U+0000."""
    texts = bytearray()
    place: dict[str, int] = {}
    for text in becomes.values():
        if text not in place:
            place[text] = len(texts)
            texts += text.encode() + b"\0"
    units = _double_array({character.encode(): place[text] for character, text in becomes.items()})
    trie = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(trie)) + trie + bytes(texts)


def _double_array(values: Mapping[bytes, int]) -> list[int]:
    """The units. No key begins another, as no character does."""
    inner = sorted({key[:i] for key in values for i in range(1, len(key))})
    base = {node: _OTHERS + _ROW * i for i, node in enumerate(inner)} | {b"": _ROOT}
    at = {node: base[node[:-1]] ^ node[-1] for node in (*inner, *values)}
    # No two nodes have one base, or one would have the other's children.
    taken = {*at.values(), *base.values()}
    free = (place for place in itertools.count(_OTHERS) if place not in taken)
    base |= {key: next(free) for key in values}
    last = max([*at.values(), *base.values()])
    units = [0] * ((last | 0xFF) + 1)  # readers look at any base ^ byte
    units[0] = _ROOT << _BASE
    for node, place in at.items():
        units[place] = (place ^ base[node]) << _BASE | node[-1]
    for key, value in values.items():
        units[at[key]] |= _HAS_VALUE
        units[base[key]] = _IS_VALUE | value
    return units
