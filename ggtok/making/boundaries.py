"""Special and byte tokens' texts in a corpus: SentencePiece's trainer cuts words there."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ggtok._native import training as native

BOUNDARY = "\x1f"  # SentencePiece's own mark, which its alphabet doesn't have


def cut_at(counts: native.Counts, texts: Sequence[bytes]) -> native.Counts:
    """The same counts with a boundary in place of each of the texts that a word holds.

    Leftmost ones first, and the longest of those that begin at one place. The counts are returned
    as they are if no word holds any. Texts with a U+2581 inside, which would lie in two words,
    aren't found.
    """
    seen = {code for code, _ in counts.chars()}
    texts = [text for text in texts if seen.issuperset(map(ord, text.decode()))]
    if not texts:
        return counts
    pattern = re.compile(b"|".join(map(re.escape, sorted(texts, key=len, reverse=True))))
    words, ends, times = counts.arrays()
    changed, changed_times = [], []
    for i in _suspects(pattern, words, ends):
        start = int(ends[i - 1]) if i else 0
        word, n = pattern.subn(BOUNDARY.encode(), words[start : int(ends[i])].tobytes())
        if n:
            changed.append(word)
            changed_times.append(int(times[i]))
            times[i] = 0
    if not changed:
        return counts
    cut = native.Counts(spaces=True)
    counter = native.Counter(cut)
    counter.add_words(words, ends, times)
    counter.add_words(
        b"".join(changed),
        np.cumsum([len(word) for word in changed], dtype=np.uint64),
        np.array(changed_times, np.uint64),
    )
    counter.flush()
    return cut


def _suspects(pattern: re.Pattern[bytes], words: object, ends: object) -> list[int]:
    """Numbers of words that may hold a match: they are searched as one text, in which a match may
    lie across several words and hide another one in any of them."""
    spans = [match.span() for match in pattern.finditer(words)]  # type: ignore[call-overload]
    first = np.searchsorted(ends, [start for start, _ in spans], "right")  # type: ignore[call-overload]
    last = np.searchsorted(ends, [end - 1 for _, end in spans], "right")  # type: ignore[call-overload]
    return sorted({i for a, b in zip(first, last, strict=True) for i in range(a, b + 1)})
