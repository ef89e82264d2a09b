"""Where tokens come from, found plainly: an oracle for encode_with_offsets.

The text is partitioned by llama.cpp's rule as it stands, each raw fragment is normalized
character by character into bytes that know their source, and the ids are laid along these bytes in
every way that their texts allow. Mostly there is one way.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import ggtok
from tests.support.patch import GGUF
from tests.support.texts import WHITE_SPACE

MARK = "\u2581".encode()
ENOUGH = 40  # ways
SPECIAL = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.UNKNOWN
USER_DEFINED = ggtok.TokenAttr.USER_DEFINED

Span = tuple[int, int]


class Byte(NamedTuple):
    """One byte of normalized text."""

    value: int
    begin: int  # of its source
    end: int
    word: bool = False  # a WPM word begins with it


# ---- partition ----


class Fragment(NamedTuple):
    begin: int
    end: int
    id: int | None  # None: raw text
    span: Span


def partition(tok: ggtok.Tokenizer, text: bytes, parse_special: bool) -> list[Fragment]:
    """Longest token first, each takes its occurrences from the left."""
    fragments = [Fragment(0, len(text), None, (0, 0))]
    for id, word, attr in specials(tok, parse_special):
        fragments = [
            part
            for fragment in fragments
            for part in (
                _cut(text, fragment, id, word, attr) if fragment.id is None else [fragment]
            )
        ]
    return [f for f in fragments if f.id is not None or f.begin < f.end]


@cache
def specials(tok: ggtok.Tokenizer, parse_special: bool) -> list[tuple[int, bytes, ggtok.TokenAttr]]:
    wanted = SPECIAL | USER_DEFINED if parse_special else USER_DEFINED
    tokens = [
        id for id in range(tok.n_tokens) if tok.token_attr(id) & wanted and tok.token_text(id)
    ]
    tokens.sort(key=lambda i: -len(tok.token_text(i)))  # stable: right for few of one length
    return [(id, tok.token_text(id), tok.token_attr(id)) for id in tokens]


def _cut(
    text: bytes, raw: Fragment, id: int, word: bytes, attr: ggtok.TokenAttr
) -> Iterator[Fragment]:
    at = raw.begin
    while (found := text.find(word, at, raw.end)) >= 0:
        begin, end = found, found + len(word)
        while attr & ggtok.TokenAttr.LSTRIP and begin > at and text[begin - 1] in b" \t\n\v\f\r":
            begin -= 1
        while attr & ggtok.TokenAttr.RSTRIP and end < raw.end and text[end] in b" \t\n\v\f\r":
            end += 1
        yield Fragment(at, begin, None, (0, 0))
        yield Fragment(found, found + len(word), id, (begin, end))
        at = end
    yield Fragment(at, raw.end, None, (0, 0))


# ---- characters, as llama.cpp reads them ----


def characters(text: bytes, highest: int = 0x10FFFF) -> Iterator[tuple[int, int, int | None]]:
    """Begin, end and code point of each; None: a bad byte."""
    at = 0
    while at < len(text):
        lead = text[at]
        n = 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        rest = text[at + 1 : at + n]
        c: int | None = lead if lead < 0x80 else None
        good = len(rest) == n - 1 and all(b & 0xC0 == 0x80 for b in rest)
        if n > 1 and lead < 0xF8 and good:
            c = lead & (0x7F >> n)
            for b in rest:
                c = c << 6 | b & 0x3F
            if c > highest:
                c = None
        if c is None:
            n = 1
        yield at, at + n, c
        at += n


def utf8(c: int | None) -> bytes:
    if c is None:
        c = 0xFFFD
    if c > 0x10FFFF:
        return bytes([0xF0 | c >> 18, *(0x80 | c >> s & 0x3F for s in (12, 6, 0))])
    return chr(c).encode("utf-8", "surrogatepass")


def whole(value: bytes, begin: int, end: int) -> Iterator[Byte]:
    return (Byte(b, begin, end) for b in value)


def each(value: bytes, begin: int) -> Iterator[Byte]:
    return (Byte(b, begin + i, begin + i + 1) for i, b in enumerate(value))


def became(text: bytes, begin: int, end: int, value: bytes) -> Iterator[Byte]:
    """Its own bytes, if they are the same."""
    return each(value, begin) if value == text[begin:end] else whole(value, begin, end)


# ---- normalizing, by vocabulary type ----


def bpe(tok: ggtok.Tokenizer, text: bytes) -> Iterator[Byte]:
    escape = tok._native.flags()["escape_whitespaces"]
    line = tok.pre == "mmbert"
    for begin, end, c in characters(text):
        if line and c not in (0x0A, 0x20, 0x2581):
            yield from whole(MARK, begin, begin)
        line = tok.pre == "mmbert" and c == 0x0A
        space = escape and c == 0x20
        yield from whole(MARK, begin, end) if space else became(text, begin, end, utf8(c))


def spm(tok: ggtok.Tokenizer, text: bytes, prefix: bool) -> Iterator[Byte]:
    if prefix:
        yield from whole(MARK, 0, 0)
    for i, b in enumerate(text):
        yield from whole(MARK, i, i + 1) if b == 0x20 else each(bytes([b]), i)


def whitespace(tok: ggtok.Tokenizer, text: bytes) -> Iterator[Byte]:
    lower = tok._native.flags()["lowercase"]
    for begin, end, c in characters(text):
        if c is None or chr(c) not in WHITE_SPACE:
            made = simple_lower(c) if lower and c is not None else c
            yield from became(text, begin, end, utf8(made))


def simple_lower(c: int) -> int:
    if c == 0x130:
        return 0x69
    lower = chr(c).lower()
    return ord(lower) if len(lower) == 1 else c


def wpm(tok: ggtok.Tokenizer, text: bytes) -> Iterator[Byte]:
    flags = tok._native.flags()
    begins = True  # a word, with the next character
    for begin, end, c in characters(text):
        if c is not None and chr(c) in WHITE_SPACE:
            begins = True
            continue
        if c is None or c in (0, 0xFFFD):
            continue
        made, alone = c, _stands_alone(c)
        if flags["strip_accents"]:
            made = ord(unicodedata.normalize("NFD", chr(c))[0])
            alone = _stands_alone(made)
        if unicodedata.category(chr(made))[0] == "C" and made not in (9, 10, 13):
            continue
        if flags["strip_accents"] and unicodedata.category(chr(made))[0] == "M":
            continue
        if flags["lowercase"]:
            made = simple_lower(made)
        if begins or alone:
            yield from (b._replace(word=i == 0) for i, b in enumerate(whole(MARK, begin, begin)))
        yield from became(text, begin, end, utf8(made))
        begins = alone


def _stands_alone(c: int) -> bool:
    chinese = [(0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F)]
    chinese += [(0x2B740, 0x2B81F), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF), (0x2F800, 0x2FA1F)]
    category = unicodedata.category(chr(c))
    return (
        category[0] == "P"
        or (c < 0x7F and category[0] == "S")
        or any(a <= c <= b for a, b in chinese)
    )


class Charsmap:
    def __init__(self, data: bytes) -> None:
        n = int.from_bytes(data[:4], "little")
        self.units = [int.from_bytes(data[i : i + 4], "little") for i in range(4, 4 + n, 4)]
        self.texts = data[4 + n :]

    def match(self, text: bytes) -> tuple[int, bytes] | None:
        found = None
        unit = self.units[0]
        at = (unit >> 10) << ((unit & 1 << 9) >> 6)
        for k, b in enumerate(text):
            if b == 0:
                break
            at ^= b
            unit = self.units[at]
            if unit & (1 << 31 | 0xFF) != b:
                break
            at ^= (unit >> 10) << ((unit & 1 << 9) >> 6)
            if unit >> 8 & 1:
                value = self.units[at] & 0x7FFFFFFF
                found = k + 1, self.texts[value : self.texts.index(0, value)]
        return found


@cache
def charsmap(path: Path) -> Charsmap | None:
    gguf, key = GGUF.read(path), "tokenizer.ggml.precompiled_charsmap"
    if key not in gguf:
        return None
    return Charsmap(bytes(int(b) & 0xFF for b in gguf.array(key)))  # type: ignore[arg-type]


def ugm(tok: ggtok.Tokenizer, text: bytes, path: Path) -> Iterator[Byte]:
    flags = tok._native.flags()
    remove = flags["remove_extra_whitespaces"]
    space = MARK if flags["escape_whitespaces"] else b" "
    user = [word for _, word, _ in specials(tok, False)]
    table = charsmap(path)
    prefixed = in_word = False
    white: Span | None = None
    at = 0
    while at < len(text):
        used = max((_common(text[at:], word) for word in user), default=0)
        value = text[at : at + used]
        if not used:
            match = table.match(text[at:]) if table else None
            if match:
                used, value = match
            else:
                begin, end, c = next(characters(text[at:], 0x1FFFFF))
                used = end - begin
                value = utf8(None) if c is None else text[at : at + used]
        for b in became(text, at, at + used, value):
            if b.value != 0x20:
                if not in_word and (remove or (flags["add_space_prefix"] and not prefixed)):
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


def _common(a: bytes, b: bytes) -> int:
    return next(
        (i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b))
    )


def plamo(tok: ggtok.Tokenizer, text: bytes) -> Iterator[Byte]:
    for begin, end, c in characters(text, 0x1FFFFF):
        if tok.vocab_type == "PLAMO2" and c == 0xFEFF and not begin:
            continue
        if tok.vocab_type == "PLAMO3" and c == 0xEE00:
            continue
        yield from became(text, begin, end, utf8(c))


def normalized(tok: ggtok.Tokenizer, text: bytes, prefix: bool, path: Path) -> list[Byte]:
    if tok.vocab_type == "SPM":
        return list(spm(tok, text, prefix and tok.add_space_prefix))
    if tok.vocab_type == "UGM":
        return list(ugm(tok, text, path))
    if tok.vocab_type in ("PLAMO2", "PLAMO3"):
        return list(plamo(tok, text))
    if tok.vocab_type in ("RWKV", "TEST"):
        return list(each(text, 0))
    make: Callable[[ggtok.Tokenizer, bytes], Iterator[Byte]]
    make = wpm if tok.vocab_type == "WPM" else whitespace if tok.model == "whitespace" else bpe
    return list(make(tok, text))


# ---- ids along the bytes ----


def spelling(tok: ggtok.Tokenizer, id: int) -> bytes:
    """The normalized bytes that a token is, not being a byte token."""
    if tok.vocab_type == "RWKV":
        return tok.token_to_piece(id)
    text = tok.token_text(id)
    gpt2 = tok.vocab_type == "BPE" and tok.pre not in ("gemma4", "mmbert", "whitespace")
    return text if not gpt2 else bytes(byte_of(c) for c in text.decode())


@cache
def _bytes() -> dict[str, int]:
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [b for b in range(256) if b not in shown]
    return {chr(b): b for b in shown} | {chr(256 + i): b for i, b in enumerate(others)}


def byte_of(c: str) -> int:
    return _bytes()[c]


def lengths(tok: ggtok.Tokenizer, id: int, made: list[Byte], at: int) -> Iterator[int]:
    """How many of the bytes from `at` on a token may be."""
    if tok.vocab_type == "TEST":
        yield min(5, len(made) - at)
        return
    text = tok.token_text(id)
    if len(text) == 6 and text.startswith(b"<0x") and made[at].value == int(text[3:5], 16):
        yield 1
    if id == tok.unk_id:
        if tok.vocab_type == "WPM":
            stop = next((i for i in range(at + 1, len(made)) if made[i].word), len(made))
            if made[at].word:
                yield stop - at
        elif tok.vocab_type == "UGM":
            yield from range(1, len(made) - at + 1)
        else:
            yield 1
    elif (word := spelling(tok, id)) == bytes(b.value for b in made[at : at + len(word)]):
        yield len(word)


def ways(tok: ggtok.Tokenizer, ids: list[int], made: list[Byte]) -> list[list[Span]]:
    """All ways, but no more than ENOUGH, to lay the ids along all of the bytes."""
    reach = [{0}]  # places before each id
    for id in ids:
        reach.append({p + n for p in reach[-1] if p < len(made) for n in lengths(tok, id, made, p)})
    found: list[list[Span]] = []
    partial: list[tuple[int, int, list[Span]]] = [(len(ids), len(made), [])]
    while partial and len(found) < ENOUGH:
        k, end, spans = partial.pop()
        if not k:
            found += [spans] if not end else []
            continue
        for p in reach[k - 1]:
            if p < end and end - p in lengths(tok, ids[k - 1], made, p):
                span = made[p].begin, made[end - 1].end
                partial.append((k - 1, p, [span, *spans]))
    return found


# ---- all of it ----


def expected(
    tok: ggtok.Tokenizer, path: Path, text: bytes, ids: list[int], *, parse_special: bool
) -> Iterator[tuple[int, int, list[list[Span]]]]:
    """For stretches of ids[from:to], the ways in which they may come from the text."""
    prefix, k = True, 0
    for fragment in partition(tok, text, parse_special):
        if fragment.id is not None:
            assert ids[k] == fragment.id
            yield k, k + 1, [[fragment.span]]
            prefix, k = True, k + 1
            continue
        raw = text[fragment.begin : fragment.end]
        own = tok.encode(raw, add_special=False, parse_special=[], continuation=False)
        if not prefix:
            raise AssertionError("raw text after raw text")
        made = normalized(tok, raw, prefix, path)
        n = len(own)
        assert ids[k : k + n] == own
        shift = fragment.begin
        yield k, k + n, [[(a + shift, b + shift) for a, b in way] for way in ways(tok, own, made)]
        prefix, k = False, k + n
    assert k == len(ids)
