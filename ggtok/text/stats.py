"""The result of :meth:`ggtok.Tokenizer.stats`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ggtok.base.escape import printable


@dataclass(slots=True)
class Row:
    """Counts for one text, for one script, or for all texts.

    Attributes:
        tokens: the number of tokens, without those added at the ends of a text.
        bytes: the number of bytes (UTF-8) of text from which these tokens come.
        words: the number of words: maximal runs of letters and combining marks with at least one
            letter.
        single: the number of words that are one token, possibly with the space before them.
    """

    tokens: int = 0
    bytes: int = 0
    words: int = 0
    single: int = 0

    @property
    def bytes_per_token(self) -> float:
        """The average number of bytes in a token; 0 if there are no tokens."""
        return self.bytes / self.tokens if self.tokens else 0.0

    @property
    def single_share(self) -> float:
        """The share of words that are one token; 0 if there are no words."""
        return self.single / self.words if self.words else 0.0

    def add(self, other: Row) -> None:
        self.tokens += other.tokens
        self.bytes += other.bytes
        self.words += other.words
        self.single += other.single

    def to_dict(self) -> dict[str, float]:
        counts = {name: getattr(self, name) for name in Row.__slots__}
        shares = {"bytes_per_token": self.bytes_per_token, "single_share": self.single_share}
        return counts | {name: round(value, 4) for name, value in shares.items()}


@dataclass(slots=True)
class Stats:
    """Statistics about texts and the vocabulary that encodes them.

    A token has the script of its letters; if there are several scripts, the one that comes last in
    `scripts`. Tokens without letters are digits, punctuation and symbols, or white space.

    Attributes:
        total: the sum over all texts.
        texts: the counts of each named text.
        scripts: the counts of each script, and of tokens without letters.
        lengths: how many tokens of the texts come from 1, 2, ... bytes.
        used: the number of different tokens in the texts.
        unused: the number of tokens in the vocabulary, except special ones, that aren't in the
            texts.
        vocabulary_lengths: how many tokens of the vocabulary have 1, 2, ... bytes, without
            special tokens.
        vocabulary_scripts: how many of these tokens have each script; tokens that aren't UTF-8 are
            ``"parts of characters"``.
    """

    total: Row = field(default_factory=Row)
    texts: dict[str, Row] = field(default_factory=dict)
    scripts: dict[str, Row] = field(default_factory=dict)
    lengths: dict[int, int] = field(default_factory=dict)
    used: int = 0
    unused: int = 0
    vocabulary_lengths: dict[int, int] = field(default_factory=dict)
    vocabulary_scripts: dict[str, int] = field(default_factory=dict)

    def to_dict(self) -> dict[str, Any]:
        """Returns the statistics as values for JSON."""
        return {
            "total": self.total.to_dict(),
            "texts": {name: row.to_dict() for name, row in self.texts.items()},
            "scripts": {name: row.to_dict() for name, row in self.scripts.items()},
            "lengths": {str(n): count for n, count in self.lengths.items()},
            "used": self.used,
            "unused": self.unused,
            "vocabulary_lengths": {str(n): count for n, count in self.vocabulary_lengths.items()},
            "vocabulary_scripts": dict(self.vocabulary_scripts),
        }

    def __str__(self) -> str:
        rows = {**self.texts, "all texts": self.total, **self.scripts}
        width = max(len(printable(name)) for name in rows)
        head = f"{'':{width}}  {'tokens':>12}  {'bytes':>12}  bytes/token  one-token words"
        lines = [
            f"{printable(name):{width}}  {row.tokens:>12,}  {row.bytes:>12,}  "
            f"{row.bytes_per_token:>11.2f}  {f'{row.single_share:.1%}' if row.words else '':>15}"
            for name, row in rows.items()
        ]
        return "\n".join([head, *lines])
