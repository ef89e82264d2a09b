"""Reads JSON lines: each line is an object, and one or more of its fields contain the document.

The fastest installed parser parses the lines. If that parser rejects a line, the standard library
parses the line, so that the results don't depend on which parsers are installed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import accumulate
from typing import Any

from ggtok.corpora.documents import (
    BOM,
    LIMIT,
    DocumentPiece,
    Faults,
    Fields,
    Located,
    Pieces,
    SourcePosition,
    faultless,
    full_group_size,
    line_at,
    one_by_one,
    replace_malformed,
)
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.streams import Stream
from ggtok.corpora.summary import RunCounts
from ggtok.errors import DocumentError, InvalidValueError


def read_jsonl(source: SourceFile, position: SourcePosition, fields: Fields, errors: str) -> Pieces:
    """Yields the documents of a JSONL file from `position` on. Blank lines are ignored."""
    faults = Faults(errors, source.path)
    with Stream(source) as stream:
        stream.seek(position.offset)
        blocks = stream.blocks()
        if not position.offset:
            faults, blocks = faults.knowing_encoding(blocks)
        reader = _LineReader(position, fields, faults)
        group: list[bytes] = []
        for lines in split_lines(blocks, faults):
            group += lines
            while n := full_group_size(group):
                yield from reader.group(group[:n], stream.at())
                del group[:n]
        yield from reader.group(group, stream.at())


class Lenient(Faults):
    """Keeps empty documents and replaces malformed UTF-8, but refuses malformed records."""

    def found(self, kind: str, where: str, what: str) -> RunCounts:
        if kind in ("missing", "malformed"):
            raise DocumentError(f"{self.path}: {where}: {what}", path=self.path, kind=kind)
        return super().found(kind, where, what)


def documents(blocks: Iterable[bytes], faults: Faults, fields: Fields) -> Iterator[Sequence[bytes]]:
    """Yields the documents in `blocks` of JSON lines, several documents at a time."""
    for piece in pieces(blocks, faults, fields):
        if piece.many or piece.text is not None:
            yield list(piece.many) or [piece.text or b""]


def pieces(blocks: Iterable[bytes], faults: Faults, fields: Fields) -> Pieces:
    """Yields the pieces for `blocks` of JSON lines."""
    faults, blocks = faults.knowing_encoding(iter(blocks))
    reader = _LineReader(SourcePosition(0), fields, faults)
    for lines in split_lines(blocks, faults):
        yield from reader.group(lines, 0)


class _LineReader:
    """Converts lines to pieces."""

    def __init__(self, position: SourcePosition, fields: Fields, faults: Faults) -> None:
        self._position, self._fields, self.faults = position, fields, faults
        self._offset = position.offset  # the offset of the next line

    def group(self, lines: list[bytes], at: int) -> Pieces:
        """Yields the pieces for some lines: a single piece if no document has a fault."""
        try:
            texts = self._fields.documents(lines, _parser())
        except Exception:  # at least one record is faulty; `_one` finds out which
            texts = []
        if texts and faultless(texts):
            located = self._located(lines)
            self._offset += sum(map(len, lines))
            size = self._offset - self._position.offset
            self._position = SourcePosition(self._position.source, self._offset)
            yield DocumentPiece(b"", size, self._position, at, many=texts, located=located)
            return
        if lines:
            end = SourcePosition(self._position.source, self._offset + sum(map(len, lines)))
            pieces = (piece for line in lines for piece in self._one(line, at))
            yield from one_by_one(pieces, self._position, end)
            self._position = end

    def _one(self, line: bytes, at: int) -> Pieces:
        start, self._offset = self._offset, self._offset + len(line)
        if not start and line.startswith(BOM):
            line = line[len(BOM) :]
        if line.isspace() or not line:
            return
        size = self._offset - self._position.offset
        self._position = SourcePosition(self._position.source, self._offset)
        piece = _piece(line, self._fields, self.faults, size, self._position, at, line_at(start))
        if self._fields.locates:
            piece.located = Located(self.faults, (start,))
        yield piece

    def _located(self, lines: list[bytes]) -> Located | None:
        if not self._fields.locates:
            return None
        return Located(self.faults, list(accumulate(map(len, lines), initial=self._offset)))


def split_lines(blocks: Iterable[bytes], faults: Faults) -> Iterator[list[bytes]]:
    """Yields lines with their newlines, several at a time. Raises FileError for a line longer than
    LIMIT."""
    held: list[bytes] = []
    size = 0
    for block in blocks:
        first = block.find(b"\n") + 1
        size += first or len(block)
        if size > LIMIT:
            raise faults.too_long("a line", "it")
        if not first:
            held.append(block)
            continue
        lines = b"".join((*held, block)).split(b"\n")
        held = [lines.pop()]
        size = len(held[0])
        yield [line + b"\n" for line in lines]
    if size:
        yield [b"".join(held)]


def _piece(
    line: bytes,
    fields: Fields,
    faults: Faults,
    size: int,
    next: SourcePosition,
    at: int,
    where: str,
) -> DocumentPiece:
    try:
        record = _parser()(line)
        faulty = None
    except Exception:
        record, faulty = _parse_rejected(line, faults, where)
    if faulty is not None and (faulty.skipped or faulty.malformed):
        return faults.piece(b"", size, next, at, faulty)
    if what := fields.type_fault(record):
        found = faults.found("malformed", where, what)
        return faults.piece(b"", size, next, at, found)
    if what := fields.fault(record):
        return faults.piece(b"", size, next, at, faults.found("missing", where, what))
    try:
        data = fields.document(record, replace_malformed(line))
    except UnicodeEncodeError as e:
        found = faults.found("invalid_utf8", where, f"the field {fields} has a lone surrogate")
        return faults.piece(_without_surrogates(e.object), size, next, at, found)
    except RecursionError:  # the fast parsers accept deeper values than the encoder does
        found = faults.found("malformed", where, "the record is nested too deeply")
        return faults.piece(b"", size, next, at, found)
    if faulty is not None:  # the line had invalid UTF-8, which was replaced
        return faults.piece(data, size, next, at, faulty)
    return faults.document(data, size, next, at, where)


def _parse_rejected(line: bytes, faults: Faults, where: str) -> tuple[object, Any]:
    """Parses a line that the fast parser rejected. Returns the line's value, and the counts for its
    fault (None if the line is valid)."""
    faulty = None
    try:
        text = line.decode()
    except UnicodeDecodeError as e:
        faulty = faults.found("invalid_utf8", where, f"not valid UTF-8 ({e.reason})")
        text = line.decode("utf-8", "replace")
    try:
        return json.loads(text), faulty
    except (ValueError, RecursionError) as e:
        return None, faults.found("malformed", where, f"not valid JSON: {e}")


def _without_surrogates(text: str) -> bytes:
    """Encodes text to UTF-8, with U+FFFD in place of each surrogate. All surrogates in `text` are
    lone, since the parser has combined those in pairs."""
    return "".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text).encode()


@cache
def _parser() -> Callable[[bytes], Any]:
    try:
        import orjson

        loads: Callable[[bytes], Any] = orjson.loads
        return loads
    except ImportError:
        pass
    try:
        import msgspec

        decode: Callable[[bytes], Any] = msgspec.json.Decoder().decode
        return decode
    except ImportError:
        return _standard


def _standard(line: bytes) -> Any:
    return json.loads(line.decode())


_AS_TEXT = "kind='text' (--kind text) takes the file as a text"
LOOK = 256 << 10  # the number of decompressed bytes at a file's beginning to examine


def decide_json_kinds(sources: Iterable[SourceFile], fields: Fields) -> list[SourceFile]:
    """Decides whether .json files are JSON lines or text, and returns all sources.

    Raises:
        InvalidValueError: a file could be either, or is an array of records.
    """
    return [
        replace(source, kind=_kind(source, fields)) if source.kind == "json" else source
        for source in sources
    ]


def _kind(source: SourceFile, fields: Fields) -> str:
    """Returns "jsonl" if the first two lines begin like records, or if the only line is a record;
    otherwise "text"."""
    start, is_whole = _start(source)
    if is_array(start, fields):
        what = f"{source.path}: an array of records, not JSON lines; 'jq -c .[]' converts it"
        raise InvalidValueError(what if fields.locates else f"{what}; {_AS_TEXT}")
    line, newline, rest = start.partition(b"\n")
    first = start[:1]
    if first not in fields.opens or not first:
        return "text"
    if not newline and not is_whole:
        raise InvalidValueError(
            f"{source.path}: its first line is too long to tell JSON lines from a text: pass "
            "kind='jsonl' or kind='text' (--kind)"
        )
    return "jsonl" if rest.lstrip()[:1] == first or _is_record(line, fields) else "text"


def is_array(start: bytes, fields: Fields) -> bool:
    """Whether a file with this beginning is an array of records."""
    return start[:1] == b"[" and _is_record(start[1:].lstrip(), fields)


def _start(source: SourceFile) -> tuple[bytes, bool]:
    """Returns the beginning of a file, without leading white space, and whether the beginning
    extends to the end of the file."""
    start = b""
    with Stream(source) as stream:
        for block in stream.blocks():
            start += block
            if len(start) > LOOK:
                return start[:LOOK].removeprefix(BOM).lstrip(), False
    return start.removeprefix(BOM).lstrip(), True


def _is_record(text: bytes, fields: Fields) -> bool:
    """Whether the text begins with an object that has the fields."""
    try:
        record: Any = json.JSONDecoder().raw_decode(text.decode("utf-8", "replace"))[0]
    except (ValueError, RecursionError):
        return False
    return not fields.type_fault(record) and fields.fault(record) is None
