"""Finds overlapping added tokens: llama.cpp parses the longest first, tokenizers the leftmost."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ggtok.vocabularies.report import Difference

# Limits of the search: more tokens, and longer overlaps, are ignored.
_MOST = 1 << 13
_LONGEST = 32  # characters
_RUN = re.compile(r"(.)\1*", re.DOTALL)


def overlaps(texts: Sequence[str]) -> Difference | None:
    """The difference, if the two rules may find different tokens among these."""
    found = sorted(_overlapping(texts)) if len(texts) <= _MOST else []
    if not found:
        return None
    pattern = re.compile("|".join(map(re.escape, sorted(found, key=len, reverse=True))))
    return Difference(
        "overlaps",
        f"{len(found)} added tokens overlap with others, such as {found[0]!r}: llama.cpp finds the "
        "longest first, the source the leftmost",
        # Replaced by a character, so that removing them doesn't form other tokens.
        without=lambda line: pattern.sub("\0", line),
    )


def _overlapping(texts: Sequence[str]) -> set[str]:
    """The texts of overlapping pairs whose first text is not the longer one.

    Runs of one character, such as newlines, are ignored, since both rules find the longest.
    """
    ends: dict[str, list[str]] = {}
    begins: dict[str, list[str]] = {}
    for text in sorted(texts, key=len):
        for i in range(1, min(len(text), _LONGEST + 1)):
            ends.setdefault(text[-i:], []).append(text)
            begins.setdefault(text[:i], []).append(text)
    found: set[str] = set()
    for overlap in ends.keys() & begins.keys():
        firsts, seconds = ends[overlap], begins[overlap]
        pair = {text for text in firsts if len(text) <= len(seconds[-1])}
        pair |= {text for text in seconds if len(text) >= len(firsts[0])}
        if len(pair) > 1 and not all(map(_RUN.fullmatch, pair)):
            found |= pair
    return found
