"""Common differences from the source that llama.cpp's rules force.

A difference says how to change the source so that it follows llama.cpp's rule. With all of these
changes, a tokenizer.json must produce our ids for every text. With one change, it shows how many
lines the rule affects.
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
        f"llama.cpp's {pre} distinguishes fewer characters than the source's expressions (letters "
        "have one category, and case only in ASCII; U+017F is not an s), and none newer than "
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
        "for unknown characters, the source produces byte tokens, and llama.cpp <unk>",
        change=change,
    )


def leading_space(special: Sequence[str]) -> Difference:
    return Difference(
        "leading-space",
        "the source puts no space before a text that begins with one: llama.cpp does",
        without=_leading_spaces(special),
    )


def _leading_spaces(special: Sequence[str]) -> Callable[[str], str]:
    """A function that removes spaces at the start of a line and after each of these texts."""
    begins = "|".join(["^", *map(re.escape, sorted(special, key=len, reverse=True))])
    pattern = re.compile(f"({begins})[ {_MARK}]+")
    return lambda line: pattern.sub(r"\1", line)
