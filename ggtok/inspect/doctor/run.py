"""All checks of a file."""

from __future__ import annotations

import os
from itertools import chain

from ggtok import _types as types
from ggtok.errors import VocabError
from ggtok.inspect.doctor import merges, pre, reach, sizes, special, template, tokens
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import File

_CHECKS = pre, template, special, tokens, reach, merges, sizes


def doctor(source: str | os.PathLike[str] | types.Buffer) -> list[Finding]:
    """What is wrong or surprising in a file's tokenizer, by code.

    Args:
        source: a path, a model's name, or the bytes of a GGUF file, as of :func:`ggtok.load`.
            Of a file that is elsewhere only the beginning is fetched.

    Raises:
        FileError, GGUFError: as of :func:`ggtok.load`.
        InvalidTypeError: ``source`` is something else.
    """
    try:
        file = File(source)
    except VocabError as e:
        return [finding("GGT001", str(e))]
    found = chain.from_iterable(check.check(file) for check in _CHECKS)
    return sorted(found, key=lambda each: each.code)
