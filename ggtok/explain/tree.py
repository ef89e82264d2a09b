"""Explains which merges build a token."""

from __future__ import annotations

from collections.abc import Iterator

from ggtok.errors import InvalidValueError, VocabError
from ggtok.explain import bpe, pretok, spm
from ggtok.explain.characters import lead_length
from ggtok.explain.explain import LONGEST, vocabulary_of
from ggtok.explain.steps import Merge, MergeTree, text_of
from ggtok.explain.vocabulary import Vocabulary
from ggtok.loading.loaded import Loaded, TokenAttr


def merge_tree(loaded: Loaded, id: int) -> MergeTree:
    text = loaded.native.text(id)  # raises for an invalid id
    check_merges(loaded)
    if len(text) > LONGEST:
        raise InvalidValueError(
            f"token {id} has {len(text):,} bytes, and at most {LONGEST:,} can be explained"
        )
    v = vocabulary_of(loaded)
    return _bpe(v, id, text) if loaded.vocab_type == "BPE" else _spm(v, id, text)


def check_merges(loaded: Loaded) -> None:
    """Raises VocabError for a vocabulary without merges."""
    if loaded.vocab_type not in ("BPE", "SPM"):
        raise VocabError(f"a {loaded.vocab_type} vocabulary has no merges, only BPE and SPM have")


def _bpe(v: Vocabulary, id: int, stored: bytes) -> MergeTree:
    notes = [*_notes(v, id)]
    word = bpe.from_stored(v, stored)
    symbols: list[bytes] = []
    if word is None:
        notes.append(
            "it contains a character that stands for no byte, so merging never produces it"
        )
    elif bpe.is_raw(v) and not _is_utf8(word):
        notes.append("it isn't UTF-8, but merging starts from whole characters")
    else:
        symbols = bpe.first_symbols(v, stored)
        cuts = pretok.words(v, word.decode()) if _is_utf8(word) else []
        if len(cuts) > 1:
            pieces = " | ".join(repr(cut.text) for cut in cuts)
            notes.append(f"on its own, it is split by the pre-tokenizer: {pieces}")
    merges, left = bpe.merge(v, symbols)
    splits = ((stored[:i], stored[i:]) for i in range(1, len(stored)))
    pairs = [
        Merge(bpe.readable(v, pair[0]), bpe.readable(v, pair[1]), rank=v.ranks[pair])
        for pair in splits
        if pair in v.ranks
    ]
    return MergeTree(
        id=id,
        text=bpe.readable(v, stored),
        reached=left == [stored] and v.find(stored) == id,
        whole_word=word is not None and bpe.takes_whole(v, word),
        symbols=[bpe.readable(v, symbol) for symbol in symbols],
        merges=merges,
        tokens=[token for symbol in left for token in bpe.tokens_of(v, symbol)],
        pairs=sorted(pairs, key=lambda merge: merge.rank or 0),
        notes=notes,
    )


def _spm(v: Vocabulary, id: int, text: bytes) -> MergeTree:
    symbols = bpe.first_symbols(v, text)
    merges, left = spm.merge(v, symbols)
    score = v.score(id)
    ends = [0]
    for symbol in symbols:
        ends.append(ends[-1] + len(symbol))
    pairs = [
        Merge(text_of(text[:i]), text_of(text[i:]), score=score)
        for i in ends[1:-1]
        if _can_be(v, text[:i]) and _can_be(v, text[i:])
    ]
    return MergeTree(
        id=id,
        text=text_of(text),
        reached=left == [text],
        whole_word=False,
        symbols=[text_of(symbol) for symbol in symbols],
        merges=merges,
        tokens=[token for symbol in left for token in spm.tokens_of(v, symbol)],
        pairs=pairs,
        notes=[*_notes(v, id)],
    )


def _can_be(v: Vocabulary, symbol: bytes) -> bool:
    """Whether a merge can produce this symbol: it is a token or a single character."""
    return len(symbol) <= lead_length(symbol[0]) or v.find(symbol) is not None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _notes(v: Vocabulary, id: int) -> Iterator[str]:
    """Remarks about other ways to the token."""
    attr = v.attrs[id]
    if attr & TokenAttr.CONTROL:
        yield "a control token: parsed before any merge, if control tokens are parsed"
    if attr & TokenAttr.USER_DEFINED:
        yield "a user-defined token: always parsed, before any merge"
    if attr & TokenAttr.UNKNOWN:
        yield "the unknown token"
    if attr & TokenAttr.BYTE:
        yield "a byte token: used for a byte of text that isn't part of another token"
    if v.find(v.text(id)) != id:
        yield "it is a k-mer, which is only used between <dna> and </dna>"
