"""TEST, llama.cpp's stand-in for a vocabulary: a hash of every five bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.explain.characters import Byte, each, span, value
from ggtok.explain.steps import Word, text_of
from ggtok.explain.vocabulary import Vocabulary

_CHUNK = 5


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """As it is."""
    return each(text, 0)


def words(v: Vocabulary, made: list[Byte]) -> Iterator[Word]:
    for at in range(0, len(made), _CHUNK):
        part = made[at : at + _CHUNK]
        number = 0
        for b in part:
            number = number * 31 + b.value
        yield Word(text_of(value(part)), *span(part), [v.token(number % v.n_tokens, "hash")])
