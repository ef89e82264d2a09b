"""Text to train on, from wherever it lies, in pieces: a corpus is streamed, never held."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from typing import Any

from ggtok import _native
from ggtok.errors import InvalidTypeError, InvalidValueError, MissingExtraError, file_error

BLOCK = 1 << 20  # bytes that are read and counted at a time: they stay in a cache
MAX_TEXT = (1 << 32) - 1  # of a line, or of a text that is taken as a whole

# Bytes, and whether each line is a document.
Piece = tuple[Any, bool]


def pieces(sources: object, lines: bool) -> Iterator[Piece]:
    """The sources' texts: of at most some BLOCK bytes where lines are documents.

    A path is a file; a ``str`` or bytes-like object a text; an Arrow stream (or array) of strings
    is texts; any other iterable is of these.
    """
    one = _one(sources, lines)
    if one is not None:
        yield from one
        return
    if not isinstance(sources, Iterable):
        raise InvalidTypeError(
            "sources must be a path, a text, an Arrow stream or an iterable of these, "
            f"not {type(sources).__name__}"
        )
    for i, source in enumerate(sources):
        one = _one(source, lines)
        if one is None:
            raise InvalidTypeError(
                f"sources[{i}] must be a path, a text or an Arrow stream, "
                f"not {type(source).__name__}"
            )
        yield from one


def paths(sources: object) -> tuple[str, ...]:
    """The files among the sources, unless these come from an iterator."""
    each = sources if isinstance(sources, (list, tuple)) else [sources]
    return tuple(os.path.abspath(os.fsdecode(s)) for s in each if isinstance(s, os.PathLike))


def _one(source: object, lines: bool) -> Iterator[Piece] | None:
    """The texts of one source; None: it is none."""
    if isinstance(source, os.PathLike):
        return _file(os.fspath(source), lines)
    if isinstance(source, str):
        return _text(_native.text_bytes(source), lines)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return _arrow(source, lines)
    try:
        view = memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return None
    return _text(bytes(view), lines)


def _text(text: bytes, lines: bool) -> Iterator[Piece]:
    if not lines:
        yield text, False
        return
    view = memoryview(text)
    start = 0
    while start < len(text):
        end = min(start + BLOCK, len(text))
        if end < len(text):
            # The last line that ends in the block, or the first that ends after it.
            newline = text.rfind(b"\n", start, end)
            newline = text.find(b"\n", end) if newline < 0 else newline
            end = len(text) if newline < 0 else newline + 1
        yield view[start:end], True
        start = end


def _too_long(path: str | bytes, what: str) -> InvalidValueError:
    return InvalidValueError(
        f"{os.fsdecode(path)}: {what} more than {MAX_TEXT} bytes: give it in parts"
    )


def _file(path: str | bytes, lines: bool) -> Iterator[Piece]:
    try:
        with open(path, "rb", buffering=0) as file:
            if not lines:
                if os.fstat(file.fileno()).st_size > MAX_TEXT:
                    raise _too_long(path, "it is taken as a whole, but has")
                yield file.read(), False
                return
            held: list[bytes] = []  # the beginning of a line that goes on
            length = 0
            while block := file.read(BLOCK):
                newline = block.rfind(b"\n") + 1
                if not newline:
                    held.append(block)
                    length += len(block)
                    if length > MAX_TEXT:  # before an endless one has taken all memory
                        raise _too_long(path, "a line of")
                    continue
                first = block.find(b"\n") + 1 if length else 0
                if first:
                    yield b"".join((*held, block[:first])), True
                if first < newline:
                    yield memoryview(block)[first:newline], True
                held = [block[newline:]]
                length = len(held[0])
            if held and any(held):
                yield b"".join(held), True
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


def _arrow(source: object, lines: bool) -> Iterator[Piece]:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise MissingExtraError(
            "an Arrow stream of texts needs pyarrow: run 'pip install pyarrow'"
        ) from None
    from ggtok.files.tables import texts

    try:
        column = (
            pa.chunked_array(source) if hasattr(source, "__arrow_c_stream__") else pa.array(source)
        )
    except (pa.ArrowException, TypeError, ValueError) as e:
        raise InvalidTypeError(f"sources: an Arrow stream must be of strings ({e})") from None
    for chunk in getattr(column, "chunks", [column]):
        try:
            for rows in texts(pa, chunk, "sources", "of the Arrow stream"):
                for text in rows:
                    if text is not None:
                        yield from _text(text, lines)
        except InvalidTypeError:
            raise InvalidTypeError(
                f"sources: an Arrow stream must be of strings, not of {chunk.type}"
            ) from None
