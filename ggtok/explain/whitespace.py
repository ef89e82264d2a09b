"""The model 'whitespace': BPE of what lies between white space, which is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.explain import bpe
from ggtok.explain.characters import Byte, became, characters, retraced, utf8, value
from ggtok.explain.steps import Word
from ggtok.explain.vocabulary import Vocabulary
from ggtok.native.characters import is_white_space, lower


def segments(v: Vocabulary, text: bytes) -> Iterator[list[Byte]]:
    """What lies between white space, in lower case if the vocabulary wants that. A space that is
    to be escaped is no white space."""
    escape = v.flags["escape_whitespaces"]
    segment: list[Byte] = []
    for begin, end, c in characters(text):
        if c is not None and is_white_space(c) and not (escape and c == 0x20):
            if segment:
                yield segment
            segment = []
        else:
            made = lower(c) if v.flags["lowercase"] and c is not None else c
            segment += became(text, begin, end, utf8(made))
    if segment:
        yield segment


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    return (b for segment in segments(v, text) for b in segment)


def words(v: Vocabulary, text: bytes) -> Iterator[Word]:
    for segment in segments(v, text):
        made = retraced(bpe.normalized(v, value(segment), False), segment)
        yield from bpe.words(v, made)
