"""Measures texts and their tokens: :meth:`ggtok.Tokenizer.stats`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.errors import InvalidTypeError
from ggtok.native.arguments import iterate, text_bytes
from ggtok.text import batch_encoding
from ggtok.text.stats import Row, Stats

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ggtok.loading.loaded import Loaded

    Classes = NDArray[np.uint8]
    Spans = NDArray[np.int64]

_PART = 4 << 20  # bytes of a text to measure at a time
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


def stats_of(
    loaded: Loaded, texts: Mapping[str, Any] | Iterable[Any], parse_special: object, threads: int
) -> Stats:
    """Implements :meth:`ggtok.Tokenizer.stats`."""
    if isinstance(texts, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{_EXPECTED}, not {type(texts).__name__}")
    stats = Stats()
    seen = np.zeros(loaded.n_tokens, bool)
    scripts = np.zeros((len(NAMES), 4), np.int64)  # a column for each field of Row
    lengths = np.zeros(0, np.int64)
    named = isinstance(texts, Mapping) or hasattr(texts, "items")
    items = (
        texts.items()  # type: ignore[union-attr]
        if named
        else (("", text) for text in iterate(texts, _EXPECTED))
    )
    threads = batch_encoding.n_threads(loaded, threads)
    flags: Any = False, parse_special, False
    for name, text in items:
        row = Row()
        for part in _parts(text_bytes(text, "a text")):
            [(ids, spans)] = batch_encoding.encode_with_offsets(
                loaded, [part], flags, "byte", threads
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
    pieces = [piece for id, piece in enumerate(loaded.pieces()) if id not in special]
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
    """Yields the text in parts, which end after a line if lines are short enough."""
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
    """Returns the fields of Row for each class, and the number of bytes of each token."""
    classes = _classes(text)
    spans = spans[spans[:, 0] < spans[:, 1]]
    sizes = spans[:, 1] - spans[:, 0]
    kinds = _classes_of(classes, spans)
    n = len(NAMES)
    tokens = np.bincount(kinds, minlength=n)
    # Tokens that come from one character share its span. The bytes of this span count only once.
    before = np.maximum.accumulate(np.append(0, spans[:-1, 1])) if len(spans) else spans[:, 1]
    own = np.maximum(spans[:, 1] - np.maximum(spans[:, 0], before), 0)
    size = np.bincount(kinds, own, minlength=n).astype(np.int64)
    # Words are runs of letters and combining marks.
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
    """Returns the greatest class in each span. No span may be empty."""
    if not len(spans):
        return np.zeros(0, np.intp)
    padded = np.append(classes, np.uint8(0))  # so that every end is a valid index
    found = np.maximum.reduceat(padded, spans.ravel())[::2]
    return found.astype(np.intp)


def _classes(text: bytes) -> Classes:
    """Returns the class of each byte's character, as an index into NAMES."""
    chars = text.decode("utf-8", "surrogateescape")
    codes = np.frombuffer(chars.encode("utf-32-le", "surrogatepass"), "<u4")
    table = _table()
    new = np.unique(codes[table[codes] == _UNKNOWN])
    for code in new.tolist():
        match = _pattern().match(chr(code))
        table[code] = match.lastindex - 1 if match else _PUNCTUATION
    widths = 1 + (codes >= 0x80) + (codes >= 0x800).astype(np.int8) + (codes >= 0x10000)
    widths[(codes >= 0xDC80) & (codes <= 0xDCFF)] = 1  # surrogates for bytes that aren't UTF-8
    return np.repeat(table[codes], widths)


@cache
def _table() -> Classes:
    """Returns the table of classes by code point. Code points get their class when they occur."""
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
