"""Streams the text of training sources. The corpus is never in memory whole.

Files have the same formats as for ``Tokenizer.encode_files`` and are read by its readers, except
that text is read here, because training counts the words in each line separately.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from ggtok.base.files import SNIFFED
from ggtok.corpora import jsonl, tables
from ggtok.corpora.documents import (
    RULES,
    Faults,
    Fields,
    SourcePosition,
    not_utf8,
    other_encoding,
    without_bom,
)
from ggtok.corpora.jsonl import decide_json_kinds
from ggtok.corpora.sources import TABLES, Search, SourceFile, checked_kind
from ggtok.corpora.streams import Stream, naming
from ggtok.errors import FileError, InvalidTypeError, InvalidValueError
from ggtok.native import text_bytes

BLOCK = 1 << 20  # bytes to read or count at a time, which fit in the processor's cache
_LONGEST_NAME = 255  # characters
MAX_TEXT = (1 << 32) - 1  # the most bytes in a line, or in a text that is a single document

Text = bytes | memoryview


@dataclass(frozen=True)
class Reading:
    """The options for reading sources.

    Attributes:
        lines: whether each line of a text is a document.
        fields: the fields of JSON lines, or columns of tables, that contain the text.
        errors: the rule for malformed documents.
        kind: the format of all files, or None if their names select it.
    """

    lines: bool
    fields: Fields
    errors: str
    kind: str | None

    @classmethod
    def checked(cls, lines: bool, field: object, errors: object, kind: object) -> Reading:
        """Checks and converts the caller's arguments."""
        fields = Fields.checked(field)
        if errors not in RULES:
            raise InvalidValueError(f"errors must be one of {', '.join(RULES)}, not {errors!r}")
        return cls(lines, fields, str(errors), checked_kind(kind))


def files_of(path: str, search: Search) -> list[str]:
    """Returns the files that a path (file, folder or glob) names, except those that `search` has
    already found."""
    if _is_pipe(path):
        return [path]
    return [source.path for source in search.find(path)]


def texts_of(path: str, reading: Reading) -> Iterator[Text]:
    """Yields the texts of the files that a path (file, folder or glob) names.

    If lines are documents, a text is a part of a file that consists of whole lines.

    Raises:
        FileError: a file can't be read, or isn't text.
        DocumentError: a document is malformed.
    """
    if _is_pipe(path):
        yield from stream_of(_blocks(path), path, reading)
        return
    for source in decide_json_kinds(Search(kind=reading.kind).find(path), reading.fields):
        if source.kind == "text":
            with Stream(source) as stream:
                yield from text_of(stream.blocks(), source.path, reading)
        else:
            yield from _documents(source, reading)


def _is_pipe(path: str) -> bool:
    """Whether a path is neither a file nor a folder, so that it can be read only once."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _blocks(path: str) -> Iterator[bytes]:
    with naming(path), open(path, "rb", buffering=0) as file:
        while block := file.read(BLOCK):
            yield block


def _documents(source: SourceFile, reading: Reading) -> Iterator[Text]:
    read = tables.read_table if source.kind in TABLES else jsonl.read_jsonl
    for piece in read(source, SourcePosition(0), reading.fields, reading.errors):
        if piece.many:
            yield from piece.many
        elif piece.text:
            yield piece.text


def stream_of(blocks: Iterable[bytes], name: str, reading: Reading) -> Iterator[Text]:
    """Yields the texts in a stream of blocks, which are either one text or JSON lines."""
    if reading.kind in TABLES:
        raise InvalidValueError(f"{name}: a {reading.kind} file can only be read by its path")
    if reading.kind == "jsonl":
        for some in jsonl.documents(blocks, Faults(reading.errors, name), reading.fields):
            yield from some
    else:
        yield from text_of(blocks, name, reading)


# ---- text ----


def text_of(blocks: Iterable[bytes], name: str, reading: Reading) -> Iterator[Text]:
    """Yields a text that arrives in blocks, as a whole or in parts that consist of whole lines."""
    faults = Faults(reading.errors, name)
    parts = _by_lines if reading.lines else _whole
    at, checked = without_bom(_of_text(blocks, faults))
    for part in parts(checked, name):
        yield from _valid(part, at, faults, reading.lines)
        at += len(part)


def _of_text(blocks: Iterable[bytes], faults: Faults) -> Iterator[bytes]:
    """Yields the blocks of a text unchanged, and none of a file that isn't UTF-8 text, if the rule
    skips it.

    Raises:
        FileError: the file isn't UTF-8 text.
    """
    left = SNIFFED
    for block in blocks:
        what = None
        if left == SNIFFED and (encoding := other_encoding(block)):
            what = not_utf8(encoding)
        elif left > 0 and b"\0" in block[:left]:
            what = "a binary file, not UTF-8 text (it has NUL bytes)"
        if what is not None and faults.rule == "skip":
            return
        if what is not None:
            skips = "errors='skip' (--errors skip) skips such files"
            raise FileError(f"{faults.path}: {what}; {skips}")
        left -= len(block)
        yield block


def _valid(part: Text, at: int, faults: Faults, lines: bool) -> Iterator[Text]:
    """Yields a part of a text after applying the rule for invalid UTF-8. The part begins at the
    text's byte `at`."""
    try:
        str(part, "utf-8")
        yield part
        return
    except UnicodeDecodeError as e:
        what = f"not valid UTF-8 ({e.reason})"
        found = faults.found("invalid_utf8", f"byte {at + e.start}", what)
    if not found.skipped:
        yield bytes(part).decode("utf-8", "replace").encode()
    elif lines:
        yield b"\n".join([line for line in bytes(part).split(b"\n") if _is_valid(line)])


def _is_valid(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def _too_long(name: str, what: str) -> InvalidValueError:
    return InvalidValueError(f"{name}: {what} more than {MAX_TEXT} bytes: pass it in parts")


def _whole(blocks: Iterable[bytes], name: str) -> Iterator[Text]:
    held: list[bytes] = []
    length = 0
    for block in blocks:
        held.append(block)
        length += len(block)
        if length > MAX_TEXT:
            raise _too_long(name, "it is taken as a whole, but has")
    yield b"".join(held)


def _by_lines(blocks: Iterable[bytes], name: str) -> Iterator[Text]:
    held: list[bytes] = []  # the beginning of an incomplete line
    length = 0
    for block in blocks:
        newline = block.rfind(b"\n") + 1
        if not newline:
            held.append(block)
            length += len(block)
            if length > MAX_TEXT:  # checked early, because a line may be endless
                raise _too_long(name, "a line of")
            continue
        first = block.find(b"\n") + 1 if length else 0
        if first:
            yield b"".join((*held, block[:first]))
        if first < newline:
            yield memoryview(block)[first:newline]
        held = [block[newline:]]
        length = len(held[0])
    if any(held):
        yield b"".join(held)


# ---- training sources, in pieces ----


# The bytes of a text, and whether each line is a document.
Piece = tuple[Any, bool]


@dataclass(frozen=True)
class NamedText:
    """A named text that arrives in blocks, such as standard input."""

    name: str
    blocks: Iterable[bytes]


def pieces(sources: object, reading: Reading) -> Iterator[Piece]:
    """Yields the sources' texts; if lines are documents, in pieces of at most about BLOCK bytes.

    A path is a file, a folder or a glob. A ``str`` or bytes-like object is a text. An Arrow
    stream or array of strings is a sequence of texts. Any other iterable contains such sources; a
    source that occurs twice counts twice.
    """
    _check_no_path(sources)
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
        if not i:
            _check_no_path(source)
        one = _one(source, reading)
        if one is None:
            raise InvalidTypeError(
                f"sources[{i}] must be a path, a text or an Arrow stream, "
                f"not {type(source).__name__}"
            )
        yield from one


def paths(sources: object) -> tuple[str, ...]:
    """Returns the paths among the sources, unless `sources` is an iterator."""
    each = sources if isinstance(sources, (list, tuple)) else [sources]
    return tuple(os.path.abspath(os.fsdecode(s)) for s in each if isinstance(s, os.PathLike))


def _one(source: object, reading: Reading) -> Iterator[Piece] | None:
    """Returns the texts of a single source, or None if `source` isn't one."""
    lines = reading.lines
    if isinstance(source, os.PathLike):
        return _split_texts(texts_of(os.fsdecode(source), reading), lines)
    if isinstance(source, NamedText):
        return _split_texts(stream_of(source.blocks, source.name, reading), lines)
    if isinstance(source, str):
        return _split_text(text_bytes(source), lines)
    if hasattr(source, "__arrow_c_stream__") or hasattr(source, "__arrow_c_array__"):
        return _arrow(source, lines)
    try:
        view = memoryview(source)  # type: ignore[arg-type]
    except TypeError:
        return None
    return _split_text(bytes(view), lines)


def _check_no_path(text: object) -> None:
    """Raises InvalidValueError if a text is the name of a file, which was likely meant."""
    if isinstance(text, str) and len(text) <= _LONGEST_NAME and os.path.isfile(text):
        raise InvalidValueError(
            f"{text!r} is the name of a file, but a str is a text to train on: pass "
            f"pathlib.Path({text!r})"
        )


def _split_texts(texts: Iterable[Text], lines: bool) -> Iterator[Piece]:
    for text in texts:
        yield from _split_text(text, lines)


def _split_text(text: Text, lines: bool) -> Iterator[Piece]:
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
            # End the piece after the last newline in the block, or else after the next newline.
            newline = text.rfind(b"\n", start, end)
            newline = text.find(b"\n", end) if newline < 0 else newline
            end = len(text) if newline < 0 else newline + 1
        yield view[start:end], True
        start = end


def _arrow(source: object, lines: bool) -> Iterator[Piece]:
    pa = tables.pyarrow("an Arrow stream of texts")
    try:
        column = (
            pa.chunked_array(source) if hasattr(source, "__arrow_c_stream__") else pa.array(source)
        )
    except (pa.ArrowException, TypeError, ValueError) as e:
        raise InvalidTypeError(f"sources: an Arrow stream must be of strings ({e})") from None
    for chunk in getattr(column, "chunks", [column]):
        try:
            for rows in tables.texts(pa, chunk, "sources", "of the Arrow stream"):
                for text in rows:
                    if text is not None:
                        yield from _split_text(text, lines)
        except InvalidTypeError:
            raise InvalidTypeError(
                f"sources: an Arrow stream must be of strings, not of {chunk.type}"
            ) from None
