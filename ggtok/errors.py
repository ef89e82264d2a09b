"""The exceptions that ggtok raises.

Every one is a :class:`GGTokError`; most are also the built-in exception that a
caller would expect (``ValueError``, ``IndexError``, ``TypeError``, ``OSError``,
``MemoryError``), so that both ways of catching work.
"""

from __future__ import annotations

__all__ = [
    "ArgumentError",
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
    """Not a GGUF file, or a malformed one; ``key`` and ``offset`` say where (None: unknown)."""


class VocabError(_FileContentsError):
    """A well-formed file whose vocabulary can't work, or can't do what was asked of it."""


class UnknownPreTokenizerError(VocabError):
    """``tokenizer.ggml.pre``, or the argument ``pre``, is a name that ggtok does not know.

    Attributes:
        name: that name, or None.
        suggestions: the known names most like it, best first.
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
    """An argument that makes no sense."""


class InvalidValueError(ArgumentError, ValueError):
    """An argument of the right type with an impossible value."""


class InvalidTypeError(ArgumentError, TypeError):
    """An argument of a wrong type."""


class TokenIdError(ArgumentError, IndexError):
    """A token id outside the vocabulary."""


class TextEncodeError(ArgumentError, UnicodeEncodeError):
    """A ``str`` that is no Unicode text: ``start`` is the index of a lone surrogate."""

    def __str__(self) -> str:
        code = ord(self.object[self.start])
        return (
            f"text has a lone surrogate (U+{code:04X}) at code point {self.start}: "
            "it has no UTF-8 form; pass bytes, or text.encode('utf-8', 'surrogatepass')"
        )


class TextDecodeError(GGTokError, UnicodeDecodeError):
    """``decode(..., errors="strict")`` met bytes that are no UTF-8."""


class FileError(GGTokError, OSError):
    """A file that can't be opened or read; ``errno`` and ``filename`` say why and which."""


class UnreachableError(FileError):
    """A server that can't be asked, or fails in the middle."""


class _FileNotFoundError(FileError, FileNotFoundError):
    pass


class _FilePermissionError(FileError, PermissionError):
    pass


class _FileIsADirectoryError(FileError, IsADirectoryError):
    pass


class MissingExtraError(GGTokError, ImportError):
    """What was asked for needs a package that isn't installed; the message names ggtok's extra."""


class OutOfMemoryError(GGTokError, MemoryError):
    """The C core could not allocate memory."""


class TemplateError(GGTokError, ValueError):
    """A chat template that can't be compiled, failed, refused the messages or passed a limit.

    Attributes:
        line: the template's line, from 1, or None where it isn't known.
    """

    def __init__(self, message: str, line: int | None = None) -> None:
        super().__init__(message, line)
        self.line = line

    def __str__(self) -> str:
        message = str(self.args[0])
        return message if self.line is None else f"line {self.line}: {message}"


class VocabWarning(UserWarning):
    """Something odd in a vocabulary that llama.cpp, too, only warns of."""


def not_found(message: str) -> FileError:
    """A FileError, also a FileNotFoundError, about something that isn't just one file."""
    return _FileNotFoundError(message)


def not_permitted(message: str) -> FileError:
    """The same, also a PermissionError."""
    return _FilePermissionError(message)


def file_error(errno: int, reason: str, filename: str | bytes) -> FileError:
    """The FileError that is also the OSError subclass which `errno` stands for."""
    plain = type(OSError(errno, reason))
    for cls in (_FileNotFoundError, _FilePermissionError, _FileIsADirectoryError):
        if issubclass(cls, plain) and plain is not OSError:
            return cls(errno, reason, filename)
    return FileError(errno, reason, filename)
