"""The simplest models: RWKV, TEST, and the two that extend BPE, "whitespace" and "hybriddna"."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.explain.steps import Token, Word, text_of
from ggtok.native.library import is_white_space, lower
from tests.plain import bpe
from tests.plain.characters import (
    MARK,
    Byte,
    characters,
    composed,
    converted,
    each,
    span,
    utf8,
    value,
    whole,
)
from tests.plain.vocabulary import LongestMatch, Vocabulary

_CHUNK = 5  # bytes per hash in TEST


def unchanged(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Normalizes for RWKV and TEST: changes nothing."""
    return each(text, 0)


def rwkv_words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    """For RWKV: the whole text is one word; its tokens are the longest matches from the left."""
    text = value(norm)
    longest = v.keep(LongestMatch, lambda: LongestMatch(v.pieces))
    tokens: list[Token] = []
    at = 0
    while at < len(text):
        id = longest.find(text, at)
        if id is None:
            tokens.append(
                v.token(v.unknown, "unknown", why=f"no token starts with the byte {text[at]:02X}")
            )
            at += 1
        else:
            tokens.append(v.token(id, "longest match"))
            at += len(v.pieces[id])
    yield Word(text_of(text), *span(norm), tokens)


def test_words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    """For TEST, llama.cpp's dummy vocabulary: each id is a hash of five bytes."""
    for at in range(0, len(norm), _CHUNK):
        part = norm[at : at + _CHUNK]
        number = 0
        for b in part:
            number = number * 31 + b.value
        yield Word(text_of(value(part)), *span(part), [v.token(number % v.n_tokens, "hash")])


# ---- the model "whitespace": BPE of the text between white space, which is dropped ----


def _segments(v: Vocabulary, text: bytes) -> Iterator[list[Byte]]:
    """Yields each stretch of text between white space, in lower case if the vocabulary's flag is
    set.

    A space that is escaped doesn't count as white space.
    """
    escape = v.flags["escape_whitespaces"]
    segment: list[Byte] = []
    for begin, end, c in characters(text):
        if c is not None and is_white_space(c) and not (escape and c == 0x20):
            if segment:
                yield segment
            segment = []
        else:
            code = lower(c) if v.flags["lowercase"] and c is not None else c
            segment += converted(text, begin, end, utf8(code))
    if segment:
        yield segment


def whitespace_normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    return (b for segment in _segments(v, text) for b in segment)


def whitespace_words(v: Vocabulary, text: bytes) -> Iterator[Word]:
    for segment in _segments(v, text):
        norm = composed(bpe.normalized(v, value(segment), False), segment)
        yield from bpe.words(v, norm)


# ---- the model "hybriddna": BPE, and one token for six bases between <dna> and </dna> ----

_BASES = 6
_KEY_END = "\ue000".encode()  # the end of a k-mer's key in the lookup table


def hybriddna_words(v: Vocabulary, text: bytes) -> Iterator[Word]:
    """Tokenizes text between the tags as k-mers, and other text with BPE. All text is BPE unless
    the tags and ``<oov>`` are tokens, of any type."""
    tags = [v.find(tag) for tag in (b"<dna>", b"</dna>", b"<oov>")]
    opens, closes, oov = tags
    if opens is None or closes is None or oov is None:
        yield from bpe.words(v, list(bpe.normalized(v, text, False)))
        return
    escape = v.flags["escape_whitespaces"]  # spaces between the tags are escaped, too
    norm = [
        b
        for i, c in enumerate(text)
        for b in whole(MARK if escape and c == 0x20 else bytes([c]), i, i + 1)
    ]
    data, at = value(norm), 0
    while at < len(data):
        start = data.find(b"<dna>", at)
        start = len(data) if start < 0 else start
        if start > at:
            yield from _rest(v, norm[at:start])
        if start == len(data):
            break
        at = start + len(b"<dna>")
        yield _tag(v, norm[start:at], opens)
        end = data.find(b"</dna>", at)
        end = len(data) if end < 0 else end
        for i in range(at, end, _BASES):
            yield _kmer(v, norm[i : min(i + _BASES, end)], oov)
        if end == len(data):
            break
        at = end + len(b"</dna>")
        yield _tag(v, norm[end:at], closes)


def _rest(v: Vocabulary, part: list[Byte]) -> Iterator[Word]:
    return bpe.words(v, composed(bpe.normalized(v, value(part), False), part))


def _tag(v: Vocabulary, part: list[Byte], id: int) -> Word:
    return Word(text_of(value(part)), *span(part), [v.token(id, "tag")])


def _kmer(v: Vocabulary, part: list[Byte], oov: int) -> Word:
    """Looks up the token for six bases. A shorter last part is padded with A."""
    bases = value(part).upper().ljust(_BASES, b"A")
    id = v.find(bases + _KEY_END)
    token: Token
    if id is None:
        token = v.token(oov, "unknown", why=f"there is no token for {text_of(bases)}")
    else:
        token = v.token(id, "k-mer")
    return Word(text_of(value(part)), *span(part), [token])
