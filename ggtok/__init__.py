"""llama.cpp's tokenizer for GGUF vocabularies, without llama.cpp.

    >>> import ggtok
    >>> tok = ggtok.load("model.gguf")
    >>> ids = tok.encode("Hello, world")
    >>> tok.decode(ids)

:func:`load` reads the vocabulary out of a GGUF file; the :class:`Tokenizer` it
gives turns text into the ids that llama.cpp gives, and back.
"""

from ggtok.errors import (
    ArgumentError,
    FileError,
    GGTokError,
    GGUFError,
    InvalidTypeError,
    InvalidValueError,
    MissingExtraError,
    OutOfMemoryError,
    TemplateError,
    TextDecodeError,
    TextEncodeError,
    TokenIdError,
    UnknownPreTokenizerError,
    UnreachableError,
    VocabError,
    VocabWarning,
)
from ggtok.tokenizer import CacheInfo, TokenAttr, Tokenizer, load

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "CacheInfo",
    "FileError",
    "GGTokError",
    "GGUFError",
    "InvalidTypeError",
    "InvalidValueError",
    "MissingExtraError",
    "OutOfMemoryError",
    "TemplateError",
    "TextDecodeError",
    "TextEncodeError",
    "TokenAttr",
    "TokenIdError",
    "Tokenizer",
    "UnknownPreTokenizerError",
    "UnreachableError",
    "VocabError",
    "VocabWarning",
    "__version__",
    "load",
]
