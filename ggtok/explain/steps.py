"""What an explanation consists of: data classes, which ``dataclasses.asdict`` makes ready for JSON.

Texts are ``str``; bytes that are no UTF-8 are lone surrogates in them (``surrogateescape``).
Places are offsets in bytes of the text that was given.
"""

from __future__ import annotations

from dataclasses import dataclass, field


def text_of(data: bytes) -> str:
    """Bytes as these classes hold them."""
    return data.decode("utf-8", "surrogateescape")


@dataclass(frozen=True)
class Token:
    """One id, and why.

    Attributes:
        id: the id; -1 where llama.cpp gives that for an unknown token that there is none of.
        text: what the token prints.
        how: ``"added"``, ``"special"``, ``"whole word"``, ``"merged"``, ``"symbol"`` (one that
            nothing merged with), ``"byte"`` (byte
            fallback), ``"longest match"``, ``"best path"``, ``"unknown"``, ``"k-mer"``, ``"tag"``
            or ``"hash"``.
        score: its score, where scores decide (SPM, UGM, PLaMo).
        total: the sum of scores up to and with it (UGM), or from it on (PLaMo).
        why: a remark for people, perhaps ``""``.
    """

    id: int
    text: str
    how: str
    score: float | None = None
    total: float | None = None
    why: str = ""


@dataclass(frozen=True)
class Rule:
    """What a scanner of the pre-tokenizer found a word by.

    Attributes:
        scanner: the expression's name.
        expression: that alternative of it which matched; None: the word lies between its matches.
    """

    scanner: str
    expression: str | None


@dataclass(frozen=True)
class Merge:
    """Two neighbouring symbols that became one.

    Attributes:
        left, right: the symbols.
        rank: the merge's place in the file's list (BPE): the least goes first.
        score: the score of the token that they become (SPM): the greatest goes first.
        at: the first symbol's number among those that the word began with.
    """

    left: str
    right: str
    rank: int | None = None
    score: float | None = None
    at: int = 0


@dataclass(frozen=True)
class Place:
    """The best way to one place of the lattice (UGM: from the left; PLaMo: from the right).

    Attributes:
        at: the place, in bytes (UGM) or characters (PLaMo) of the word.
        id, text: the token that ends there (UGM) or begins there (PLaMo).
        score: its score.
        total: the sum of scores of the best way.
    """

    at: int
    id: int
    text: str
    score: float
    total: float


@dataclass(frozen=True)
class Word:
    """A stretch of text that is tokenized by itself.

    Attributes:
        text: the text, normalized.
        begin, end: where it comes from.
        tokens: what became of it.
        rules: which rule of each scanner of the pre-tokenizer cut it out (BPE).
        symbols: what merging began with (BPE, SPM).
        merges: in their order.
        lattice: the best way to each place (UGM, PLaMo).
    """

    text: str
    begin: int
    end: int
    tokens: list[Token]
    rules: list[Rule] = field(default_factory=list)
    symbols: list[str] = field(default_factory=list)
    merges: list[Merge] = field(default_factory=list)
    lattice: list[Place] = field(default_factory=list)


@dataclass(frozen=True)
class Fragment:
    """A special token, or raw text between special tokens.

    Attributes:
        text: the text, as it was given; of a special token, the token's own.
        begin, end: where it stands; a special token with the white space that it takes along.
        special: the special token; None for raw text.
        normalized: raw text as it is tokenized; None if as it was given.
        notes: what was done to it, for people.
        words: of raw text.
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
    """How a text's ids come about.

    Attributes:
        ids: the ids, equal to :meth:`Tokenizer.encode`'s.
        text: the text.
        vocab_type, model, pre: the vocabulary's.
        before, after: the tokens that were added.
        fragments: what the text consists of, in its order.
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
    """How merges make one token (:meth:`Tokenizer.merge_tree`).

    Attributes:
        id, text: the token.
        reached: whether merging the token's own bytes, or characters, gives it.
        whole_word: whether a word that is the token is taken without merging (``ignore_merges``).
        symbols: what merging begins with.
        merges: all that happen, in their order.
        tokens: what they give: the token alone, if it is reached.
        pairs: all pairs that the token is made of, the one that goes first at the head.
        notes: what else decides, for people.
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
