"""What llama.cpp's rules force to differ from the source: one row each.

A row says how the source would have to be changed to obey llama.cpp's rule. A
tokenizer.json changed in all its ways must give our ids on every text; changed in one
way, it shows how many lines that way concerns.
"""

from __future__ import annotations

from typing import Any

from ggtok.making.patterns import MASK

Json = dict[str, Any]


def without_normalizer(document: Json) -> None:
    document["normalizer"] = None


def plain_added(document: Json) -> None:
    """Added tokens as llama.cpp's are: found as they are written, anywhere, in raw text."""
    for token in document["added_tokens"]:
        token |= {"lstrip": False, "rstrip": False, "single_word": False, "normalized": False}


def plain_but_mask(document: Json) -> None:
    """The same, for pre-tokenizers with which llama.cpp drops spaces before <mask>."""
    plain_added(document)
    for token in document["added_tokens"]:
        token["lstrip"] = token["content"] == MASK
