"""Reads text files, each of which is a document, or is divided into documents by a separator.

A document of more than LONG bytes is read in parts, and is never in memory whole. The parts end at
positions that ``ggtok_safe_cut`` finds, so that the ids of all parts, joined, equal the ids of the
whole document. The blocks in which the file is read affect where the parts end, but not the ids.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from ggtok.base.files import open_regular, read_up_to
from ggtok.corpora.documents import (
    BETWEEN,
    BOM,
    DROPPING,
    INSIDE,
    LIMIT,
    DocumentPiece,
    Faults,
    Joined,
    Pieces,
    SourcePosition,
    faultless,
    full_group_size,
    joined_end,
    n_bytes,
    one_by_one,
    other_encoding,
    without_bom,
)
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.streams import Stream, check_unchanged, naming
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import NOT_FIRST_BLOCK
from ggtok.native.contexts import Blocks

LONG = 4 << 20  # bytes; longer documents are read in parts
PART = 1 << 20  # the approximate size, in bytes, of a part of a long document


@dataclass(frozen=True)
class TextOptions:
    """The options for reading text.

    Attributes:
        separator: the bytes between two documents, or None if each file is a document.
        errors: the rule for faulty documents.
        whole: whether documents must not be divided into parts.
        blocks: the object that finds the positions where a document can be divided.
        flags: the flags for encoding the first part.
    """

    separator: bytes | None
    errors: str
    whole: bool
    blocks: Blocks
    flags: int


# Either a part of a document as in the file, with whether the document ends there and with the
# length of the separator that follows; or a group of whole documents, each followed by a separator.
Segment = tuple[bytes, bool, int] | list[bytes] | Joined


def read_text_documents(
    source: SourceFile, position: SourcePosition, options: TextOptions
) -> Pieces:
    """Yields the documents of a text file from `position` on."""
    faults = Faults(options.errors, source.path)
    if options.separator is None and source.size <= LONG and not source.compression:
        data = _all(source)
        text, n = data.removeprefix(BOM), len(data)
        faults = replace(faults, encoding=other_encoding(data))
        if text:  # an empty file has no document
            yield faults.document(text, n, SourcePosition(position.source, n), n, "the whole file")
        return
    with Stream(source) as stream:
        stream.seek(position.offset)
        bom, blocks = 0, stream.blocks()
        if not position.offset:
            faults, blocks = faults.knowing_encoding(blocks)
            bom, blocks = without_bom(blocks)
        reader = _SegmentReader(stream, position, options, faults, bom)
        for segment in _segments(blocks, options.separator, position, reader.most):
            if isinstance(segment, tuple):
                yield from reader.segment(*segment)
            else:
                yield from reader.group(segment)


def _all(source: SourceFile) -> bytes:
    """Reads a small file, with few system calls, since a folder may contain many such files."""
    with naming(source.path), open_regular(source.path) as file:
        text = read_up_to(file, source.size + 1)
        check_unchanged(source, file.fileno())
    return text


def _segments(
    blocks: Iterable[bytes], separator: bytes | None, position: SourcePosition, most: int
) -> Iterator[Segment]:
    """Splits blocks at the separator. A document of at most `most` bytes isn't divided."""
    held: list[bytes] = []  # blocks of the unfinished document
    group = _Group(separator)
    size = 0
    long = position.state != BETWEEN
    for block in blocks:
        if separator is not None and (
            separator in block or separator in _border(held, block, len(separator) - 1)
        ):
            block = b"".join(held) + block
            if long:
                document, _, block = block.partition(separator)
                yield document, True, len(separator)
            block = group.add(block)
            yield from group.full()
            long = False
            held, size = [], 0
        held.append(block)
        size += len(block)
        if long or size > most:
            yield from group.rest()
            text = b"".join(held)
            back = _overlap(text, separator)
            yield text[: size - back], False, 0
            long = True
            held, size = [text[size - back :]], back
    yield from group.rest()
    if long or size:
        yield b"".join(held), True, 0


class _Group:
    """Collects whole documents until they form a group."""

    def __init__(self, separator: bytes | None) -> None:
        self._separator = separator or b""
        # The separator must be ASCII, so that joined documents are valid UTF-8 if each of them is.
        self._joins = len(self._separator) == 1 and self._separator.isascii()
        self._texts: list[bytes] = []
        self._joined = b""

    def add(self, text: bytes) -> bytes:
        """Adds the documents in a text, and returns the text after the last separator."""
        if not self._joins:
            *documents, rest = text.split(self._separator)
            self._texts += documents
            return rest
        n = text.rfind(self._separator) + 1
        self._joined += text[:n]
        return text[n:]

    def full(self) -> Iterator[Segment]:
        """Yields the groups that are complete."""
        while n := full_group_size(self._texts):
            yield self._texts[:n]
            del self._texts[:n]
        start = 0
        while end := joined_end(self._joined, start, self._separator):
            yield self._group(self._joined[start:end])
            start = end
        self._joined = self._joined[start:]

    def rest(self) -> Iterator[Segment]:
        """Yields the remaining documents as a final group."""
        if self._texts:
            yield self._texts
        if self._joined:
            yield self._group(self._joined)
        self._texts, self._joined = [], b""

    def _group(self, data: bytes) -> Joined:
        return Joined(data, self._separator, data.count(self._separator))


def _border(held: list[bytes], block: bytes, n: int) -> bytes:
    """Returns n bytes from each side of the boundary between the held blocks and a new block."""
    before, at = b"", len(held)
    while at and len(before) < n:
        at -= 1
        before = held[at] + before
    return before[max(0, len(before) - n) :] + block[:n]


def _overlap(text: bytes, separator: bytes | None) -> int:
    """Returns the length of the text's longest suffix that may be the beginning of a separator."""
    longest = min(len(separator or b"") - 1, len(text))
    return next((n for n in range(longest, 0, -1) if text.endswith((separator or b"")[:n])), 0)


class _SegmentReader:
    """Converts segments to pieces."""

    def __init__(
        self,
        stream: Stream,
        position: SourcePosition,
        options: TextOptions,
        faults: Faults,
        bom: int,
    ) -> None:
        self._stream, self._options, self._faults = stream, options, faults
        self._offset = position.offset + bom  # the offset of the next segment in the file
        self._counted = position.offset  # the offset up to which pieces have covered the file
        self._source = position.source
        self._state = position.state
        self._faulty = position.faulty
        self._begins = position.offset  # the offset of the current document
        # For a document in parts: the text that hasn't been yielded yet; and for each segment of
        # that text, its offset in the text (negative if the segment's beginning has already been
        # yielded) and its offset in the file.
        self._text = bytearray()
        self._origins: list[tuple[int, int]] = []
        self._skip = position.skip
        self._rest = b""  # an incomplete character at the end of the last segment
        self._enough = PART
        self._sent = position.state == INSIDE

    @property
    def most(self) -> int:
        return LIMIT if self._options.whole else LONG

    def segment(self, segment: bytes, ends: bool, separator: int) -> Pieces:
        start = self._offset
        self._offset += len(segment) + separator
        if self._state == BETWEEN:
            self._begins = start
            if ends:
                next, size = self._next()
                yield self._faults.document(segment, size, next, self._stream.at(), self._where())
                return
            if self._options.whole:
                raise self._faults.too_long(self._where(), "a document")
            self._state, self._sent, self._faulty = INSIDE, False, False
            self._text.clear()
            self._origins.clear()
            self._rest, self._enough = b"", PART
        if self._state == DROPPING:
            self._state = BETWEEN if ends else DROPPING
            yield self._piece(None, *self._next(), begins=False, ends=ends)
            return
        yield from self._part(segment, start, ends)

    def group(self, texts: Sequence[bytes] | Joined) -> Pieces:
        """Yields the pieces for whole documents, each of which is followed by a separator."""
        separator = len(self._options.separator or b"")
        size = n_bytes(texts) + len(texts) * separator
        faults = None
        if not faultless(texts):
            if self._faults.rule == "raise":
                start = SourcePosition(self._source, self._offset)
                end = start._replace(offset=start.offset + size)
                pieces = (piece for text in texts for piece in self.segment(text, True, separator))
                yield from one_by_one(pieces, start, end)
                return
            texts, faults = self._faults.apply_to_group(texts)
        self._offset += size
        text = b"" if texts else None
        yield self._piece(text, *self._next(), many=texts, faults=faults)

    def _where(self) -> str:
        return f"the document at byte {self._begins}"

    def _next(self) -> tuple[SourcePosition, int]:
        """Returns the position after all segments so far, and the size of the piece that ends
        there."""
        return self._counted_up_to(
            SourcePosition(self._source, self._offset, 0, self._state, self._faulty)
        )

    def _inside(self) -> tuple[SourcePosition, int]:
        """Returns the position where the text that hasn't been yielded yet begins, and the size of
        the piece that ends there."""
        while len(self._origins) > 1 and self._origins[1][0] <= 0:
            del self._origins[0]
        at, offset = self._origins[0]
        return self._counted_up_to(SourcePosition(self._source, offset, -at, INSIDE, self._faulty))

    def _counted_up_to(self, next: SourcePosition) -> tuple[SourcePosition, int]:
        size = next.offset - self._counted
        self._counted = next.offset
        return next, size

    def _piece(
        self, text: bytes | None, next: SourcePosition, size: int, **options: Any
    ) -> DocumentPiece:
        return DocumentPiece(text, size, next, self._stream.at(), **options)

    def _part(self, segment: bytes, start: int, ends: bool) -> Pieces:
        begins = start - len(self._rest)
        raw = self._rest + segment
        text, used, valid = _decode_valid(raw, ends)
        self._rest = raw[used:]
        if not valid and not self._faulty:
            found = self._faults.found("invalid_utf8", self._where(), "not valid UTF-8")
            if found.skipped:
                self._state = BETWEEN if ends else DROPPING
                sent = self._sent
                yield self._piece(None, *self._next(), begins=not sent, ends=ends, faults=found)
                return
            self._faulty = True
        skipped = min(self._skip, len(text))
        self._skip -= skipped
        self._origins.append((len(self._text) - skipped, begins))
        self._text += text[skipped:]
        yield from self._cut(ends)

    def _cut(self, ends: bool) -> Pieces:
        """Yields pieces from the beginning of the text. If the document ends, yields all of the
        text."""
        while len(self._text) >= self._enough or (ends and len(self._text) > PART):
            n = self._place_to_cut()
            if not n:
                break
            text = bytes(self._text[:n])
            del self._text[:n]
            self._origins = [(at - n, offset) for at, offset in self._origins]
            yield self._piece(text, *self._inside(), begins=not self._sent, ends=False)
            self._sent = True
        if ends:
            self._state = BETWEEN
            faults = None
            if self._faulty:
                faults = self._faults.found("invalid_utf8", self._where(), "not valid UTF-8")
            self._faulty = False
            text = bytes(self._text)
            begins = not self._sent
            yield self._piece(text, *self._next(), begins=begins, ends=True, faults=faults)

    def _place_to_cut(self) -> int:
        flags = self._options.flags | (NOT_FIRST_BLOCK if self._sent else 0)
        for n in PART, len(self._text):
            if position := self._options.blocks.safe_cut(self._text[:n], flags):
                self._enough = PART
                return position
        if len(self._text) > LIMIT:
            where = "the text up to the next position where it can be divided"
            raise self._faults.too_long(self._where(), where)
        self._enough = 2 * len(self._text)
        return 0


def _decode_valid(raw: bytes, final: bool) -> tuple[bytes, int, bool]:
    """Converts text to valid UTF-8. Also returns how many bytes of `raw` were converted (all except
    an incomplete character at the end, unless `final`), and whether they were valid."""
    if raw.isascii():
        return raw, len(raw), True
    try:
        _, used = codecs.utf_8_decode(raw, "strict", final)
        return raw[:used], used, True
    except UnicodeDecodeError:
        text, used = codecs.utf_8_decode(raw, "replace", final)
        return text.encode(), used, False


def checked_separator(separator: object) -> bytes | None:
    """Checks and converts a caller's argument for the separator of documents."""
    if separator is None:
        return None
    if not isinstance(separator, (str, bytes)):
        raise InvalidTypeError(f"separator must be str or bytes, not {type(separator).__name__}")
    data = separator.encode() if isinstance(separator, str) else separator
    if not data:
        raise InvalidValueError("separator is empty; None makes each file one document")
    return data
