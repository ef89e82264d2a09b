"""python -m tests.fuzz.protobuf: fuzzes the Python reader of SentencePiece models.

    python -m tests.fuzz.protobuf --seconds 300 --seed 1

Reads changed models, and bytes that resemble protocol buffers, with ggtok and with protobuf (using
the package sentencepiece's description of the format). ggtok must either read the same model as
protobuf or raise VocabError. Prints each finding as a Python bytes literal, and a summary; the exit
status is 1 if there is a finding.
"""

from __future__ import annotations

import math
import random
import sys
import time
from collections.abc import Iterator
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies.convert.sentencepiece_model import (
    SentencePiece,
    SentencePieceModel,
    read_model,
    write_model,
)
from tests.fuzz import command

BIG = (0, 1, 127, 128, 255, 1 << 31, (1 << 32) - 1, 1 << 63, (1 << 64) - 1)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


class Inputs:
    """Generates inputs: models, changed models, and fields of any kind."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._kept = [
            write_model(
                SentencePieceModel(
                    pieces=[SentencePiece(b"a", 0.5, 1), SentencePiece(b"<unk>", 0.0, 2)]
                )
            )
        ]

    def keep(self, data: bytes) -> None:
        """Adds an accepted input to the inputs from which new ones are made."""
        if len(data) < 4096 and len(self._kept) < 500:
            self._kept.append(data)
        elif len(data) < 4096:
            self._kept[self._random.randrange(1, len(self._kept))] = data

    def __iter__(self) -> Iterator[bytes]:
        while True:
            kind = self._random.randrange(4)
            if kind == 0:
                yield self._message(0)
            elif kind == 1:
                yield self._random.choice(self._kept) + self._message(1)
            else:
                yield self._changed(self._random.choice(self._kept))

    def _message(self, depth: int) -> bytes:
        return b"".join(self._field(depth) for _ in range(self._random.randint(0, 6)))

    def _field(self, depth: int) -> bytes:
        pick = self._random
        number = pick.choice((1, 1, 1, 2, 3, 3, 4, 5, 24, 35, 40, 41, 42, 43, 45, 300))
        wire = pick.choice((0, 1, 2, 2, 2, 5, 5, 3, 4, 6, 7))
        tag = _varint(number << 3 | wire)
        if wire == 0:
            return tag + _varint(pick.choice((*BIG, pick.randrange(6))))
        if wire in (1, 5):
            return tag + pick.randbytes(8 if wire == 1 else 4)
        if wire != 2:
            return tag
        inner = self._message(depth + 1) if depth < 2 else pick.randbytes(pick.randrange(9))
        size = len(inner) if pick.random() < 0.9 else pick.choice(BIG)
        return tag + _varint(size) + inner

    def _changed(self, data: bytes) -> bytes:
        pick, changed = self._random, bytearray(data)
        for _ in range(pick.randint(1, 4)):
            at = pick.randint(0, len(changed))
            change = pick.randrange(5)
            if change == 0:
                del changed[at : at + pick.randint(1, 8)]
            elif change == 1:
                changed[at:at] = pick.randbytes(pick.randint(1, 8))
            elif change == 2 and changed:
                changed[at % len(changed)] ^= 1 << pick.randrange(8)
            elif change == 3:
                changed[at : at + 1] = _varint(pick.choice(BIG))
            else:
                changed[at:at] = self._field(pick.randrange(3))
        return bytes(changed)


def _same(a: float, b: float) -> bool:
    return a == b or (math.isnan(a) and math.isnan(b))


def _read_alike(model: SentencePieceModel, theirs: Any) -> bool:
    trainer, normalizer = theirs.trainer_spec, theirs.normalizer_spec
    return len(model.pieces) == len(theirs.pieces) and all(
        (
            *(_same(a.score, b.score) for a, b in zip(model.pieces, theirs.pieces, strict=True)),
            model.byte_fallback == trainer.byte_fallback,
            model.whitespace_as_suffix == trainer.treat_whitespace_as_suffix,
            model.unk_id == trainer.unk_id,
            model.bos_id == trainer.bos_id,
            model.eos_id == trainer.eos_id,
            model.pad_id == trainer.pad_id,
            model.charsmap == normalizer.precompiled_charsmap,
            model.add_dummy_prefix == normalizer.add_dummy_prefix,
            model.remove_extra_whitespaces == normalizer.remove_extra_whitespaces,
            model.escape_whitespaces == normalizer.escape_whitespaces,
        )
    )


def check(data: bytes) -> bool | None:
    """Whether ggtok and protobuf read equal models; None if ggtok rejects the input."""
    from google.protobuf.message import DecodeError
    from sentencepiece import sentencepiece_model_pb2

    try:
        model = read_model(data)
    except VocabError:
        return None
    try:
        theirs = sentencepiece_model_pb2.ModelProto.FromString(data)
    except (DecodeError, UnicodeDecodeError):
        return True  # protobuf rejects more, such as text that isn't UTF-8
    return _read_alike(model, theirs)


def fuzz(seed: int, seconds: float = math.inf, inputs: float = math.inf) -> tuple[int, int, int]:
    """Prints the findings. Returns the numbers of inputs, accepted inputs and findings."""
    generated = Inputs(seed)
    end = time.monotonic() + seconds
    n = accepted = findings = 0
    for data in generated:
        if n >= inputs or time.monotonic() > end:
            break
        n += 1
        try:
            good = check(data)
        except Exception as e:  # any other error is a finding
            print(f"{data!r}: {type(e).__name__}: {e}")
            findings += 1
            continue
        if good:
            accepted += 1
            generated.keep(data)
        elif good is False:
            print(f"{data!r}: read differently")
            findings += 1
    return n, accepted, findings


if __name__ == "__main__":
    sys.exit(command.main("python -m tests.fuzz.protobuf", __doc__, fuzz))
