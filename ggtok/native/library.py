"""The compiled module: its constants, its errors as exceptions, and the functions that need no
tokenizer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

from ggtok import errors
from ggtok.base.escape import printable

try:
    from ggtok._ffi import ffi as ffi
    from ggtok._ffi import lib as lib
except ModuleNotFoundError as e:
    if e.name != "ggtok._ffi":
        raise
    raise ImportError(
        "ggtok's compiled module is missing: this looks like the source tree, not an installed "
        "package (run 'pip install -e .' in it, or leave its folder)"
    ) from e

# Type checkers treat this name as true. Importing typing takes longer than the rest of ggtok.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ADD_SPECIAL: int = lib.GGTOK_ADD_SPECIAL
PARSE_SPECIAL: int = lib.GGTOK_PARSE_SPECIAL
PLAIN_USER_DEFINED: int = lib.GGTOK_PLAIN_USER_DEFINED
NOT_FIRST_BLOCK: int = lib.GGTOK_NOT_FIRST_BLOCK
NOT_LAST_BLOCK: int = lib.GGTOK_NOT_LAST_BLOCK
CONTINUATION: int = lib.GGTOK_CONTINUATION
SPANS: int = lib.GGTOK_SPANS
TAIL: int = lib.GGTOK_TAIL
UNKNOWN_SIZE: int = 2**64 - 1  # the value for an unknown file size

VOCAB_TYPES: dict[int, str] = {
    getattr(lib, f"GGTOK_VOCAB_{name}"): name
    for name in ("NONE", "SPM", "BPE", "WPM", "UGM", "RWKV", "PLAMO2", "TEST", "PLAMO3")
}
SPECIALS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_{name}")
    for name in (
        *("BOS", "EOS", "EOT", "EOM", "UNK", "SEP", "NL", "PAD", "MASK"),
        *("FIM_PRE", "FIM_SUF", "FIM_MID", "FIM_PAD", "FIM_REP", "FIM_SEP"),
    )
}
FLAGS: dict[str, int] = {
    name.lower(): getattr(lib, f"GGTOK_FLAG_{name}")
    for name in (
        *("ADD_BOS", "ADD_EOS", "ADD_SEP", "ADD_SPACE_PREFIX", "IGNORE_MERGES", "CLEAN_SPACES"),
        *("REMOVE_EXTRA_WHITESPACES", "ESCAPE_WHITESPACES", "LOWERCASE", "STRIP_ACCENTS"),
        "NFC",
    )
}
TYPE_NAMES: dict[int, str] = {
    getattr(lib, f"GGTOK_{name.upper()}"): name
    for name in (
        *("u8", "i8", "u16", "i16", "u32", "i32", "u64", "i64"),
        *("f32", "f64", "bool", "string", "array"),
    )
}
SIGNED = {lib.GGTOK_I8, lib.GGTOK_I16, lib.GGTOK_I32, lib.GGTOK_I64}
FLOAT = {lib.GGTOK_F32, lib.GGTOK_F64}


def string(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")


def bytes_of(view: Any) -> bytes:
    """Returns the bytes of a ggtok_bytes."""
    return ffi.buffer(view.data, view.n)[:] if view.n else b""


def ints_of(view: Any) -> tuple[int, ...]:
    """Returns the elements of a ggtok_ids."""
    return tuple(ffi.unpack(view.data, view.n)) if view.n else ()


def pre_names() -> list[str]:
    """Returns all known pre-tokenizer names."""
    names: list[str] = []
    while (name := lib.ggtok_pre_name(len(names))) != ffi.NULL:
        names.append(string(ffi.string(name)))
    return names


def knows_key(key: str) -> bool:
    """Whether this version knows a file's key ``tokenizer.ggml.*``."""
    known: bool = lib.ggtok_knows_key(key.encode("utf-8", "surrogateescape"))
    return known


# ---- errors ----


class Failure:
    """The fields of a ggtok_error, as Python values."""

    def __init__(
        self,
        err: Any,
        filename: str | bytes | None = None,
        pre: str | None = None,
        where: str | None = None,
        data: Any = None,
        file_size: int | None = None,
    ) -> None:
        self.status: int = err.status
        self.message: str = printable(ffi.string(err.message)) or "unknown error"
        self.key: str | None = string(ffi.string(err.key)) or None
        if self.key is not None and self.key not in self.message:
            self.message += f" (key '{self.key}')"
        if where is not None:
            self.message = f"{where}: {self.message}"
        self.name: str | None = printable(ffi.string(err.name)) or None
        self.offset: int | None = None if err.offset == lib.GGTOK_NO_OFFSET else err.offset
        self.errno: int = err.os_error
        self.filename = filename
        self.pre = pre
        self.data, self.file_size = data, file_size

    @property
    def text(self) -> str:
        """The message, preceded by the file's name if there is one."""
        if self.filename is None:
            return self.message
        import os

        return f"{printable(os.fsencode(self.filename))}: {self.message}"


def _io_error(f: Failure) -> errors.GGTokError:
    import errno
    import os

    reason = "not a regular file" if f.errno == errno.ESPIPE else os.strerror(f.errno)
    return errors.file_error(f.errno, reason, f.filename or "")


def _pre_error(f: Failure) -> errors.GGTokError:
    import difflib

    name = f.name if f.pre is None else f.pre
    near = tuple(difflib.get_close_matches(name or "", pre_names(), n=3, cutoff=0.5))
    message = f.text
    if near:
        message += f" (similar names, with other ids: {', '.join(map(repr, near))})"
    message += (
        "; use a newer ggtok, convert the original tokenizer ('ggtok convert'), or pass its "
        "regular expressions as pre_patterns; pre=NAME (--pre NAME) selects a known name ('ggtok "
        "inspect --pre-names' lists them), but its ids may differ"
    )
    return errors.UnknownPreTokenizerError(
        message, name=name, suggestions=near, key=f.key, offset=f.offset
    )


def _gguf_error(f: Failure) -> errors.GGTokError:
    from ggtok.base import diagnose

    def parses_further(head: bytes) -> bool:
        size = ffi.new("uint64_t *")
        return not lib.ggtok_metadata_size(
            head, len(head), UNKNOWN_SIZE, size, ffi.new("ggtok_error *")
        )

    data = None if f.data is None else memoryview(ffi.buffer(f.data))
    message = diagnose.explain_parse_error(f.message, data, f.filename, f.file_size, parses_further)
    # If the parser got past the header, the file was GGUF then, even if it has changed since.
    if not (f.offset and message.startswith("not a GGUF file")):
        f.message = message
    return errors.GGUFError(f.text, key=f.key, offset=f.offset)


_ERRORS: dict[int, Callable[[Failure], errors.GGTokError]] = {
    lib.GGTOK_ERR_MEMORY: lambda f: errors.OutOfMemoryError(f.message),
    lib.GGTOK_ERR_IO: _io_error,
    lib.GGTOK_ERR_GGUF: _gguf_error,
    lib.GGTOK_ERR_VOCAB: lambda f: errors.VocabError(f.text, key=f.key, offset=f.offset),
    lib.GGTOK_ERR_PRETOKENIZER: _pre_error,
    lib.GGTOK_ERR_ARGUMENT: lambda f: errors.InvalidValueError(f.message),
    lib.GGTOK_ERR_UNSUPPORTED: lambda f: errors.VocabError(f.message, key=f.key, offset=f.offset),
}


def error(
    err: Any,
    *,
    filename: str | bytes | None = None,
    pre: str | None = None,
    where: str | None = None,
    data: Any = None,
    file_size: int | None = None,
) -> errors.GGTokError:
    """Returns the exception for a ggtok_error.

    Args:
        filename: the file that the error is about, if any.
        where: the argument that the error is about, if any.
        data: a view of the file's bytes, if they don't come from the path `filename`.
    """
    failure = Failure(err, filename, pre, where, data, file_size)
    make = _ERRORS.get(failure.status)
    return make(failure) if make else errors.GGTokError(failure.message)


# ---- code points ----

# Flags from unicode/unicode.h, with the first letter of each general category.
_CATEGORIES = ((1, "N"), (2, "L"), (3, "Z"), (4, "M"), (5, "P"), (6, "S"), (7, "C"))
_WHITE_SPACE = 1 << 8


def category(c: int) -> str:
    """Returns the first letter of a code point's general category, or ``""`` if unassigned."""
    return _category(lib.ggtok_unicode_flags(c))


@cache
def _category(flags: int) -> str:
    return next((letter for bit, letter in _CATEGORIES if flags >> bit & 1), "")


def is_white_space(c: int) -> bool:
    return bool(lib.ggtok_unicode_flags(c) & _WHITE_SPACE)


def lower(c: int) -> int:
    """Returns the lower case of a code point by its simple mapping, which is one code point."""
    lowered: int = lib.ggtok_unicode_to_lower(c)
    return lowered


def first_of_nfd(c: int) -> int:
    """Returns the first code point of a code point's canonical decomposition."""
    first: int = lib.ggtok_unicode_nfd_first(c)
    return first


# ---- the beginning of a GGUF file ----


def metadata_size(prefix: bytearray, file_size: int | None, name: str) -> int:
    """Calls ggtok_metadata_size. No other thread may write to `prefix` meanwhile."""
    size, err = ffi.new("uint64_t *"), ffi.new("ggtok_error *")
    n = UNKNOWN_SIZE if file_size is None else file_size
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_metadata_size(view, len(view), n, size, err):
            raise error(err, filename=name, data=view, file_size=file_size)
    needed: int = size[0]
    return needed


def peek(prefix: bytearray, file_size: int, name: str) -> tuple[str, str, str | None, int] | int:
    """Calls ggtok_peek. Returns the vocabulary type, model, pre (None unless BPE) and number of
    tokens; or, if `prefix` is too short for that, the number of bytes that must be read."""
    out, err = ffi.new("ggtok_summary *"), ffi.new("ggtok_error *")
    with ffi.from_buffer("char[]", prefix) as view:
        if lib.ggtok_peek(view, len(view), file_size, out, err):
            raise error(err, filename=name, data=view, file_size=file_size)
    if not out.known:
        size: int = out.size
        return size
    pre = string(ffi.string(out.pre)) or None
    return VOCAB_TYPES[out.type], string(ffi.string(out.model)), pre, out.n_tokens
