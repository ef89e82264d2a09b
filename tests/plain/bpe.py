"""BPE: merges the symbols of the pre-tokenizer's words, lowest rank first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from heapq import heapify, heappop, heappush
from typing import TypeVar

from ggtok.explain.steps import Merge, Rule, Token, Word, text_of
from tests.plain import pretok
from tests.plain.characters import (
    MARK,
    Byte,
    characters,
    converted,
    lead_length,
    span,
    utf8,
    value,
    whole,
)
from tests.plain.vocabulary import Vocabulary

S = TypeVar("S", str, bytes)


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Replaces malformed UTF-8 by U+FFFD and, if the vocabulary escapes spaces, spaces by U+2581.

    For mmbert, inserts a U+2581 before each nonempty line that doesn't begin with a space or
    U+2581.
    """
    escape = v.flags["escape_whitespaces"]
    marks = escape and "MMBERT" in v.pre_flags
    line = marks
    for begin, end, c in characters(text):
        if line and c not in (0x0A, 0x20, 0x2581):
            yield from whole(MARK, begin, begin)
        line = marks and c == 0x0A
        space = escape and c == 0x20
        yield from whole(MARK, begin, end) if space else converted(text, begin, end, utf8(c))


def words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    at = 0
    for cut in pretok.words(v, value(norm).decode("utf-8", "surrogatepass")):
        data = cut.text.encode("utf-8", "surrogatepass")
        source = norm[at : at + len(data)]
        at += len(data)
        yield _word(v, data, *span(source), list(cut.rules))


def _word(v: Vocabulary, data: bytes, begin: int, end: int, rules: list[Rule]) -> Word:
    stored = to_stored(v, data)
    if takes_whole(v, data) and (id := v.find(stored)) is not None:
        token = v.token(id, "whole word", why="a word that is a token isn't merged")
        return Word(text_of(data), begin, end, [token], rules)
    symbols = first_symbols(stored)
    merges, left = merge(v, symbols)
    tokens = [token for symbol in left for token in tokens_of(v, symbol)]
    shown = [readable(v, symbol) for symbol in symbols]
    return Word(text_of(data), begin, end, tokens, rules, shown, merges)


def is_raw(v: Vocabulary) -> bool:
    """Whether symbols are the text's characters, rather than GPT-2's characters for bytes."""
    return "RAW" in v.pre_flags


def takes_whole(v: Vocabulary, word: bytes) -> bool:
    """Whether a word that equals a token becomes that token without merging."""
    newlines = not v.pre_flags.isdisjoint(("GEMMA4", "MMBERT")) and not word.strip(b"\n")
    return v.flags["ignore_merges"] or newlines


# ---- symbols ----


@cache
def _byte_map() -> list[str]:
    """Returns GPT-2's character for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(b) if b in shown else chr(next(others)) for b in range(256)]


@cache
def _bytes() -> dict[str, int]:
    return {c: b for b, c in enumerate(_byte_map())}


def byte_of(c: str) -> int:
    """Returns the byte that one of GPT-2's characters represents."""
    return _bytes()[c]


def to_stored(v: Vocabulary, data: bytes) -> bytes:
    """Converts bytes of text to the form in which tokens and merges store them."""
    return data if is_raw(v) else "".join(map(_byte_map().__getitem__, data)).encode()


def from_stored(v: Vocabulary, stored: bytes) -> bytes | None:
    """Returns the bytes that a stored text represents, or None if one of its characters represents
    no byte."""
    if is_raw(v):
        return stored
    try:
        return bytes(byte_of(c) for c in stored.decode())
    except (UnicodeDecodeError, KeyError):
        return None


def readable(v: Vocabulary, stored: bytes) -> str:
    data = from_stored(v, stored)
    return text_of(stored if data is None else data)


def first_symbols(stored: bytes) -> list[bytes]:
    """Splits a stored text into characters. Each of GPT-2's characters stands for one byte of
    the word."""
    symbols, at = [], 0
    while at < len(stored):
        symbols.append(stored[at : at + lead_length(stored[at])])
        at += len(symbols[-1])
    return symbols


def merge(v: Vocabulary, symbols: list[bytes]) -> tuple[list[Merge], list[bytes]]:
    """Returns the merges of a word's symbols in order, and the remaining symbols."""
    rows, rest = merges_of(v.ranks, symbols)
    merges = [
        Merge(readable(v, left), readable(v, right), rank=rank, at=at)
        for rank, at, left, right in rows
    ]
    return merges, rest


def merges_of(
    ranks: Mapping[tuple[S, S], int], symbols: list[S]
) -> tuple[list[tuple[int, int, S, S]], list[S]]:
    """Returns the merges as (rank, number of the left symbol, left, right), and the remaining
    symbols.

    The pair with the lowest rank is merged first; ties go to the leftmost pair. A merged symbol
    keeps the number of its left part.
    """
    now: list[S | None] = []
    now += symbols
    after = [*range(1, len(symbols)), -1]
    before = [*range(-1, len(symbols) - 1)]
    queue = [
        (rank, i)
        for i in range(len(symbols) - 1)
        if (rank := ranks.get((symbols[i], symbols[i + 1]))) is not None
    ]
    heapify(queue)
    merges = []
    while queue:
        rank, i = heappop(queue)
        j = after[i]
        left, right = now[i], now[j] if j >= 0 else None
        if left is None or right is None or ranks.get((left, right)) != rank:
            continue  # one of the two symbols was merged in the meantime
        merges.append((rank, i, left, right))
        now[i], now[j] = left + right, None
        after[i] = after[j]
        if after[i] >= 0:
            before[after[i]] = i
        for k in (before[i], i):
            if k >= 0 and after[k] >= 0:
                pair = now[k], now[after[k]]
                if (rank_of_pair := ranks.get(pair)) is not None:  # type: ignore[arg-type]
                    heappush(queue, (rank_of_pair, k))
    return merges, [symbol for symbol in now if symbol is not None]


def how_found(symbol: bytes) -> str:
    return "symbol" if len(symbol) <= lead_length(symbol[0]) else "merged"


def tokens_of(v: Vocabulary, symbol: bytes) -> Iterator[Token]:
    """Yields a symbol's token or, if it has none, the existing tokens for its bytes."""
    if (id := v.find(symbol)) is not None:
        yield v.token(id, how_found(symbol))
        return
    for byte in symbol:
        found = v.byte_token(byte) if is_raw(v) else v.find(bytes([byte]))
        if found is not None:
            yield v.token(found, "byte", why="the merged symbol is not a token")
