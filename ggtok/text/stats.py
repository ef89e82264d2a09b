"""Statistics of texts and their tokens: :meth:`ggtok.Tokenizer.stats`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.escape import shown
from ggtok.errors import InvalidTypeError
from ggtok.native.arguments import iterated, text_bytes
from ggtok.text import batches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ggtok.loading.loaded import Loaded

    Classes = NDArray[np.uint8]
    Spans = NDArray[np.int64]

_PART = 4 << 20  # bytes of a text that are measured at a time
_KINDS = ("white space", "punctuation and symbols", "digits", "marks")
_PUNCTUATION, _DIGITS, _MARKS = 1, 2, 3
_SCRIPTS = tuple(
    "Latin Greek Cyrillic Armenian Hebrew Arabic Syriac Thaana Devanagari Bengali Gurmukhi "
    "Gujarati Oriya Tamil Telugu Kannada Malayalam Sinhala Thai Lao Tibetan Myanmar Georgian "
    "Hangul Ethiopic Cherokee Khmer Mongolian Hiragana Katakana Han".split()
)
NAMES = (*_KINDS, *_SCRIPTS, "other scripts")
PARTIAL = "parts of characters"
_UNKNOWN = 255
_EXPECTED = "texts must be an iterable of texts, or a mapping of them"


@dataclass(slots=True)
class Row:
    """Counts of one text, script, or of all texts.

    Attributes:
        tokens: the number of tokens, without those added at the ends of a text.
        bytes: the bytes (UTF-8) of the text that they come from.
        words: maximal runs of letters and marks with at least one letter.
        single: words that are one token, possibly with the space before them.
    """

    tokens: int = 0
    bytes: int = 0
    words: int = 0
    single: int = 0

    @property
    def bytes_per_token(self) -> float:
        """0 if there are no tokens."""
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
    """Statistics of texts and of the vocabulary that encodes them.

    The script of a token is that of its letters: the last in the order of the table if there are
    several. Tokens without letters are digits, punctuation and symbols, or white space.

    Attributes:
        total: the sum over all texts.
        texts: the counts of each named text.
        scripts: the counts of each script, and of tokens without letters.
        lengths: how many tokens of the texts come from 1, 2, ... bytes.
        used: the number of different tokens in the texts.
        unused: the number of tokens that aren't in the texts, without special tokens.
        vocabulary_lengths: how many tokens of the vocabulary have 1, 2, ... bytes, without
            special tokens.
        vocabulary_scripts: how many of these have each script; ``"parts of characters"`` are
            not UTF-8.
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
        """The statistics as JSON values."""
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
        width = max(len(shown(name)) for name in rows)
        head = f"{'':{width}}  {'tokens':>12}  {'bytes':>12}  bytes/token  one-token words"
        lines = [
            f"{shown(name):{width}}  {row.tokens:>12,}  {row.bytes:>12,}  "
            f"{row.bytes_per_token:>11.2f}  {f'{row.single_share:.1%}' if row.words else '':>15}"
            for name, row in rows.items()
        ]
        return "\n".join([head, *lines])


def of(
    loaded: Loaded, texts: Mapping[str, Any] | Iterable[Any], parse_special: object, threads: int
) -> Stats:
    """:meth:`ggtok.Tokenizer.stats`."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{_EXPECTED}, not {type(texts).__name__}")
    stats = Stats()
    seen = np.zeros(loaded.n_tokens, bool)
    scripts = np.zeros((len(NAMES), 4), np.int64)  # the fields of Row
    lengths = np.zeros(0, np.int64)
    named = isinstance(texts, Mapping) or hasattr(texts, "items")
    items = (
        texts.items()  # type: ignore[union-attr]
        if named
        else (("", text) for text in iterated(texts, _EXPECTED))
    )
    threads = batches.n_threads(loaded.native, threads)
    flags: Any = False, parse_special, False
    for name, text in items:
        row = Row()
        for part in _parts(text_bytes(text, "a text")):
            [(ids, spans)] = batches.encode_with_offsets(
                loaded.native, [part], flags, "byte", threads
            )
            seen[ids] = True
            found, sizes = _measure(part, spans)
            scripts += found
            lengths = _sum(lengths, np.bincount(sizes))
            row.add(Row(*found.sum(axis=0).tolist()))
        stats.total.add(row)
        if named:
            stats.texts.setdefault(str(name), Row()).add(row)
    stats.scripts = {
        name: Row(*counts)
        for name, counts in zip(NAMES, scripts.tolist(), strict=True)
        if any(counts)
    }
    stats.lengths = _nonzero(lengths)
    stats.used = int(seen.sum())
    seen[list(loaded.special_ids)] = True
    stats.unused = loaded.n_tokens - int(seen.sum())
    _vocabulary(loaded, stats)
    return stats


def _vocabulary(loaded: Loaded, stats: Stats) -> None:
    special = loaded.special_ids
    pieces = [piece for id, piece in enumerate(loaded.native.pieces()) if id not in special]
    stats.vocabulary_lengths = _nonzero(np.bincount([len(piece) for piece in pieces], minlength=1))
    whole = [piece for piece in pieces if piece and _is_utf8(piece)]
    ends = np.cumsum([0, *map(len, whole)])
    spans = np.stack([ends[:-1], ends[1:]], axis=1)
    counts = np.bincount(_classes_of(_classes(b"".join(whole)), spans), minlength=len(NAMES))
    partial = len(pieces) - len(whole) - sum(not piece for piece in pieces)
    stats.vocabulary_scripts = {
        name: count for name, count in zip(NAMES, counts.tolist(), strict=True) if count
    } | ({PARTIAL: partial} if partial else {})


def _is_utf8(piece: bytes) -> bool:
    try:
        piece.decode()
    except UnicodeDecodeError:
        return False
    return True


def _parts(text: bytes) -> Iterator[bytes]:
    """The text in parts, which end after a line if lines are short enough."""
    at = 0
    while at < len(text):
        end = at + _PART
        if end < len(text):
            line = text.rfind(b"\n", at, end) + 1
            if line > at:
                end = line
            else:
                while end > at + _PART - 4 and text[end] & 0xC0 == 0x80:
                    end -= 1
        yield text[at:end]
        at = end


def _measure(text: bytes, spans: Spans) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For each class the fields of Row; and the number of bytes of each token."""
    classes = _classes(text)
    spans = spans[spans[:, 0] < spans[:, 1]]
    sizes = spans[:, 1] - spans[:, 0]
    kinds = _classes_of(classes, spans)
    n = len(NAMES)
    tokens = np.bincount(kinds, minlength=n)
    # Tokens that come from one character share its span, whose bytes count once.
    before = np.maximum.accumulate(np.append(0, spans[:-1, 1])) if len(spans) else spans[:, 1]
    own = np.maximum(spans[:, 1] - np.maximum(spans[:, 0], before), 0)
    size = np.bincount(kinds, own, minlength=n).astype(np.int64)
    # Words: runs of letters and marks.
    edges = np.flatnonzero(np.diff(classes >= _MARKS, prepend=False, append=False))
    words = edges.reshape(-1, 2)
    word_kinds = _classes_of(classes, words)
    words, word_kinds = words[word_kinds > _MARKS], word_kinds[word_kinds > _MARKS]
    total = np.bincount(word_kinds, minlength=n)
    if len(words) and len(spans):
        k = np.minimum(np.searchsorted(spans[:, 1], words[:, 1]), len(spans) - 1)
        begin, end = spans[k, 0], spans[k, 1]
        alone = np.append(spans[1:, 0], len(text))[k] >= words[:, 1]
        last = np.maximum(words[:, 0] - 1, 0)
        space = (begin == last) & (classes[last] == 0)
        single = alone & (end == words[:, 1]) & ((begin == words[:, 0]) | space)
        one = np.bincount(word_kinds[single], minlength=n)
    else:
        one = np.zeros(n, np.int64)
    return np.stack([tokens, size, total, one], axis=1), sizes


def _classes_of(classes: Classes, spans: Spans) -> NDArray[np.intp]:
    """The greatest class in each span; no span is empty."""
    if not len(spans):
        return np.zeros(0, np.intp)
    padded = np.append(classes, np.uint8(0))  # reduceat's indices must be in the array
    found = np.maximum.reduceat(padded, spans.ravel())[::2]
    return found.astype(np.intp)


def _classes(text: bytes) -> Classes:
    """The class of each byte's character, as an index of NAMES."""
    chars = text.decode("utf-8", "surrogateescape")
    codes = np.frombuffer(chars.encode("utf-32-le", "surrogatepass"), "<u4")
    table = _table()
    new = np.unique(codes[table[codes] == _UNKNOWN])
    for code in new.tolist():
        match = _pattern().match(chr(code))
        table[code] = match.lastindex - 1 if match else _PUNCTUATION
    widths = 1 + (codes >= 0x80) + (codes >= 0x800).astype(np.int8) + (codes >= 0x10000)
    widths[(codes >= 0xDC80) & (codes <= 0xDCFF)] = 1  # bytes that aren't UTF-8
    return np.repeat(table[codes], widths)


@cache
def _table() -> Classes:
    """The class of each code point, filled as code points are met."""
    return np.full(0x110000, _UNKNOWN, np.uint8)


@cache
def _pattern() -> Any:
    import regex

    kinds = r"(\s)", r"(?!)()", r"(\p{N})", r"((?=\p{M})\p{Inherited})"
    scripts = (rf"((?=[\p{{L}}\p{{M}}])\p{{Script={name}}})" for name in _SCRIPTS)
    return regex.compile("|".join([*kinds, *scripts, r"([\p{L}\p{M}])"]))


def _sum(a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.int64]:
    if len(a) < len(b):
        a, b = b, a
    a = a.copy()
    a[: len(b)] += b
    return a


def _nonzero(counts: NDArray[np.int64]) -> dict[int, int]:
    return {n: count for n, count in enumerate(counts.tolist()) if count}
