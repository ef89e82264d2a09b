"""The model 'hybriddna': BPE, and one token for six bases between ``<dna>`` and ``</dna>``."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.explain import bpe
from ggtok.explain.characters import MARK, Byte, retraced, span, value, whole
from ggtok.explain.steps import Token, Word, text_of
from ggtok.explain.vocabulary import Vocabulary

_BASES = 6
_KEY_END = "\ue000".encode()  # the end of the keys of k-mers, which text can't contain


def words(v: Vocabulary, text: bytes) -> Iterator[Word]:
    """Everything is BPE unless there are tokens, of any type, for the tags and ``<oov>``."""
    tags = [v.find(tag) for tag in (b"<dna>", b"</dna>", b"<oov>")]
    opens, closes, oov = tags
    if opens is None or closes is None or oov is None:
        yield from bpe.words(v, list(bpe.normalized(v, text, False)))
        return
    escape = v.flags["escape_whitespaces"]  # between the tags, too
    made = [
        b
        for i, c in enumerate(text)
        for b in whole(MARK if escape and c == 0x20 else bytes([c]), i, i + 1)
    ]
    data, at = value(made), 0
    while at < len(data):
        start = data.find(b"<dna>", at)
        start = len(data) if start < 0 else start
        if start > at:
            yield from _rest(v, made[at:start])
        if start == len(data):
            break
        at = start + len(b"<dna>")
        yield _tag(v, made[start:at], opens)
        end = data.find(b"</dna>", at)
        end = len(data) if end < 0 else end
        for i in range(at, end, _BASES):
            yield _kmer(v, made[i : min(i + _BASES, end)], oov)
        if end == len(data):
            break
        at = end + len(b"</dna>")
        yield _tag(v, made[end:at], closes)


def _rest(v: Vocabulary, part: list[Byte]) -> Iterator[Word]:
    return bpe.words(v, retraced(bpe.normalized(v, value(part), False), part))


def _tag(v: Vocabulary, part: list[Byte], id: int) -> Word:
    return Word(text_of(value(part)), *span(part), [v.token(id, "tag")])


def _kmer(v: Vocabulary, part: list[Byte], oov: int) -> Word:
    """The token of six bases. The last part is padded with A."""
    bases = value(part).upper().ljust(_BASES, b"A")
    id = v.find(bases + _KEY_END)
    token: Token
    if id is None:
        token = v.token(oov, "unknown", why=f"there is no token for {text_of(bases)}")
    else:
        token = v.token(id, "k-mer")
    return Word(text_of(value(part)), *span(part), [token])
