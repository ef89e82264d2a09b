"""Reads files for training, of the same formats as ``Tokenizer.encode_files``.

Other formats than text use the readers of ``encode_files``. Text is read here, because training
counts the words of each line separately.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ggtok.base.files import SNIFFED
from ggtok.corpora import jsonl, tables
from ggtok.corpora.documents import RULES, Faults, Place, without_bom
from ggtok.corpora.fields import Fields
from ggtok.corpora.kinds import decided
from ggtok.corpora.sources import TABLES, Search, Source, checked_kind
from ggtok.corpora.streams import Stream, naming
from ggtok.errors import FileError, InvalidValueError

BLOCK = 1 << 20  # bytes per read of a pipe, which fit in the processor's cache
MAX_TEXT = (1 << 32) - 1  # bytes of a line, or of a text that is a single document

Text = bytes | memoryview


@dataclass(frozen=True)
class Reading:
    """How sources are read.

    Attributes:
        lines: whether each line of a text is a document.
        fields: the fields of JSON lines, or columns of tables, that contain the text.
        errors: the rule for malformed documents.
        kind: the format of all files; None: selected by their names.
    """

    lines: bool
    fields: Fields
    errors: str
    kind: str | None

    @classmethod
    def checked(cls, lines: bool, field: object, errors: object, kind: object) -> Reading:
        """Checks the caller's arguments."""
        fields = Fields.checked(field)
        if errors not in RULES:
            raise InvalidValueError(f"errors must be one of {', '.join(RULES)}, not {errors!r}")
        return cls(lines, fields, str(errors), checked_kind(kind))


def files_of(path: str, search: Search) -> list[str]:
    """The files of a path, a folder or a glob, without those that `search` found before."""
    if _is_pipe(path):
        return [path]
    return [source.path for source in search.find(path)]


def texts_of(path: str, reading: Reading) -> Iterator[Text]:
    """The texts of the files of a path, a folder or a glob.

    If lines are documents, a text is a part of a file with whole lines.

    Raises:
        FileError: a file can't be read, or isn't text.
        DocumentError: a document is malformed.
    """
    if _is_pipe(path):
        yield from stream_of(_blocks(path), path, reading)
        return
    for source in decided(Search(kind=reading.kind).find(path), reading.fields):
        if source.kind == "text":
            with Stream(source) as stream:
                yield from text_of(stream.blocks(), source.path, reading)
        else:
            yield from _documents(source, reading)


def _is_pipe(path: str) -> bool:
    """Whether it is neither a file nor a folder, so that it can be read only once."""
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _blocks(path: str) -> Iterator[bytes]:
    with naming(path), open(path, "rb", buffering=0) as file:
        while block := file.read(BLOCK):
            yield block


def _documents(source: Source, reading: Reading) -> Iterator[Text]:
    reader = tables if source.kind in TABLES else jsonl
    for piece in reader.read(source, Place(0), reading.fields, reading.errors):
        if piece.many:
            yield from piece.many
        elif piece.text:
            yield piece.text


def stream_of(blocks: Iterable[bytes], name: str, reading: Reading) -> Iterator[Text]:
    """The texts of a stream of blocks, which is a text or JSON lines."""
    if reading.kind in TABLES:
        raise InvalidValueError(f"{name}: a {reading.kind} file can only be read by its path")
    if reading.kind == "jsonl":
        for some in jsonl.documents(blocks, Faults(reading.errors, name), reading.fields):
            yield from some
    else:
        yield from text_of(blocks, name, reading)


# ---- text ----


def text_of(blocks: Iterable[bytes], name: str, reading: Reading) -> Iterator[Text]:
    """A text that arrives in blocks: as a whole, or in parts of whole lines."""
    faults = Faults(reading.errors, name)
    parts = _by_lines if reading.lines else _whole
    at, checked = without_bom(_of_text(blocks, name))
    for part in parts(checked, name):
        yield from _valid(part, at, faults, reading.lines)
        at += len(part)


def _of_text(blocks: Iterable[bytes], name: str) -> Iterator[bytes]:
    """The blocks unchanged. Raises FileError for a binary file."""
    left = SNIFFED
    for block in blocks:
        if left > 0 and b"\0" in block[:left]:
            raise FileError(f"{name}: a binary file, not UTF-8 text (it has NUL bytes)")
        left -= len(block)
        yield block


def _valid(part: Text, at: int, faults: Faults, lines: bool) -> Iterator[Text]:
    """A part of the text, after applying the rule for invalid UTF-8. `at`: its byte offset."""
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
