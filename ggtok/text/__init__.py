"""Encodes and decodes texts, and cuts them at token boundaries."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # avoids importing typing: see native/library.py


if TYPE_CHECKING:
    from typing import NamedTuple

    class Chunk(NamedTuple):
        start: int
        end: int
        n_tokens: int

else:  # see CacheInfo in tokenizer.py
    Chunk = namedtuple("Chunk", ("start", "end", "n_tokens"))  # noqa: PYI024
    Chunk.__annotations__ = dict.fromkeys(Chunk._fields, int)

Chunk.__doc__ = """A part of a text: ``text[start:end]``.

Attributes:
    start, end: the part's position, in code points for a ``str``, in bytes for a bytes-like text.
    n_tokens: the number of tokens, including those of the prefix and added tokens.
"""
