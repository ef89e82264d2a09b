"""Finds errors and oddities in a file's tokenizer: :func:`ggtok.doctor`.

Each module has the checks for one group of findings. :mod:`~ggtok.inspect.doctor.codes` has the
table of findings.
"""

from __future__ import annotations

import os
from itertools import chain

from ggtok import _types as types
from ggtok.errors import VocabError
from ggtok.inspect.doctor import engines, reach, template, tokens
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import File

_CHECKS = template, engines, tokens, reach


def doctor(source: str | os.PathLike[str] | types.Buffer) -> list[Finding]:
    """Find errors and oddities in a file's tokenizer.

    Args:
        source: a path, a model's name, or the bytes of a GGUF file, as for :func:`ggtok.load`.
            Of a remote file, only the beginning is downloaded.

    Returns:
        The findings, sorted by code.

    Raises:
        FileError, GGUFError: as for :func:`ggtok.load`.
        InvalidTypeError: ``source`` has another type.
    """
    try:
        file = File(source)
    except VocabError as e:
        return [finding("GGT001", str(e))]
    found = chain.from_iterable(check.check(file) for check in _CHECKS)
    return sorted(found, key=lambda each: each.code)
