"""The steps from the arguments of :meth:`Tokenizer.encode` to the ids, and the merges that produce
a token."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from ggtok.base.escape import number
from ggtok.explain.steps import Explanation, Fragment, Merge, MergeTree, Token, Word, text_of
from ggtok.loading.loaded import Loaded, TokenAttr
from ggtok.native.arguments import text_bytes
from tests.plain import bpe, plamo, pretok, simple, spm, ugm, wpm
from tests.plain.characters import Byte, characters, lead_length
from tests.plain.native import chosen_ids
from tests.plain.vocabulary import Special, Vocabulary

if TYPE_CHECKING:
    from ggtok._types import ParseSpecial


Normalize = Callable[[Vocabulary, bytes, bool], Iterator[Byte]]


# For each type: a function that normalizes raw text, and one that tokenizes the normalized text.
_KINDS: dict[str, tuple[Normalize, Callable[[Vocabulary, list[Byte]], Iterator[Word]]]] = {
    "BPE": (bpe.normalized, bpe.words),
    "SPM": (spm.normalized, spm.words),
    "WPM": (wpm.normalized, wpm.words),
    "UGM": (ugm.normalized, ugm.words),
    "RWKV": (simple.unchanged, simple.rwkv_words),
    "TEST": (simple.unchanged, simple.test_words),
}
# The same for types and models that split raw text before they normalize it. The second function
# gets the raw text.
_CUT_FIRST: dict[str, tuple[Normalize, Callable[[Vocabulary, bytes], Iterator[Word]]]] = {
    "PLAMO2": (plamo.normalized, plamo.words),
    "PLAMO3": (plamo.normalized, plamo.words),
    "hybriddna": (bpe.normalized, simple.hybriddna_words),
    "whitespace": (simple.whitespace_normalized, simple.whitespace_words),
}


def explain(
    loaded: Loaded, text: object, add_special: bool, parse_special: ParseSpecial
) -> Explanation:
    data = text_bytes(text)
    v = vocabulary_of(loaded)
    before, after = _added(loaded, v) if add_special else ([], [])
    fragments = list(_fragments(v, data, chosen_ids(loaded, parse_special)))
    found = [token.id for token in chain(before, chain.from_iterable(map(_ids, fragments)), after)]
    shown = text_of(data)
    return Explanation(found, shown, v.type, v.model, v.pre, before, after, fragments)


def vocabulary_of(loaded: Loaded) -> Vocabulary:
    """Returns the tokenizer's vocabulary, which is cached. Two threads may create it at the same
    time; both copies are equal."""
    found: Vocabulary | None = loaded.memo.get("explain")
    if found is None:
        found = loaded.memo["explain"] = Vocabulary(loaded)
    return found


def _ids(fragment: Fragment) -> Iterable[Token]:
    if fragment.special is not None:
        return [fragment.special]
    return chain.from_iterable(word.tokens for word in fragment.words)


# ---- added tokens ----


def _added(loaded: Loaded, v: Vocabulary) -> tuple[list[Token], list[Token]]:
    """Returns the tokens added before and after the text. `encode` has checked that they exist."""
    if v.type in ("RWKV", "TEST", "NONE"):
        return [], []
    if v.type == "WPM":
        why = "a WPM vocabulary puts CLS and SEP around every text"
        return _one(v, loaded.bos_id, why), _one(v, loaded.special("sep"), why)
    bos, eos = loaded.flags["add_bos"], loaded.flags["add_eos"]
    return (
        _one(v, loaded.bos_id, "BOS, because the vocabulary's add_bos is on") if bos else [],
        _one(v, loaded.eos_id, "EOS, because the vocabulary's add_eos is on") if eos else [],
    )


def _one(v: Vocabulary, id: int | None, why: str) -> list[Token]:
    return [] if id is None else [v.token(id, "added", why=why)]


# ---- fragments ----


def _fragments(v: Vocabulary, text: bytes, parsed: bool | frozenset[int]) -> Iterator[Fragment]:
    prefix = True  # whether the fragment begins the text or follows a special token
    for part in partition(v, text, parsed):
        if part.id is None:
            yield _raw(v, text[part.begin : part.end], part.begin, prefix)
        else:
            yield _special(v, text, part, part.id)
        prefix = part.id is not None


def _special(v: Vocabulary, text: bytes, part: Part, id: int) -> Fragment:
    attr = v.attrs[id]
    kind = (
        "a user-defined token, which is always parsed"
        if attr & TokenAttr.USER_DEFINED
        else "a control token, parsed because parse_special is on"
    )
    notes = []
    begin, end = part.span
    if begin < part.begin:
        notes.append(
            f"LSTRIP: it strips {number(part.begin - begin, 'byte')} of white space before it"
        )
    if part.end < end:
        notes.append(f"RSTRIP: it strips {number(end - part.end, 'byte')} of white space after it")
    shown = text_of(text[part.begin : part.end])
    return Fragment(shown, begin, end, v.token(id, "special", why=kind), notes=notes)


def _raw(v: Vocabulary, text: bytes, base: int, prefix: bool) -> Fragment:
    norm = normalized_bytes(v, text, prefix)
    cut_first = _CUT_FIRST.get(_kind(v))
    if cut_first is not None:
        words = list(cut_first[1](v, text))
    else:
        words = list(_KINDS[v.type][1](v, norm)) if norm else []
    normalized = b"".join(raw_of(word.text) for word in words)
    return Fragment(
        text_of(text),
        base,
        base + len(text),
        normalized=None if normalized == text else text_of(normalized),
        notes=list(_notes(v, text, normalized, prefix)),
        words=[replace(word, begin=word.begin + base, end=word.end + base) for word in words],
    )


def raw_of(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def _kind(v: Vocabulary) -> str:
    return v.model if v.type == "BPE" and v.model in _CUT_FIRST else v.type


def normalized_bytes(v: Vocabulary, text: bytes, prefix: bool) -> list[Byte]:
    """Normalizes raw text. `prefix` says whether the raw text begins the whole text or follows a
    special token."""
    normalize = (_CUT_FIRST.get(_kind(v)) or _KINDS[v.type])[0]
    return list(normalize(v, text, prefix))


def _notes(v: Vocabulary, text: bytes, normalized: bytes, prefix: bool) -> Iterator[str]:
    """Yields remarks about the normalization of raw text."""
    if v.type in ("RWKV", "TEST"):
        return
    if v.type == "SPM":
        if prefix and v.flags["add_space_prefix"]:
            yield "add_space_prefix: a space is inserted before it"
        if b" " in text or (prefix and v.flags["add_space_prefix"]):
            yield "spaces become U+2581"
        return
    nfc = v.type == "UGM" and v.flags["nfc"]
    bad = sum(c is None for *_, c in characters(text, overlong=not nfc))
    if bad:
        become = "is dropped" if v.type == "WPM" else "becomes U+FFFD"
        yield f"bytes that aren't UTF-8: {bad}; each {become}"
    if v.type == "BPE" and v.flags["escape_whitespaces"]:
        yield "escape_whitespaces: spaces become U+2581"
    if v.model == "whitespace":
        yield "white space is dropped"
    if v.model == "whitespace" and v.flags["lowercase"]:
        yield "lowercase: letters are lower-cased"
    if v.type == "WPM":
        yield "white space and control characters are dropped; a U+2581 begins each word"
        for flag, what in (
            ("strip_accents", "accents are dropped"),
            ("lowercase", "letters are lower-cased"),
        ):
            if v.flags[flag]:
                yield f"{flag}: {what}"
    if nfc:
        yield "normalizer.nfc: characters are composed (Unicode NFC)"
    if v.type == "UGM":
        for flag, what in (
            ("add_space_prefix", "a space is inserted before it"),
            ("escape_whitespaces", "spaces become U+2581"),
            (
                "remove_extra_whitespaces",
                "repeated spaces become one, and spaces at the end are removed",
            ),
        ):
            if v.flags[flag] and normalized:
                yield f"{flag}: {what}"


# ---- special tokens: longest token first, each from the left ----

_WHITE_SPACE = b" \t\n\v\f\r"  # C's isspace


class Part(NamedTuple):
    """A special token, or raw text between special tokens."""

    begin: int
    end: int
    id: int | None  # None for raw text
    span: tuple[int, int]  # the token's span includes white space that it strips


def partition(v: Vocabulary, text: bytes, parsed: bool | frozenset[int]) -> list[Part]:
    """Divides a text into parts. `parsed` selects the control and unknown tokens to parse."""
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


# ---- the merges of one token ----


def merge_tree(loaded: Loaded, id: int) -> MergeTree:
    text = loaded.text(id)
    v = vocabulary_of(loaded)
    return _bpe_tree(v, id, text) if loaded.vocab_type == "BPE" else _spm_tree(v, id, text)


def _bpe_tree(v: Vocabulary, id: int, stored: bytes) -> MergeTree:
    notes = [*_token_notes(v, id)]
    word = bpe.from_stored(v, stored)
    symbols: list[bytes] = []
    if word is None:
        notes.append(
            "it contains a character that stands for no byte, so merging never produces it"
        )
    elif bpe.is_raw(v) and not _is_utf8(word):
        notes.append("it isn't UTF-8, but merging starts from whole characters")
    elif v.flags["escape_whitespaces"] and b" " in word:
        notes.append("it contains a space, but spaces become U+2581 before merging")
    else:
        symbols = bpe.first_symbols(stored)
        cuts = pretok.words(v, word.decode("utf-8", "surrogatepass")) if _is_utf8(word) else []
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


def _spm_tree(v: Vocabulary, id: int, text: bytes) -> MergeTree:
    symbols = bpe.first_symbols(text)
    merges, left = spm.merge(v, symbols)
    score = v.score(id)
    ends = [0]
    for symbol in symbols:
        ends.append(ends[-1] + len(symbol))
    pairs = [
        Merge(text_of(text[:i]), text_of(text[i:]), score=score)
        for i in ends[1:-1]
        if _can_be_symbol(v, text[:i]) and _can_be_symbol(v, text[i:])
    ]
    return MergeTree(
        id=id,
        text=text_of(text),
        reached=left == [text] and v.find(text) == id,
        whole_word=False,
        symbols=[text_of(symbol) for symbol in symbols],
        merges=merges,
        tokens=[token for symbol in left for token in spm.tokens_of(v, symbol)],
        pairs=pairs,
        notes=[*_token_notes(v, id)],
    )


def _can_be_symbol(v: Vocabulary, symbol: bytes) -> bool:
    """Whether a symbol can occur between merges: it is a token or a single character."""
    return len(symbol) <= lead_length(symbol[0]) or v.find(symbol) is not None


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return False
    return True


def _token_notes(v: Vocabulary, id: int) -> Iterator[str]:
    """Yields remarks on the token's type, and on how it is produced without merges."""
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
