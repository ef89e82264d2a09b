"""Split models: ``name-00002-of-00005.gguf`` is the second of five files.

llama.cpp's ``gguf-split`` writes all key/values into the first, so that it alone
holds the vocabulary.
"""

from __future__ import annotations

import os
import re

from ggtok.base.escape import shown
from ggtok.errors import not_found

# llama_split_path: five digits, from 1 on.
_SHARD = re.compile(r"(?s)(.+)-([0-9]{5})-of-([0-9]{5})\.gguf", re.IGNORECASE)


def shard(path: str) -> tuple[str, int, int] | None:
    """What comes before the numbers, and which file of how many; None: the model isn't split."""
    match = _SHARD.fullmatch(path)
    return (match[1], int(match[2]), int(match[3])) if match else None


def first(path: str) -> str:
    """The path of the first file of a split model; any other path as it is."""
    found = shard(path)
    if found is None or found[1] == 1:
        return path
    at = len(found[0]) + 1
    return path[:at] + "00001" + path[at + 5 :]


def first_shard(path: str) -> str:
    """The same on this machine, where the first file may be missing."""
    name = first(path)
    if name != path and os.path.exists(path) and not os.path.exists(name):
        raise not_found(
            f"{shown(path)}: the first file of a split model holds the vocabulary, and "
            f"{shown(name)} is missing"
        )
    return name
