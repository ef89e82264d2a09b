"""BPE: words of the pre-tokenizer, merged by rank."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from heapq import heapify, heappop, heappush
from typing import TypeVar

from ggtok.explain import pretok
from ggtok.explain.characters import (
    MARK,
    Byte,
    became,
    characters,
    lead_length,
    span,
    utf8,
    value,
    whole,
)
from ggtok.explain.steps import Merge, Rule, Token, Word, text_of
from ggtok.explain.vocabulary import Vocabulary

S = TypeVar("S", str, bytes)


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Bad bytes are U+FFFD; where the vocabulary escapes spaces, they are U+2581, and to mmbert
    each line begins with one."""
    escape = v.flags["escape_whitespaces"]
    marks = escape and "MMBERT" in v.pre_flags
    line = marks
    for begin, end, c in characters(text):
        if line and c not in (0x0A, 0x20, 0x2581):
            yield from whole(MARK, begin, begin)
        line = marks and c == 0x0A
        space = escape and c == 0x20
        yield from whole(MARK, begin, end) if space else became(text, begin, end, utf8(c))


def words(v: Vocabulary, made: list[Byte]) -> Iterator[Word]:
    at = 0
    for cut in pretok.words(v, value(made).decode("utf-8", "surrogatepass")):
        data = cut.text.encode("utf-8", "surrogatepass")
        source = made[at : at + len(data)]
        at += len(data)
        yield _word(v, data, *span(source), list(cut.rules))


def _word(v: Vocabulary, data: bytes, begin: int, end: int, rules: list[Rule]) -> Word:
    spelled = spell(v, data)
    if takes_whole(v, data) and (id := v.find(spelled)) is not None:
        token = v.token(id, "whole word", why="a word that is a token isn't merged")
        return Word(text_of(data), begin, end, [token], rules)
    symbols = first_symbols(v, spelled)
    merges, left = merge(v, symbols)
    tokens = [token for symbol in left for token in tokens_of(v, symbol)]
    shown = [readable(v, symbol) for symbol in symbols]
    return Word(text_of(data), begin, end, tokens, rules, shown, merges)


def is_raw(v: Vocabulary) -> bool:
    """Are symbols characters as they are, rather than GPT-2's characters for bytes?"""
    return "RAW" in v.pre_flags


def takes_whole(v: Vocabulary, word: bytes) -> bool:
    """Is a word that is a token not merged?"""
    newlines = not v.pre_flags.isdisjoint(("GEMMA4", "MMBERT")) and not word.strip(b"\n")
    return v.flags["ignore_merges"] or newlines


# ---- symbols ----


@cache
def _spelling() -> list[str]:
    """GPT-2's character for each byte."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(256, 512))
    return [chr(b) if b in shown else chr(next(others)) for b in range(256)]


@cache
def _bytes() -> dict[str, int]:
    return {c: b for b, c in enumerate(_spelling())}


def byte_of(c: str) -> int:
    """The byte that one of GPT-2's characters stands for."""
    return _bytes()[c]


def spell(v: Vocabulary, data: bytes) -> bytes:
    """Bytes as tokens and merges spell them."""
    return data if is_raw(v) else "".join(map(_spelling().__getitem__, data)).encode()


def unspelled(v: Vocabulary, spelled: bytes) -> bytes | None:
    """The bytes that a token's text spells; None: it has a character that spells none."""
    if is_raw(v):
        return spelled
    try:
        return bytes(byte_of(c) for c in spelled.decode())
    except (UnicodeDecodeError, KeyError):
        return None


def readable(v: Vocabulary, spelled: bytes) -> str:
    data = unspelled(v, spelled)
    return text_of(spelled if data is None else data)


def first_symbols(v: Vocabulary, spelled: bytes) -> list[bytes]:
    """Characters: of GPT-2's, each is a byte of the word."""
    symbols, at = [], 0
    while at < len(spelled):
        symbols.append(spelled[at : at + lead_length(spelled[at])])
        at += len(symbols[-1])
    return symbols


def merge(v: Vocabulary, symbols: list[bytes]) -> tuple[list[Merge], list[bytes]]:
    """The merges of a word's symbols in their order, and what is left."""
    rows, rest = merges_of(v.ranks, symbols)
    merges = [
        Merge(readable(v, left), readable(v, right), rank=rank, at=at)
        for rank, at, left, right in rows
    ]
    return merges, rest


def merges_of(
    ranks: Mapping[tuple[S, S], int], symbols: list[S]
) -> tuple[list[tuple[int, int, S, S]], list[S]]:
    """The merges in their order, the least rank first and the leftmost of equals, as (rank, number
    of the left symbol, left, right); and what is left.

    A merged symbol keeps the number of its first part, and the others become None.
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
            continue  # one of them has merged since
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
    """A symbol's token; without one, those of its bytes that there are."""
    if (id := v.find(symbol)) is not None:
        yield v.token(id, how_found(symbol))
        return
    for byte in symbol:
        found = v.byte_token(byte) if is_raw(v) else v.find(bytes([byte]))
        if found is not None:
            yield v.token(found, "byte", why="what merging left is no token")
