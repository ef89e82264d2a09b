"""Converts the C library's errors to exceptions."""

from __future__ import annotations

from collections.abc import Callable

from ggtok import errors
from ggtok.base.escape import shown
from ggtok.native.library import UNKNOWN_SIZE, ffi, lib, pre_names, string

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any


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
        self.message: str = shown(ffi.string(err.message)) or "unknown error"
        self.key: str | None = string(ffi.string(err.key)) or None
        if self.key is not None and self.key not in self.message:
            self.message += f" (key '{self.key}')"
        if where is not None:
            self.message = f"{where}: {self.message}"
        self.name: str | None = shown(ffi.string(err.name)) or None
        self.offset: int | None = None if err.offset == lib.GGTOK_NO_OFFSET else err.offset
        self.errno: int = err.os_error
        self.filename = filename
        self.pre = pre
        self.data, self.file_size = data, file_size

    @property
    def text(self) -> str:
        """The message, with the file's name in front."""
        if self.filename is None:
            return self.message
        import os

        return f"{shown(os.fsencode(self.filename))}: {self.message}"


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
        message += " (similar names: " + ", ".join(map(repr, near)) + ")"
    advice = errors.ForPython(
        "; call ggtok.load(..., pre=NAME) to use a known one, or "
        "ggtok.load(..., pre_patterns=[REGEX, ...]) to supply its regular expressions"
    )
    return errors.UnknownPreTokenizerError(
        errors.Wording(message, advice), name=name, suggestions=near, key=f.key, offset=f.offset
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
    # If the parser got past the header, it read a GGUF file, even if the file has changed since.
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
    """The exception for a ggtok_error.

    Args:
        filename: the file that the error is about, if any.
        where: the argument that the error is about, if any.
        data: a view of the file's bytes, if they don't come from the path `filename`.
    """
    failure = Failure(err, filename, pre, where, data, file_size)
    make = _ERRORS.get(failure.status)
    return make(failure) if make else errors.GGTokError(failure.message)
