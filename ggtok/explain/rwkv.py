"""RWKV: the longest token, again and again."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.explain.characters import Byte, each, span, value
from ggtok.explain.longest import LongestMatch
from ggtok.explain.steps import Token, Word, text_of
from ggtok.explain.vocabulary import Vocabulary


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """As it is."""
    return each(text, 0)


def words(v: Vocabulary, made: list[Byte]) -> Iterator[Word]:
    """All of the text is one word."""
    text = value(made)
    longest = v.keep(LongestMatch, lambda: LongestMatch(v.pieces))
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        id = longest.find(text, at)
        if id is None:
            tokens.append(v.token(v.unknown, "unknown", why=f"no token begins {text[at]:02X}"))
            at += 1
        else:
            tokens.append(v.token(id, "longest match"))
            at += len(v.pieces[id])
    yield Word(text_of(text), *span(made), tokens)
