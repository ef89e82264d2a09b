"""The type of what :meth:`ggtok.Tokenizer.chunks` gives."""

from __future__ import annotations

from collections import namedtuple

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from typing import NamedTuple

    class Chunk(NamedTuple):
        start: int
        end: int
        n_tokens: int

else:  # as CacheInfo in tokenizer.py
    Chunk = namedtuple("Chunk", ("start", "end", "n_tokens"))  # noqa: PYI024
    Chunk.__annotations__ = dict.fromkeys(Chunk._fields, int)

Chunk.__doc__ = """A part of a text: ``text[start:end]`` has `n_tokens` tokens, with the prefix and
those that are added. Code points of a ``str``, bytes of others."""
