"""What llama.cpp's rules force to differ from the source: one row each.

A row says how the source would have to be changed to obey llama.cpp's rule. A
tokenizer.json changed in all its ways must give our ids on every text; changed in one
way, it shows how many lines that way concerns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ggtok.vocabularies.report import Difference

Json = dict[str, Any]


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
