"""The one package that touches the C library: a thin, typed view of ggtok.h.

Return codes become exceptions (``failures.py``), C strings become ``bytes`` or ``str``
(``library.py``), arguments become memory that C may read (``arguments.py``). Encoding and
decoding don't go through cffi but through the functions of cext/python/entry.c
(``tokenizer.py``). Nothing else imports ``ggtok._ffi``.
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
    pre_names,
)
from ggtok.native.prefix import metadata_size, peek
from ggtok.native.tokenizer import Native

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from ggtok.native.tokenizer import Part as Part

__all__ = [
    "ADD_SPECIAL",
    "CONTINUATION",
    "NOT_FIRST_BLOCK",
    "NOT_LAST_BLOCK",
    "PARSE_SPECIAL",
    "PLAIN_USER_DEFINED",
    "TAIL",
    "Native",
    "metadata_size",
    "peek",
    "pre_names",
    "text_bytes",
]
