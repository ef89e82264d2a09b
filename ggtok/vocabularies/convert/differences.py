"""What llama.cpp's rules force to differ from the source: one row each.

A row says how the source would have to be changed to obey llama.cpp's rule. A
tokenizer.json changed in all its ways must give our ids on every text; changed in one
way, it shows how many lines that way concerns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from ggtok.vocabularies.report import Difference

Json = dict[str, Any]
_MARK = "\u2581"


def without_normalizer(document: Json) -> None:
    document["normalizer"] = None


def fewer_categories(pre: str, change: Callable[[Json], None]) -> Difference:
    return Difference(
        "pre-tokenizer",
        f"llama.cpp's {pre} tells fewer characters apart than the source's expressions (letters "
        "have one category and case in ASCII only; U+017F is not an s), and knows none newer than "
        "Unicode 15.1",
        change=change,
    )


def newer_characters(change: Callable[[Json], None]) -> Difference:
    return Difference(
        "unicode",
        "llama.cpp's Unicode is 15.1: the source's own package may know newer letters and numbers",
        change=change,
    )


def unigram_fallback(change: Callable[[Any], None]) -> Difference:
    return Difference(
        "byte-fallback",
        "the source has bytes for characters that it doesn't know: llama.cpp has <unk>",
        change=change,
    )


def leading_space(special: Sequence[str]) -> Difference:
    return Difference(
        "leading-space",
        "the source puts no space before a text that begins with one: llama.cpp does",
        without=_leading_spaces(special),
    )


def _leading_spaces(special: Sequence[str]) -> Callable[[str], str]:
    """Takes away the spaces that a line begins with, also after each of these texts."""
    begins = "|".join(["^", *map(re.escape, sorted(special, key=len, reverse=True))])
    pattern = re.compile(f"({begins})[ {_MARK}]+")
    return lambda line: pattern.sub(r"\1", line)
