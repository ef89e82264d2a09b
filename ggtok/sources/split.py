"""Split models: ``name-00002-of-00005.gguf`` is the second of five files.

llama.cpp's ``gguf-split`` writes all key/value pairs to the first file, so only that file has the
vocabulary.
"""

from __future__ import annotations

import os
import re

from ggtok.base.escape import shown
from ggtok.errors import not_found

# As in llama_split_path: five digits, counted from 1.
_SHARD = re.compile(r"(?s)(.+)-([0-9]{5})-of-([0-9]{5})\.gguf", re.IGNORECASE)


def shard(path: str) -> tuple[str, int, int] | None:
    """The part before the numbers, the file's number, and the number of files.

    None: the model isn't split.
    """
    match = _SHARD.fullmatch(path)
    return (match[1], int(match[2]), int(match[3])) if match else None


def first(path: str) -> str:
    """The path of the first file of a split model; any other path unchanged."""
    found = shard(path)
    if found is None or found[1] == 1:
        return path
    at = len(found[0]) + 1
    return path[:at] + "00001" + path[at + 5 :]


def first_shard(path: str) -> str:
    """:func:`first` for a local path. Raises FileError if the first file is missing."""
    name = first(path)
    if name != path and os.path.exists(path) and not os.path.exists(name):
        raise not_found(
            f"{shown(path)}: the first file of a split model has the vocabulary, but "
            f"{shown(name)} is missing"
        )
    return name
