"""The data classes of an explanation. ``dataclasses.asdict`` prepares them for JSON.

Texts are ``str``; bytes that aren't UTF-8 are lone surrogates (``surrogateescape``).
Positions are byte offsets in the input text.
"""

from __future__ import annotations

from dataclasses import dataclass, field


def text_of(data: bytes) -> str:
    """Decodes bytes to the form of text that these classes use."""
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Token:
    """One id, and how it was produced.

    Attributes:
        id: the id; -1 where llama.cpp returns -1 because there is no unknown token.
        text: the token's piece.
        how: ``"added"``, ``"special"``, ``"whole word"``, ``"merged"``, ``"symbol"`` (not
            merged with anything), ``"byte"`` (byte fallback), ``"longest match"``, ``"best
            path"``, ``"unknown"``, ``"k-mer"``, ``"tag"`` or ``"hash"``.
        score: the token's score, if the model chooses tokens by score (SPM, UGM, PLaMo).
        total: the sum of the scores up to and including this token (UGM), or from this token to
            the end (PLaMo).
        why: a remark for the reader, possibly ``""``.
    """

    id: int
    text: str
    how: str
    score: float | None = None
    total: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Rule:
    """The rule by which a scanner of the pre-tokenizer found a word.

    Attributes:
        scanner: the scanner's name.
        expression: the alternative that matched, or None if the word is between two matches.
    """

    scanner: str
    expression: str | None


@dataclass(frozen=True)
class Merge:
    """A merge of two neighbouring symbols.

    Attributes:
        left, right: the symbols.
        rank: the merge's index in the file's list (BPE); the lowest is merged first.
        score: the score of the resulting token (SPM); the highest is merged first.
        at: the index of the left symbol among the word's initial symbols.
    """

    left: str
    right: str
    rank: int | None = None
    score: float | None = None
    at: int = 0


@dataclass(frozen=True)
class LatticeStep:
    """The best path to one position of the lattice (UGM: from the start; PLaMo: from the end).

    Attributes:
        at: the position, in bytes (UGM) or characters (PLaMo) of the word.
        id, text: the token that ends (UGM) or starts (PLaMo) at this position.
        score: the score of that token.
        total: the sum of scores of the best path.
    """

    at: int
    id: int
    text: str
    score: float
    total: float


@dataclass(frozen=True)
class Word:
    """A part of a text that is tokenized separately.

    Attributes:
        text: the normalized text.
        begin, end: the span of its source.
        tokens: the resulting tokens.
        rules: for each scanner of the pre-tokenizer, the rule that found the word (BPE).
        symbols: the initial symbols (BPE, SPM).
        merges: the merges, in order.
        lattice: the best path to each position (UGM, PLaMo).
    """

    text: str
    begin: int
    end: int
    tokens: list[Token]
    rules: list[Rule] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    lattice: list[LatticeStep] = field(default_factory=list)


@dataclass(frozen=True)
class Fragment:
    """A special token, or raw text between special tokens.

    Attributes:
        text: the raw text, or the special token's text.
        begin, end: the fragment's span, including white space that a special token strips.
        special: the special token; None for raw text.
        normalized: the normalized raw text; None if normalization didn't change it.
        notes: remarks about the normalization.
        words: the words of raw text.
    """

    text: str
    begin: int
    end: int
    special: Token | None = None
    normalized: str | None = None
    notes: list[str] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)


@dataclass(frozen=True)
class Explanation:
    """The explanation of a text's ids.

    Attributes:
        ids: the ids that :meth:`Tokenizer.encode` returns.
        text: the text.
        vocab_type, model, pre: the properties of the tokenizer with these names.
        before, after: the tokens added before and after the text.
        fragments: the text's special tokens and raw texts, in order.
    """

    ids: list[int]
    text: str
    vocab_type: str
    model: str
    pre: str | None
    before: list[Token]
    after: list[Token]
    fragments: list[Fragment]


@dataclass(frozen=True)
class MergeTree:
    """The merges that build one token (:meth:`Tokenizer.merge_tree`).

    Attributes:
        id, text: the token.
        reached: whether merging the token's own bytes (or characters) produces the token.
        whole_word: whether a word equal to the token becomes the token without merging
            (``ignore_merges``).
        symbols: the initial symbols.
        merges: all merges that apply, in order.
        tokens: the resulting tokens; only the token itself if it is reached.
        pairs: all pairs of symbols that merge into the token, in order of precedence.
        notes: remarks about other ways to produce the token.
    """

    id: int
    text: str
    reached: bool
    whole_word: bool
    symbols: list[str]
    merges: list[Merge]
    tokens: list[Token]
    pairs: list[Merge]
    notes: list[str]
