"""PLaMo 2 and 3: finds the tokens with the highest sum of scores, starting from the text's end."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from ggtok.errors import VocabError
from ggtok.explain.steps import LatticeStep, Token, Word, text_of
from ggtok.loading.loaded import TokenAttr
from ggtok.native.library import is_white_space
from tests.plain.characters import Byte, characters, converted, span, utf8, value
from tests.plain.vocabulary import LongestMatch, Vocabulary

# Scores are integers in units of 1/10,000, as in llama.cpp. Tokens that score _NEVER or less aren't
# used. An unknown character scores _UNKNOWN.
_UNIT, _NEVER, _UNKNOWN = 10_000, -20_000_000, -10_000_000
_MOST = 2**31 - 1  # the highest score
_BREAK = "\uee00"  # ends a part in PLaMo 3, and is dropped
_BYTE = re.compile(rb"<0x([0-9A-Fa-f]{2})>")


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Replaces bad bytes by U+FFFD, and overlong forms by the shortest form.

    PLaMo 2 drops a BOM at the start, PLaMo 3 every U+EE00.
    """
    for begin, end, c in characters(text, 0x1FFFFF):
        if v.type == "PLAMO2" and c == 0xFEFF and not begin:
            continue
        if v.type == "PLAMO3" and c == 0xEE00:
            continue
        yield from converted(text, begin, end, utf8(c))


def words(v: Vocabulary, text: bytes) -> Iterator[Word]:
    """Yields the words: for PLaMo 2, the whole text; for PLaMo 3, each part."""
    if v.type == "PLAMO2":
        norm = list(normalized(v, text, False))
        return iter([_word(v, norm)] if norm else [])
    chars = [
        list(converted(text, begin, end, utf8(c))) for begin, end, c in characters(text, 0x1FFFFF)
    ]
    return (
        _word(v, [b for char in part for b in char])
        for part in _parts(chars)
        if value(part[0]) != _BREAK.encode()
    )


# ---- PLaMo 3's parts ----


def _parts(chars: list[list[Byte]]) -> Iterator[list[list[Byte]]]:
    """Divides text at tags, at runs of one character, and at each U+EE00.

    A run has at least two spaces, or four of any other character except newlines.
    """
    codes = [value(char) for char in chars]
    ends = {len(codes)}
    tags: set[int] = set()  # where tags start and end
    for at, code in enumerate(codes):
        if code == b"<" and (n := _tag(codes, at)):
            tags |= {at, at + n}
    at = 0
    while at < len(codes):
        end = at + 1
        while end < len(codes) and codes[end] == codes[at] and end not in tags:
            end += 1
        is_break = codes[at] == _BREAK.encode()
        if is_break:
            end = at + 1
        run = end - at
        long = run > 1 if codes[at] == b" " else run > 3 and codes[at] != b"\n"
        if long or is_break:
            ends |= {at, end}
        at = end
    begin = 0
    for end in sorted(ends | tags):
        if end > begin:
            yield chars[begin:end]
            begin = end


def _tag(codes: list[bytes], at: int) -> int:
    """Returns the number of characters in the tag ``<|plamo:NAME|>`` at this position, or 0."""
    if codes[at : at + 8] != [bytes([c]) for c in b"<|plamo:"]:
        return 0
    for i in range(at + 8, min(at + 8 + 65, len(codes))):
        if codes[i] == b"|":
            return i + 2 - at if codes[i + 1 : i + 2] == [b">"] else 0
        c = next(characters(codes[i], 0x1FFFFF))[2] or 0
        if i == at + 8 + 64 or 0x1C <= c <= 0x1F or is_white_space(c):
            return 0
    return 0


# ---- the best path ----


class _Row(NamedTuple):
    """The best path from one position to the end of the text, given by its first token."""

    cost: int
    id: int  # the first token; -1 for an unknown character
    size: int  # the first token's length in characters


class _Tokens:
    def __init__(self, v: Vocabulary) -> None:
        texts = v.texts
        kept = [id for id, attr in enumerate(v.attrs) if not attr & TokenAttr.BYTE]
        self.scores = {id: _score(v.score(id)) for id in kept}
        odd = [id for id in kept if self.scores[id] == _UNKNOWN or not _is_shortest(texts[id])]
        if odd:
            raise VocabError(
                f"token {odd[0]} has the score -1000, or isn't UTF-8: its effect in llama.cpp's "
                f"table for a {v.model} vocabulary can't be explained"
            )
        self.longest = LongestMatch(texts, [id for id in kept if self.scores[id] > _NEVER])
        self.bytes: dict[int, int] = {}
        for id, attr in enumerate(v.attrs):
            if attr & TokenAttr.BYTE and (found := _BYTE.fullmatch(texts[id])):
                self.bytes[int(found[1], 16)] = id


def _score(score: float) -> int:
    """Converts a score to the table's units, rounded half away from zero."""
    scaled = score * 1e4
    if not _NEVER - 1 < scaled < _MOST + 0.5:
        return _NEVER
    whole = int(scaled)
    rest = scaled - whole
    whole += (rest >= 0.5) - (rest <= -0.5)
    return whole if _NEVER <= whole <= _MOST else _NEVER


def _is_shortest(text: bytes) -> bool:
    return b"".join(utf8(c) for *_, c in characters(text)) == text


def _word(v: Vocabulary, norm: list[Byte]) -> Word:
    tokens = v.keep(_Tokens, lambda: _Tokens(v))
    text = value(norm)
    starts = [begin for begin, _, _ in characters(text, 0x1FFFFF)]
    rows = [_Row(0, -1, 0)] * (len(starts) + 1)
    sizes: dict[int, int] = {}
    for i in reversed(range(len(starts))):
        best: _Row | None = None
        for id in tokens.longest.all(text, starts[i]):  # longest first: it wins if costs are equal
            n = sizes.setdefault(id, len(list(characters(v.texts[id]))))
            cost = rows[i + n].cost - tokens.scores[id]
            if best is None or cost < best.cost:
                best = _Row(cost, id, n)
        unknown = rows[i + 1].cost - _UNKNOWN
        rows[i] = _Row(unknown, -1, 1) if best is None or unknown < best.cost else best
    ends = [*starts, len(text)]
    path: list[Token] = []
    i = 0
    while i < len(starts):
        row = rows[i]
        path += _tokens(v, tokens, text[ends[i] : ends[i + row.size]], row)
        i += row.size
    lattice = [
        LatticeStep(
            i,
            row.id,
            text_of(text[ends[i] : ends[i + row.size]]),
            (rows[i + row.size].cost - row.cost) / _UNIT,
            -row.cost / _UNIT,
        )
        for i, row in enumerate(rows[:-1])
    ]
    return Word(text_of(text), *span(norm), path, lattice=lattice)


def _tokens(v: Vocabulary, tokens: _Tokens, text: bytes, row: _Row) -> Iterator[Token]:
    if row.id >= 0:
        score = tokens.scores[row.id] / _UNIT
        yield v.token(row.id, "best path", score=score, total=-row.cost / _UNIT)
        return
    for byte in text:
        yield v.token(
            tokens.bytes[byte], "byte", why="no token with a better score contains this character"
        )
