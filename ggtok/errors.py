"""The exceptions that ggtok raises.

All are subclasses of :class:`GGTokError`. Most are also subclasses of the matching built-in
exception (``ValueError``, ``IndexError``, ``TypeError``, ``OSError``, ``MemoryError``), so
callers can catch either.

A message serves Python and the command line: it names an argument as Python does, and what it
advises as both spell it, as in ``force=True (--force) overwrites it``.
"""

from __future__ import annotations

from ggtok.base.escape import printable

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

__all__ = [
    "ArgumentError",
    "DocumentError",
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
    "TokenIdError",
    "UnknownPreTokenizerError",
    "UnreachableError",
    "VocabError",
    "VocabWarning",
]


class GGTokError(Exception):
    """Base class of all exceptions that ggtok raises."""


class _FileContentsError(GGTokError):
    """An error in a file's contents.

    Attributes:
        key: the GGUF key that the error is about, or None.
        offset: the position in the file, in bytes from its start, or None.
    """

    def __init__(self, message: str, *, key: str | None = None, offset: int | None = None) -> None:
        super().__init__(message)
        self.key = key
        self.offset = offset

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


def _rebuild(
    cls: type[GGTokError], args: tuple[object, ...], state: dict[str, object]
) -> GGTokError:
    error = cls.__new__(cls, *args)
    error.args = args
    error.__dict__.update(state)
    return error


class GGUFError(_FileContentsError):
    """A file isn't GGUF, is malformed, or is cut off; ``key`` and ``offset`` say where."""


class VocabError(_FileContentsError):
    """A file's vocabulary is faulty, or doesn't support the operation."""


class UnknownPreTokenizerError(VocabError):
    """``tokenizer.ggml.pre``, or the argument ``pre``, is a name that ggtok doesn't know.

    Attributes:
        name: the unknown name, or None.
        suggestions: the most similar known names, most similar first.
    """

    def __init__(
        self,
        message: str,
        *,
        name: str | None = None,
        suggestions: tuple[str, ...] = (),
        key: str | None = None,
        offset: int | None = None,
    ) -> None:
        super().__init__(message, key=key, offset=offset)
        self.name = name
        self.suggestions = suggestions


class ArgumentError(GGTokError):
    """An argument is wrong.

    Attributes:
        key: the path of the field at fault in a chat request, such as ``messages[0]['content']``,
            or None.
    """

    key: str | None = None


class InvalidValueError(ArgumentError, ValueError):
    """An argument has an invalid value."""


class InvalidTypeError(ArgumentError, TypeError):
    """An argument has the wrong type."""


class TokenIdError(ArgumentError, IndexError):
    """A token id is outside the vocabulary."""


class TextEncodeError(ArgumentError, UnicodeEncodeError):
    """A ``str`` can't be encoded as UTF-8: ``start`` is the index of a lone surrogate.
    ``text.encode("utf-8", "surrogatepass")`` are bytes that ggtok takes.

    Attributes:
        name: the argument: ``"text"``, or ``"texts[3]"`` in a batch.
    """

    def __init__(
        self,
        encoding: str,
        object: str,
        start: int,
        end: int,
        reason: str,
        *,
        name: str = "text",
    ) -> None:
        super().__init__(encoding, object, start, end, reason)
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # tblib (Dask) ignores inherited __reduce__

    def __str__(self) -> str:
        code = ord(self.object[self.start])
        return (
            f"{self.name} has a lone surrogate (U+{code:04X}) at code point {self.start}, which "
            "can't be encoded as UTF-8; remove it, or pass the text as bytes"
        )


class TextDecodeError(GGTokError, UnicodeDecodeError):
    """Ids decode to bytes that aren't UTF-8, and the caller passed ``errors="strict"``."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # for tblib: see TextEncodeError


class DocumentError(GGTokError, ValueError):
    """A document in a source is faulty, and the caller passed ``errors="raise"``.

    Attributes:
        path: the path of the source.
        kind: ``"invalid_utf8"``, ``"empty"``, ``"missing"`` or ``"malformed"``.
    """

    def __init__(self, message: str, *, path: str, kind: str) -> None:
        super().__init__(printable(message))
        self.path = path
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class FileError(GGTokError, OSError):
    """A file can't be opened, read or written; ``errno`` and ``filename`` are set if known."""


class UnreachableError(FileError):
    """A server can't be reached, is too slow, or fails during the transfer."""


class _AlsoBuiltin(FileError):
    """A FileError that is also a specific subclass of OSError. Its name is shown as FileError."""

    def __init_subclass__(cls) -> None:
        cls.__name__ = cls.__qualname__ = "FileError"
        _ALSO[cls.__bases__[1]] = cls

    def __reduce__(self) -> tuple[Any, ...]:
        reduced: tuple[Any, ...] = tuple(super().__reduce__())
        return _rebuild_also, (type(self).__bases__[1], reduced[1]), *reduced[2:]


_ALSO: dict[type, type[FileError]] = {}


def _rebuild_also(builtin: type[OSError], args: tuple[Any, ...]) -> FileError:
    return _ALSO[builtin](*args)


class _FileNotFoundError(_AlsoBuiltin, FileNotFoundError):
    pass


class _FilePermissionError(_AlsoBuiltin, PermissionError):
    pass


class _FileIsADirectoryError(_AlsoBuiltin, IsADirectoryError):
    pass


class MissingExtraError(GGTokError, ImportError):
    """A required package isn't installed; the message names ggtok's extra that installs it."""


class OutOfMemoryError(GGTokError, MemoryError):
    """The C core could not allocate memory."""


class TemplateError(GGTokError, ValueError):
    """A chat template can't be compiled, fails, rejects the messages, or exceeds a limit.

    Attributes:
        line: the line of the template, counted from 1, or None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        # The message may contain output of the template, which may be unprintable.
        super().__init__(printable(message), line)
        self.line = line

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.line is None else f"line {self.line}: {message}"


class VocabWarning(UserWarning):
    """A vocabulary has a problem that doesn't stop the operation, such as a missing chat template,
    or a folder of input files contains broken links."""


def not_found(message: str) -> FileError:
    """Returns a FileError that is also a FileNotFoundError, with no filename set."""
    return _FileNotFoundError(message)


def not_permitted(message: str) -> FileError:
    """Returns a FileError that is also a PermissionError, with no filename set."""
    return _FilePermissionError(message)


def file_error(errno: int, reason: str, filename: str | bytes) -> FileError:
    """Returns a FileError that is also the subclass of OSError that Python uses for `errno`."""
    cls = _ALSO.get(type(OSError(errno, reason)), FileError)
    return cls(errno, reason, filename)
