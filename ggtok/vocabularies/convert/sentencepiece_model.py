"""Reads and writes SentencePiece's ``*.model``: the needed fields of its protocol buffer.

ModelProto has 1 pieces (1 text, 2 score, 3 type), 2 trainer_spec and 3 normalizer_spec. The numbers
of fields are those of sentencepiece_model.proto. Other fields are skipped. Time and memory are
linear in the file's size, whatever its contents.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field

from ggtok.errors import VocabError
from ggtok.vocabularies.convert.reading import MAX_TOKENS

UNIGRAM, BPE, WORD, CHAR = 1, 2, 3, 4
MODEL_TYPES = {UNIGRAM: "Unigram", BPE: "BPE", WORD: "word", CHAR: "char"}

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5
_PIECES, _TRAINER, _NORMALIZER = 1, 2, 3
_TEXT, _SCORE, _TYPE = 1, 2, 3
_MODEL_TYPE, _SUFFIX, _BYTE_FALLBACK = 3, 24, 35
_UNK, _BOS, _EOS, _PAD, _UNK_PIECE = 40, 41, 42, 43, 45
_NAME, _CHARSMAP, _DUMMY_PREFIX, _EXTRA_SPACES, _ESCAPE = 1, 2, 3, 4, 5


@dataclass(slots=True)
class Piece:
    text: bytes
    score: float
    type: int  # the numbers equal GGUF's token types


@dataclass
class Model:
    """The pieces and settings of a model. Missing fields have the format's defaults."""

    pieces: list[Piece] = field(default_factory=list)
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


# ---- reading ----


def read_model(data: bytes, where: str = "model") -> Model:
    """A model from a file's bytes.

    Raises:
        VocabError: the bytes aren't a protocol buffer, or aren't a model.
    """
    model = Model()
    for number, value, at in _fields(data, 0, len(data), where):
        if number not in (_PIECES, _TRAINER, _NORMALIZER):
            continue
        if not isinstance(value, tuple):
            raise _malformed(where, at, f"field {number} is not a message")
        start, end = value
        if number == _PIECES:
            if len(model.pieces) == MAX_TOKENS:
                raise VocabError(f"{where}: more than {MAX_TOKENS} pieces")
            model.pieces.append(_piece(data, start, end, where))
        elif number == _TRAINER:
            _read_trainer(model, data, start, end, where)
        else:
            _read_normalizer(model, data, start, end, where)
    if not model.pieces:
        raise VocabError(f"{where}: has no pieces: not a SentencePiece model")
    return model


# The value of a field: an integer, a float, or the span of its bytes.
_Value = int | float | tuple[int, int]


def _fields(data: bytes, at: int, end: int, where: str) -> Iterator[tuple[int, _Value, int]]:
    """The fields between two positions: number, value and start."""
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
                raise _malformed(where, start, f"field {number} has {size} bytes: past the end")
            value, at = (at, at + size), at + size
        elif wire in (_FIXED32, _FIXED64):
            size = 4 if wire == _FIXED32 else 8
            if size > end - at:
                raise _malformed(where, start, f"field {number} is cut off")
            at += size
            if wire == _FIXED64:
                continue  # no field of a model has this type
            (value,) = struct.unpack_from("<f", data, at - size)
        else:
            raise _malformed(where, start, f"field {number} has the unknown wire type {wire}")
        yield number, value, start


def _varint(data: bytes, at: int, end: int, where: str) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise _malformed(where, at, "an integer is cut off")
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value & (1 << 64) - 1, at
    raise _malformed(where, at, "an integer has more than ten bytes")


def _malformed(where: str, at: int, reason: str) -> VocabError:
    return VocabError(f"{where}: not a SentencePiece model: byte {at}: {reason}", offset=at)


def _piece(data: bytes, start: int, end: int, where: str) -> Piece:
    piece = Piece(b"", 0.0, 1)
    for number, value, at in _fields(data, start, end, where):
        if number == _TEXT:
            piece.text = _span(data, value, at, where)
        elif number == _SCORE:
            if not isinstance(value, float):
                raise _malformed(where, at, "a score is not a float")
            piece.score = value
        elif number == _TYPE:
            piece.type = _integer(value, at, where)
    return piece


def _read_trainer(model: Model, data: bytes, start: int, end: int, where: str) -> None:
    for number, value, at in _fields(data, start, end, where):
        if number == _MODEL_TYPE:
            model.model_type = _integer(value, at, where)
        elif number == _SUFFIX:
            model.whitespace_as_suffix = _flag(value, at, where)
        elif number == _BYTE_FALLBACK:
            model.byte_fallback = _flag(value, at, where)
        elif number == _UNK:
            model.unk_id = _integer(value, at, where)
        elif number == _BOS:
            model.bos_id = _integer(value, at, where)
        elif number == _EOS:
            model.eos_id = _integer(value, at, where)
        elif number == _PAD:
            model.pad_id = _integer(value, at, where)
        elif number == _UNK_PIECE:
            model.unk_piece = _span(data, value, at, where)


def _read_normalizer(model: Model, data: bytes, start: int, end: int, where: str) -> None:
    for number, value, at in _fields(data, start, end, where):
        if number == _NAME:
            model.normalizer = _span(data, value, at, where)
        elif number == _CHARSMAP:
            model.charsmap = _span(data, value, at, where)
        elif number == _DUMMY_PREFIX:
            model.add_dummy_prefix = _flag(value, at, where)
        elif number == _EXTRA_SPACES:
            model.remove_extra_whitespaces = _flag(value, at, where)
        elif number == _ESCAPE:
            model.escape_whitespaces = _flag(value, at, where)


def _span(data: bytes, value: _Value, at: int, where: str) -> bytes:
    if not isinstance(value, tuple):
        raise _malformed(where, at, "a field is a number, not a text")
    return data[value[0] : value[1]]


def _flag(value: _Value, at: int, where: str) -> bool:
    if not isinstance(value, int):
        raise _malformed(where, at, "a field is not an integer")
    return value != 0


def _integer(value: _Value, at: int, where: str) -> int:
    """An int32, which is stored sign-extended."""
    if not isinstance(value, int):
        raise _malformed(where, at, "a field is not an integer")
    value &= (1 << 32) - 1
    return value - (1 << 32) if value >> 31 else value


# ---- writing ----


def write_model(model: Model) -> bytes:
    """The bytes of a model file."""
    parts = [
        _message(
            _PIECES,
            _bytes_field(_TEXT, piece.text)
            + _tag(_SCORE, _FIXED32)
            + struct.pack("<f", piece.score)
            + _int_field(_TYPE, piece.type),
        )
        for piece in model.pieces
    ]
    trainer = [
        _int_field(_MODEL_TYPE, model.model_type),
        _int_field(4, len(model.pieces)),  # vocab_size
        _int_field(_SUFFIX, model.whitespace_as_suffix),
        _int_field(_BYTE_FALLBACK, model.byte_fallback),
        _int_field(_UNK, model.unk_id),
        _int_field(_BOS, model.bos_id),
        _int_field(_EOS, model.eos_id),
        _int_field(_PAD, model.pad_id),
        _bytes_field(_UNK_PIECE, model.unk_piece),
    ]
    normalizer = [
        _bytes_field(_NAME, model.normalizer),
        _bytes_field(_CHARSMAP, model.charsmap),
        _int_field(_DUMMY_PREFIX, model.add_dummy_prefix),
        _int_field(_EXTRA_SPACES, model.remove_extra_whitespaces),
        _int_field(_ESCAPE, model.escape_whitespaces),
    ]
    parts.append(_message(_TRAINER, b"".join(trainer)))
    parts.append(_message(_NORMALIZER, b"".join(normalizer)))
    return b"".join(parts)


def _written(value: int) -> bytes:
    value &= (1 << 64) - 1
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int, wire: int) -> bytes:
    return _written(number << 3 | wire)


def _int_field(number: int, value: int) -> bytes:
    return _tag(number, _VARINT) + _written(int(value))


def _bytes_field(number: int, value: bytes) -> bytes:
    return _tag(number, _LENGTH) + _written(len(value)) + value


_message = _bytes_field
