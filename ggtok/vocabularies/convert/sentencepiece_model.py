"""Reads and writes the fields of SentencePiece's ``*.model``, a protocol buffer, that ggtok needs.

ModelProto has 1 pieces (1 text, 2 score, 3 type), 2 trainer_spec and 3 normalizer_spec. Field
numbers come from sentencepiece_model.proto. Other fields are skipped. Time and memory are linear in
the file's size, whatever its contents.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ggtok.errors import VocabError
from ggtok.vocabularies.convert.source_files import MAX_TOKENS

UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
MODEL_TYPES = {UNIGRAM: "Unigram", BPE: "BPE", WORD: "word", CHAR: "char"}

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5


@dataclass(slots=True)
class SentencePiece:
    text: bytes
    score: float
    type: int  # the same number as GGUF's token type


@dataclass
class SentencePieceModel:
    """The pieces and settings of a model. Missing fields have the format's defaults."""

    pieces: list[SentencePiece] = field(default_factory=list)
    model_type: int = UNIGRAM
    byte_fallback: bool = False
    whitespace_as_suffix: bool = False
    unk_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    pad_id: int = -1
    unk_piece: bytes = b"<unk>"
    normalizer: bytes = b""
    charsmap: bytes = b""
    add_dummy_prefix: bool = True
    remove_extra_whitespaces: bool = True
    escape_whitespaces: bool = True

    @property
    def vocab_size(self) -> int:
        return len(self.pieces)


# The attribute name and type for each field number of a protobuf message.
_Fields = dict[int, tuple[str, type]]
_PIECE: _Fields = {1: ("text", bytes), 2: ("score", float), 3: ("type", int)}
_TRAINER: _Fields = {
    3: ("model_type", int),
    24: ("whitespace_as_suffix", bool),
    35: ("byte_fallback", bool),
    40: ("unk_id", int),
    41: ("bos_id", int),
    42: ("eos_id", int),
    43: ("pad_id", int),
    45: ("unk_piece", bytes),
}
_NORMALIZER: _Fields = {
    1: ("normalizer", bytes),
    2: ("charsmap", bytes),
    3: ("add_dummy_prefix", bool),
    4: ("remove_extra_whitespaces", bool),
    5: ("escape_whitespaces", bool),
}
_MESSAGES = {1: _PIECE, 2: _TRAINER, 3: _NORMALIZER}


# ---- reading ----


def read_model(data: bytes, where: str = "model") -> SentencePieceModel:
    """Parses a model file's bytes.

    Raises:
        VocabError: the bytes aren't a protocol buffer, or aren't a model.
    """
    model = SentencePieceModel()
    for number, value, at in _fields(data, 0, len(data), where):
        fields = _MESSAGES.get(number)
        if fields is None:
            continue
        if not isinstance(value, tuple):
            raise _malformed_error(where, at, f"field {number} is not a message")
        into: SentencePieceModel | SentencePiece = model
        if fields is _PIECE:
            if len(model.pieces) == MAX_TOKENS:
                raise VocabError(f"{where}: more than {MAX_TOKENS} pieces")
            into = SentencePiece(b"", 0.0, 1)
            model.pieces.append(into)
        for inner, found, place in _fields(data, *value, where):
            if (row := fields.get(inner)) is not None:
                setattr(into, row[0], _convert_value(found, row[1], data, place, where))
    if not model.pieces:
        raise VocabError(f"{where}: has no pieces: not a SentencePiece model")
    return model


# A field's value: an integer, a float, or the span of its bytes.
_Value = int | float | tuple[int, int]


def _fields(data: bytes, at: int, end: int, where: str) -> Iterator[tuple[int, _Value, int]]:
    """Yields the number, value and start of each field between two positions."""
    while at < end:
        start = at
        key, at = _varint(data, at, end, where)
        number, wire = key >> 3, key & 7
        value: _Value
        if wire == _VARINT:
            value, at = _varint(data, at, end, where)
        elif wire == _LENGTH:
            size, at = _varint(data, at, end, where)
            if size > end - at:
                raise _malformed_error(
                    where, start, f"field {number} has {size} bytes: past the end"
                )
            value, at = (at, at + size), at + size
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
            if size > end - at:
                raise _malformed_error(where, start, f"field {number} is cut off")
            at += size
            if wire == _FIXED64:
                continue  # no field of a model has this type
            (value,) = struct.unpack_from("<f", data, at - size)
        else:
            raise _malformed_error(where, start, f"field {number} has the unknown wire type {wire}")
        yield number, value, start


def _varint(data: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise _malformed_error(where, at, "an integer is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise _malformed_error(where, at, "an integer has more than ten bytes")


def _malformed_error(where: str, at: int, reason: str) -> VocabError:
    return VocabError(f"{where}: not a SentencePiece model: byte {at}: {reason}", offset=at)


def _convert_value(value: _Value, kind: type, data: bytes, at: int, where: str) -> object:
    """Converts a field's value to the type `kind`; raises VocabError if that isn't possible."""
    if kind is bytes:
        if not isinstance(value, tuple):
            raise _malformed_error(where, at, "a field is a number, not a text")
        return data[value[0] : value[1]]
    if kind is float:
        if not isinstance(value, float):
            raise _malformed_error(where, at, "a score is not a float")
        return value
    if not isinstance(value, int):
        raise _malformed_error(where, at, "a field is not an integer")
    if kind is bool:
        return value != 0
    value &= (1 << 32) - 1  # an int32 is stored sign-extended
    return value - (1 << 32) if value >> 31 else value


# ---- writing ----


def write_model(model: SentencePieceModel) -> bytes:
    """Converts a model to the bytes of a model file."""
    parts = [_message(1, piece, _PIECE) for piece in model.pieces]
    trainer = dict(sorted({**_TRAINER, 4: ("vocab_size", int)}.items()))
    parts += [_message(2, model, trainer), _message(3, model, _NORMALIZER)]
    return b"".join(parts)


def _message(number: int, of: SentencePieceModel | SentencePiece, fields: _Fields) -> bytes:
    rows = ((inner, getattr(of, name)) for inner, (name, _) in fields.items())
    return _field(number, b"".join([_field(inner, value) for inner, value in rows]))


def _field(number: int, value: bytes | float) -> bytes:
    if isinstance(value, float):
        return _varint_of(number << 3 | _FIXED32) + struct.pack("<f", value)
    if isinstance(value, int):
        return _varint_of(number << 3 | _VARINT) + _varint_of(value)
    return _varint_of(number << 3 | _LENGTH) + _varint_of(len(value)) + value


def _varint_of(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
