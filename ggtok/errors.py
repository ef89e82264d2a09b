"""The exceptions that ggtok raises.

Each is a :class:`GGTokError`, and most are also the built-in exception that a caller
would expect (``ValueError``, ``IndexError``, ``TypeError``, ``OSError``,
``MemoryError``), so that either can be caught.
"""

from __future__ import annotations

from ggtok.base.escape import shown

TYPE_CHECKING = False  # as in native/library.py
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
        key: the GGUF key concerned, or None.
        offset: where in the file, in bytes from its start, or None.
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
    """Not a GGUF file, or one that is malformed or cut off; ``key`` and ``offset`` say where."""


class VocabError(_FileContentsError):
    """The file is well formed, but its vocabulary is faulty, or can't do what was asked."""


class UnknownPreTokenizerError(VocabError):
    """``tokenizer.ggml.pre``, or the argument ``pre``, is a name that ggtok doesn't know.

    Attributes:
        name: that name, or None.
        suggestions: the known names that are most like it, the most alike first.
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
    """An argument is wrong."""


class InvalidValueError(ArgumentError, ValueError):
    """An argument has a value that is not allowed."""


class InvalidTypeError(ArgumentError, TypeError):
    """An argument has the wrong type."""


class TokenIdError(ArgumentError, IndexError):
    """A token id is outside the vocabulary."""


class TextEncodeError(ArgumentError, UnicodeEncodeError):
    """A ``str`` can't be encoded as UTF-8: ``start`` is the index of a lone surrogate.

    Attributes:
        name: which argument it is: ``"text"``, or ``"texts[3]"`` of a batch.
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
        return type(self), self.args, self.__dict__  # tblib (Dask) trusts no inherited one

    def __str__(self) -> str:
        code = ord(self.object[self.start])
        return (
            f"{self.name} has a lone surrogate (U+{code:04X}) at code point {self.start}, which "
            "can't be encoded as UTF-8; pass bytes, or text.encode('utf-8', 'surrogatepass')"
        )


class TextDecodeError(GGTokError, UnicodeDecodeError):
    """``decode(..., errors="strict")`` found bytes that are not UTF-8."""

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), self.args, self.__dict__  # as TextEncodeError's


class DocumentError(GGTokError, ValueError):
    """A document of a source is faulty, and ``errors="raise"``.

    Attributes:
        path: the source.
        kind: ``"invalid_utf8"``, ``"empty"``, ``"missing"`` or ``"malformed"``.
    """

    def __init__(self, message: str, *, path: str, kind: str) -> None:
        super().__init__(shown(message))
        self.path = path
        self.kind = kind

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), self.args, self.__dict__)


class FileError(GGTokError, OSError):
    """A file can't be opened or read; ``errno`` and ``filename``, where set, say why and which."""


class UnreachableError(FileError):
    """A server can't be reached, is too slow, or fails midway."""


class _AlsoBuiltin(FileError):
    """A FileError that is a narrower built-in exception, too. It shows as FileError."""

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
    """A package that isn't installed is needed; the message names the extra of ggtok's."""


class OutOfMemoryError(GGTokError, MemoryError):
    """The C core could not allocate memory."""


class TemplateError(GGTokError, ValueError):
    """A chat template can't be compiled, fails, rejects the messages, or exceeds a limit.

    Attributes:
        line: the line of the template, counted from 1, or None if unknown.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        # The template's own words are in it.
        super().__init__(shown(message), line)
        self.line = line

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.line is None else f"line {self.line}: {message}"


class VocabWarning(UserWarning):
    """Something is odd in a vocabulary, and llama.cpp, too, only warns about it; or a folder of
    sources holds links that lead nowhere."""


def not_found(message: str) -> FileError:
    """A FileError that is also a FileNotFoundError, about more than one path."""
    return _FileNotFoundError(message)


def not_permitted(message: str) -> FileError:
    """A FileError that is also a PermissionError."""
    return _FilePermissionError(message)


def file_error(errno: int, reason: str, filename: str | bytes) -> FileError:
    """The FileError that is also the OSError subclass which `errno` stands for."""
    cls = _ALSO.get(type(OSError(errno, reason)), FileError)
    return cls(errno, reason, filename)
