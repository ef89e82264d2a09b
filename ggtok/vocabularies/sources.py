"""Streams the text of training sources, in pieces. The corpus is never held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ggtok.errors import InvalidTypeError, MissingExtraError
from ggtok.native import text_bytes
from ggtok.vocabularies import corpus
from ggtok.vocabularies.corpus import Reading

BLOCK = 1 << 20  # bytes that are counted at a time, which fit in the processor's cache

# The bytes of a text, and whether each line is a document.
Piece = tuple[Any, bool]


@dataclass(frozen=True)
class Named:
    """A named text that arrives in blocks, such as standard input."""

    name: str
    blocks: Iterable[bytes]


def pieces(sources: object, reading: Reading) -> Iterator[Piece]:
    """The texts of the sources, in pieces of about BLOCK bytes at most if lines are documents.

    A path is a file, a folder or a glob. A ``str`` or bytes-like object is a text. An Arrow
    stream or array of strings is a sequence of texts. Any other iterable contains such sources; a
    source that occurs twice counts twice.
    """
    one = _one(sources, reading)
    if one is not None:
        yield from one
        return
    if not isinstance(sources, Iterable):
        raise InvalidTypeError(
            "sources must be a path, a text, an Arrow stream or an iterable of these, "
            f"not {type(sources).__name__}"
        )
    for i, source in enumerate(sources):
        one = _one(source, reading)
        if one is None:
            raise InvalidTypeError(
                f"sources[{i}] must be a path, a text or an Arrow stream, "
                f"not {type(source).__name__}"
            )
        yield from one


def paths(sources: object) -> tuple[str, ...]:
    """The files among the sources, unless `sources` is an iterator."""
    each = sources if isinstance(sources, (list, tuple)) else [sources]
    return tuple(os.path.abspath(os.fsdecode(s)) for s in each if isinstance(s, os.PathLike))


def _one(source: object, reading: Reading) -> Iterator[Piece] | None:
    """The texts of one source; None: it isn't a single source."""
    lines = reading.lines
    if isinstance(source, os.PathLike):
        return _texts(corpus.texts_of(os.fsdecode(source), reading), lines)
    if isinstance(source, Named):
        return _texts(corpus.stream_of(source.blocks, source.name, reading), lines)
    if isinstance(source, str):
        return _text(text_bytes(source), lines)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return _arrow(source, lines)
    try:
        view = memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return None
    return _text(bytes(view), lines)


def _texts(texts: Iterable[corpus.Text], lines: bool) -> Iterator[Piece]:
    for text in texts:
        yield from _text(text, lines)


def _text(text: corpus.Text, lines: bool) -> Iterator[Piece]:
    if not lines:
        yield text, False
        return
    view = memoryview(text)
    if len(text) <= BLOCK or not isinstance(text, bytes):  # parts of files are small enough
        if text:
            yield view, True
        return
    start = 0
    while start < len(text):
        end = min(start + BLOCK, len(text))
        if end < len(text):
            # Cut after the last line that ends in the block, or else the first that ends later.
            newline = text.rfind(b"\n", start, end)
            newline = text.find(b"\n", end) if newline < 0 else newline
            end = len(text) if newline < 0 else newline + 1
        yield view[start:end], True
        start = end


def _arrow(source: object, lines: bool) -> Iterator[Piece]:
    try:
        import pyarrow as pa
    except ModuleNotFoundError:
        raise MissingExtraError(
            "an Arrow stream of texts needs pyarrow: run 'pip install pyarrow'"
        ) from None
    from ggtok.corpora.tables import texts

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
