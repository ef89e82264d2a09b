"""Divides a text at its special tokens: longest token first, each from the left."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ggtok.explain.vocabulary import Special, Vocabulary
from ggtok.loading.loaded import TokenAttr

_WHITE_SPACE = b" \t\n\v\f\r"  # C's isspace


class Part(NamedTuple):
    """A special token, or raw text."""

    begin: int
    end: int
    id: int | None  # None: raw text
    span: tuple[int, int]  # of a token: including the white space that it strips


def partition(v: Vocabulary, text: bytes, parsed: bool | frozenset[int]) -> list[Part]:
    """The parts of a text. `parsed`: which control and unknown tokens are parsed."""
    parts = [Part(0, len(text), None, (0, len(text)))]
    for special in v.specials(parsed):
        parts = [
            piece
            for part in parts
            for piece in (_cut(text, part, special) if part.id is None else [part])
        ]
    return [part for part in parts if part.id is not None or part.begin < part.end]


def _cut(text: bytes, raw: Part, special: Special) -> Iterator[Part]:
    """Divides raw text at the occurrences of a token."""
    at = raw.begin
    while (found := text.find(special.text, at, raw.end)) >= 0:
        begin, end = found, found + len(special.text)
        while special.attr & TokenAttr.LSTRIP and begin > at and text[begin - 1] in _WHITE_SPACE:
            begin -= 1
        while special.attr & TokenAttr.RSTRIP and end < raw.end and text[end] in _WHITE_SPACE:
            end += 1
        yield Part(at, begin, None, (at, begin))
        yield Part(found, found + len(special.text), special.id, (begin, end))
        at = end
    yield Part(at, raw.end, None, (at, raw.end))
