"""A thin, typed wrapper around ggtok.h. No other package imports ``ggtok._ffi``.

It converts return codes to exceptions and C strings to ``bytes`` or ``str`` (``library.py``), and
arguments to memory that C can read (``arguments.py``). For encoding and decoding, ``tokenizer.py``
calls functions of cext/python/entry.c, which don't go through cffi.
"""

from ggtok.native.arguments import text_bytes
from ggtok.native.library import (
    ADD_SPECIAL,
    CONTINUATION,
    NOT_FIRST_BLOCK,
    NOT_LAST_BLOCK,
    PARSE_SPECIAL,
    PLAIN_USER_DEFINED,
    TAIL,
    knows_key,
    metadata_size,
    peek,
    pre_names,
)
from ggtok.native.native_tokenizer import Native

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from ggtok.native.native_tokenizer import Part as Part

__all__ = [
    "ADD_SPECIAL",
    "CONTINUATION",
    "NOT_FIRST_BLOCK",
    "NOT_LAST_BLOCK",
    "PARSE_SPECIAL",
    "PLAIN_USER_DEFINED",
    "TAIL",
    "Native",
    "knows_key",
    "metadata_size",
    "peek",
    "pre_names",
    "text_bytes",
]
