"""Writes a SentencePiece model as a protocol buffer, field by field.

The field numbers are those in sentencepiece_model.proto. For example, ModelProto has pieces (1),
trainer_spec (2) and normalizer_spec (3).
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

UNIGRAM, BPE = 1, 2
UNKNOWN, UNUSED = 2, 5  # piece types, with the same numbers as GGUF's token types
_VARINT, _LENGTH, _FLOAT = 0, 2, 5


def _varint(n: int) -> bytes:
    out = bytearray()
    while n > 0x7F:
        out.append(n & 0x7F | 0x80)
        n >>= 7
    out.append(n)
    return bytes(out)


def _field(number: int, value: int | bytes) -> bytes:
    if isinstance(value, bytes):
        return _varint(number << 3 | _LENGTH) + _varint(len(value)) + value
    return _varint(number << 3 | _VARINT) + _varint(value)


def _float(number: int, value: float) -> bytes:
    return _varint(number << 3 | _FLOAT) + struct.pack("<f", value)


def model(
    kind: int,
    pieces: Sequence[tuple[bytes, float, int]],
    unk_id: int,
    charsmap: bytes,
    add_dummy_prefix: bool,
    remove_extra_whitespaces: bool,
    byte_fallback: bool,
) -> bytes:
    """Returns a model with these pieces (text, score, type). SentencePiece allows only one UNKNOWN
    piece."""
    out = bytearray()
    for id, (text, score, type) in enumerate(pieces):
        if type == UNKNOWN and id != unk_id:
            type = UNUSED
        out += _field(1, _field(1, text) + _float(2, score) + _field(3, type))
    minus_one = (1 << 64) - 1  # -1: the model has no such token
    trainer = _field(3, kind) + _field(4, len(pieces)) + _field(35, int(byte_fallback))
    trainer += _field(40, unk_id) + b"".join(_field(n, minus_one) for n in (41, 42, 43))
    trainer += _field(45, pieces[unk_id][0])
    normalizer = _field(1, b"identity") + _field(2, charsmap)
    normalizer += _field(3, int(add_dummy_prefix)) + _field(4, int(remove_extra_whitespaces))
    normalizer += _field(5, 1)
    out += _field(2, trainer) + _field(3, normalizer)
    return bytes(out)
