"""What llama.cpp's rules force to differ from the source: one row each.

A row says how the source would have to be changed to obey llama.cpp's rule. A
tokenizer.json changed in all its ways must give our ids on every text; changed in one
way, it shows how many lines that way concerns.
"""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


def without_normalizer(document: Json) -> None:
    document["normalizer"] = None
