"""UGM: composes the text, if the vocabulary says so; normalizes it with the charsmap; then finds
the tokens with the highest sum of scores."""

from __future__ import annotations

import struct
import sys
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

import unicodedata2

from ggtok.explain.steps import LatticeStep, Token, Word, text_of
from ggtok.loading.loaded import TokenAttr
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
from tests.plain.vocabulary import LongestMatch, Vocabulary

_FLT_MAX = (2 - 2**-23) * 2.0**127
_MATCHED = TokenAttr.NORMAL | TokenAttr.USER_DEFINED | TokenAttr.UNUSED


class Charsmap:
    """SentencePiece's precompiled charsmap: a double array (XCDA) with replacements."""

    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[:4], "little")
        self._units = struct.unpack_from(f"<{n // 4}I", data, 4)
        self._texts = data[4 + n :]

    def match(self, text: bytes) -> tuple[int, bytes] | None:
        """Returns the longest match at the start of the text: its length, and its replacement."""
        found = None
        unit = self._units[0] if self._units else 0
        at = (unit >> 10) << ((unit & 1 << 9) >> 6)
        for k, b in enumerate(text if self._units else b""):
            if b == 0:
                break
            at ^= b
            unit = self._units[at]
            if unit & (1 << 31 | 0xFF) != b:
                break
            at ^= (unit >> 10) << ((unit & 1 << 9) >> 6)
            if unit >> 8 & 1:
                begin = self._units[at] & 0x7FFFFFFF
                found = k + 1, begin
        if found is None:
            return None
        return found[0], self._texts[found[1] : self._texts.index(0, found[1])]


class _Tables:
    """All prefixes of user-defined tokens, and the charsmap."""

    def __init__(self, v: Vocabulary) -> None:
        self.user = {
            v.text(id)[:n]
            for id, attr in enumerate(v.first_attrs)
            if attr & TokenAttr.USER_DEFINED
            for n in range(1, len(v.text(id)) + 1)
        }
        data = v.charsmap
        self.charsmap = None if data is None else Charsmap(data)


@cache
def _seconds() -> frozenset[str]:
    """Returns the characters that NFC may compose with the preceding one."""
    found = {chr(c) for c in (*range(0x1161, 0x1176), *range(0x11A8, 0x11C3))}
    for c in map(chr, range(0x110000)):
        mapping = unicodedata2.decomposition(c).split()
        if len(mapping) == 2 and mapping[0][0] != "<" and unicodedata2.normalize("NFC", c) == c:
            found.add(chr(int(mapping[1], 16)))
    return frozenset(found)


@cache
def _is_first(c: str) -> bool:
    """Whether NFC changes nothing across the position before the character."""
    start = unicodedata2.normalize("NFD", c)[0]
    return not unicodedata2.combining(start) and start not in _seconds()


def _composed(text: bytes) -> Iterator[Byte]:
    """Converts a text to NFC, with U+FFFD for malformed bytes. What NFC changes comes from a whole
    part: a character and those that may be composed with it."""
    part, begin, at = "", 0, 0
    for start, end, c in characters(text, overlong=False):
        char = "\ufffd" if c is None else chr(c)
        if part and _is_first(char):
            yield from converted(text, begin, start, _nfc(part))
            part, begin = "", start
        part, at = part + char, end
    yield from converted(text, begin, at, _nfc(part))


def _nfc(text: str) -> bytes:
    composed: str = unicodedata2.normalize("NFC", text)
    return composed.encode("utf-8", "surrogatepass")


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Normalizes raw text."""
    if not v.flags["nfc"]:
        yield from _normalized(v, text, prefix)
        return
    source = list(_composed(text))
    for b in _normalized(v, value(source), prefix):
        begin = source[b.begin].begin
        yield Byte(b.value, begin, source[b.end - 1].end if b.begin < b.end else begin)


def _normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Normalizes with the charsmap, then handles white space according to the flags.

    Text that is a prefix of a user-defined token stays unchanged.
    """
    tables = v.keep(_Tables, lambda: _Tables(v))
    remove = v.flags["remove_extra_whitespaces"]
    space = MARK if v.flags["escape_whitespaces"] else b" "
    prefixed, in_word = not prefix, False
    white: tuple[int, int] | None = None  # span of dropped white space: the next mark's source
    at = 0
    while at < len(text):
        used = 0
        while at + used < len(text) and text[at : at + used + 1] in tables.user:
            used += 1
        with_ = text[at : at + used]
        if not used:
            match = tables.charsmap.match(text[at:]) if tables.charsmap else None
            if match:
                used, with_ = match
            else:
                begin, end, c = next(characters(text[at : at + 4], 0x1FFFFF))
                used = end - begin
                with_ = utf8(None) if c is None else text[at : at + used]
        for b in converted(text, at, at + used, with_):
            if b.value != 0x20:
                if not in_word and (remove or (v.flags["add_space_prefix"] and not prefixed)):
                    yield from whole(space, *(white or (b.begin, b.begin)))
                    prefixed = True
                in_word, white = True, None
                yield b
            else:
                in_word = False
                if remove:
                    white = (white[0] if white else b.begin, b.end)
                else:
                    yield from whole(space, b.begin, b.end)
        at += used


class _Best(NamedTuple):
    """The best path to one position, given by its last token."""

    total: float
    id: int
    size: int  # the last token's length in bytes


def _single(number: float) -> float:
    """Rounds the number to single precision, as in llama.cpp."""
    single: float = struct.unpack("<f", struct.pack("<f", number))[0]
    return single


class _Tokens:
    """The tokens that a path can use."""

    def __init__(self, v: Vocabulary) -> None:
        ids = [id for id, attr in enumerate(v.first_attrs) if attr & _MATCHED]
        self.longest = LongestMatch(v.texts, ids)
        lowest = _FLT_MAX  # the value that llama.cpp uses if no token is NORMAL
        for id in ids:
            if v.first_attrs[id] & TokenAttr.NORMAL and v.score(id) < lowest:
                lowest = v.score(id)
        self.unknown = _single(lowest - 10.0)


def words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    """Yields one word: the whole text."""
    text = value(norm)
    best = _lattice(v, text)
    lattice = [
        LatticeStep(
            at, b.id, text_of(text[at - b.size : at]), b.total - best[at - b.size].total, b.total
        )
        for at, b in enumerate(best)
        if b.size
    ]
    yield Word(text_of(text), *span(norm), _path(v, best), lattice=lattice)


def _lattice(v: Vocabulary, text: bytes) -> list[_Best]:
    """Returns the best path to each position. Of paths with equal sums, the best is the one whose
    last token starts first."""
    tokens = v.keep(_Tokens, lambda: _Tokens(v))
    best = [_Best(-sys.float_info.max, v.unknown, 0)] * (len(text) + 1)
    best[0] = _Best(0.0, v.unknown, 0)

    def offer(begin: int, end: int, id: int, score: float) -> None:
        total = best[begin].total + score
        if total > best[end].total:
            best[end] = _Best(total, id, end - begin)

    at = 0
    while at < len(text):
        size = min(lead_length(text[at]), len(text) - at)
        known = False
        for id in tokens.longest.all(text, at):
            n = len(v.texts[id])
            known |= n == size
            user = v.attrs[id] & TokenAttr.USER_DEFINED
            offer(at, at + n, id, 0.0 if user else v.score(id))
        if not known:
            offer(at, at + size, v.unknown, tokens.unknown)
        at += size
    return best


def _path(v: Vocabulary, best: list[_Best]) -> list[Token]:
    """Returns the tokens on the best path, with consecutive unknown tokens joined into one."""
    tokens: list[Token] = []
    at, was_unknown = len(best) - 1, False
    while True:
        b = best[at]
        unknown = b.id == v.unknown
        if not (was_unknown and unknown):
            score = b.total - best[at - b.size].total
            why = "consecutive unknown characters become one token" if unknown else ""
            how = "unknown" if unknown else "best path"
            tokens.append(v.token(b.id, how, score=score, total=b.total, why=why))
        if b.size in (0, at):
            return tokens[::-1]
        at, was_unknown = at - b.size, unknown
