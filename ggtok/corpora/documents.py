"""Documents: the pieces that readers yield, the fields of records that contain documents, and the
rule for faulty documents (``errors=``)."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, chain, islice
from operator import itemgetter
from typing import Any, NamedTuple

from ggtok.corpora.summary import RunCounts
from ggtok.errors import (
    DocumentError,
    FileError,
    InvalidTypeError,
    InvalidValueError,
)

# The maximum size, in bytes, of a record, and of a document that must fit in memory whole.
LIMIT = 1 << 30
RULES = ("raise", "replace", "skip")
BOM = b"\xef\xbb\xbf"  # UTF-8's byte order mark, ignored at the beginning of a file

# The states of a reader: between documents, inside a document, or inside a document that is being
# dropped.
BETWEEN, INSIDE, DROPPING = range(3)


class SourcePosition(NamedTuple):
    """A position in the sources, where the next piece begins.

    Attributes:
        source: the index of the source.
        offset: the position in the source, in bytes (text) or rows (tables).
        skip: the number of bytes after `offset` that have already been encoded, counted after
            malformed UTF-8 was replaced.
        state: BETWEEN, INSIDE or DROPPING.
        faulty: whether malformed UTF-8 was found in the current document.
    """

    source: int
    offset: int = 0
    skip: int = 0
    state: int = BETWEEN
    faulty: bool = False


# Byte order marks of other encodings; UTF-32's begins like UTF-16's.
_OTHER_BOMS = {
    b"\xff\xfe\0\0": "UTF-32",
    b"\0\0\xfe\xff": "UTF-32",
    b"\xff\xfe": "UTF-16",
    b"\xfe\xff": "UTF-16",
}


def other_encoding(start: bytes) -> str | None:
    """Returns "UTF-16" or "UTF-32" if a file begins with its byte order mark, else None."""
    return next((name for bom, name in _OTHER_BOMS.items() if start.startswith(bom)), None)


def not_utf8(encoding: str) -> str:
    """Says what to do about a file in another encoding."""
    return (
        f"{encoding} (its byte order mark), not UTF-8: 'iconv -f {encoding} -t UTF-8' converts it"
    )


def without_bom(blocks: Iterator[bytes]) -> tuple[int, Iterator[bytes]]:
    """Removes a BOM at the beginning of a file. Returns its length (0 if there is none), and the
    blocks after it."""
    start = b""
    for block in blocks:
        start += block
        if len(start) >= len(BOM):
            break
    n = len(BOM) if start.startswith(BOM) else 0
    return n, chain([start[n:]] if start[n:] else [], blocks)


@dataclass(frozen=True, slots=True)
class Joined:
    """`n` documents in one bytes object, which C code splits. Each document is followed by
    `separator`, a single byte. If `skips_empty` is set, empty documents in `data` don't count."""

    data: bytes
    separator: bytes
    n: int
    skips_empty: bool = False

    def fields(self) -> tuple[bytes, bytes, int, bool]:
        return self.data, self.separator, self.n, self.skips_empty

    def __len__(self) -> int:
        return self.n

    def __iter__(self) -> Iterator[bytes]:
        documents = self.data.split(self.separator)[:-1]
        return filter(None, documents) if self.skips_empty else iter(documents)

    def without_empty(self) -> Joined:
        """Returns the documents that aren't empty."""
        n = sum(map(bool, self.data.split(self.separator)))
        return Joined(self.data, self.separator, n, skips_empty=True)


@dataclass(frozen=True, slots=True)
class Located:
    """Where the documents of a piece are, for faults that are found when they are encoded."""

    faults: Faults
    offsets: Sequence[int]

    def found(self, i: int, what: str) -> RunCounts:
        """Returns the counts for a fault of the i-th document, or raises DocumentError."""
        return self.faults.found("malformed", line_at(self.offsets[i]), what)


def line_at(offset: int) -> str:
    """Returns the name of a line for messages."""
    return f"the line at byte {offset}"


@dataclass(slots=True)
class DocumentPiece:
    """A document, a part of a long document, or a group of small documents.

    Attributes:
        text: the text in UTF-8; None if the document, including its earlier pieces, is dropped.
        size: the number of bytes of the source, after decompression, that the piece covers.
        next: the position where the next piece begins.
        at: the number of bytes on disk that had been read from the file when the piece was created.
        begins, ends: whether the piece is the first, and whether it is the last, of a document.
        faults: the counts of faults in a group or document. A document in several pieces has them
            only in its last piece, or in the piece that drops the document.
        last: whether the piece is the last of its source.
        many: the documents of a group, after the ``errors=`` rule was applied; `text` is then
            empty.
        inside: whether more pieces of the same group follow. A batch never ends at such a piece, so
            that a resumed run forms the same groups.
        located: where the documents are, if encoding may find faults in them.
    """

    text: bytes | None
    size: int
    next: SourcePosition
    at: int = 0
    begins: bool = True
    ends: bool = True
    faults: RunCounts | None = None
    last: bool = False
    many: Sequence[bytes] | Joined = ()
    inside: bool = False
    located: Located | None = None


@dataclass(frozen=True)
class Faults:
    """The ``errors=`` rule for faulty documents, applied to one source. `encoding` is its encoding
    if it isn't UTF-8, but known."""

    rule: str
    path: str
    encoding: str | None = None

    def knowing_encoding(self, blocks: Iterator[bytes]) -> tuple[Faults, Iterator[bytes]]:
        """Returns this rule with the encoding of a source, and the source's blocks."""
        first = next(blocks, b"")
        return replace(self, encoding=other_encoding(first)), chain(
            [first] if first else [], blocks
        )

    def found(self, kind: str, where: str, what: str) -> RunCounts:
        """Returns the counts for a faulty document, or raises DocumentError if the rule is "raise".
        `kind` is the name of a field of Counts."""
        if kind == "invalid_utf8" and self.encoding is not None:
            what = not_utf8(self.encoding)
        if self.rule == "raise":
            raise DocumentError(
                f"{self.path}: {where}: {what}; errors='skip' (--errors skip) drops such "
                f"documents, errors='replace' {_REPLACED[kind]}",
                path=self.path,
                kind=kind,
            )
        counts = RunCounts(skipped=self.rule == "skip")
        setattr(counts, kind, 1)
        return counts

    def too_long(self, where: str, what: str) -> FileError:
        return FileError(
            f"{self.path}: {where}: {what} is longer than {LIMIT >> 20} MiB, the most that "
            "is held in memory"
        )

    def document(
        self, text: bytes, size: int, next: SourcePosition, at: int, where: str
    ) -> DocumentPiece:
        """Applies the rule to a whole document, and returns its piece."""
        faults = None
        if not text.isascii():
            try:
                text.decode()
            except UnicodeDecodeError as e:
                what = f"not valid UTF-8 ({e.reason} at its byte {e.start})"
                faults = self.found("invalid_utf8", where, what)
                text = replace_malformed(text)
        elif not text:
            faults = self.found("empty", where, "an empty document")
        return self.piece(text, size, next, at, faults)

    def apply_to_group(
        self, texts: Sequence[bytes] | Joined
    ) -> tuple[Sequence[bytes] | Joined, RunCounts]:
        """Applies the rule ("skip" or "replace") to a group. Returns its documents and the counts
        of their faults."""
        if isinstance(texts, Joined) and _is_utf8(texts.data):
            kept = texts.without_empty()
            empty = texts.n - kept.n
            if self.rule == "replace":
                return texts, RunCounts(empty=empty)
            return kept, RunCounts(empty=empty, skipped=empty)
        documents, counts = [], RunCounts()
        for text in texts:
            valid = replace_malformed(text)
            counts.empty += not text
            counts.invalid_utf8 += valid is not text
            if self.rule == "replace" or (text and valid is text):
                documents.append(valid)
            else:
                counts.skipped += 1
        return documents, counts

    def piece(
        self, text: bytes, size: int, next: SourcePosition, at: int, faults: RunCounts | None
    ) -> DocumentPiece:
        dropped = faults is not None and faults.skipped
        return DocumentPiece(None if dropped else text, size, next, at, faults=faults)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return True
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def replace_malformed(text: bytes) -> bytes:
    """Returns the text with malformed UTF-8 replaced by U+FFFD."""
    return text if _is_utf8(text) else text.decode("utf-8", "replace").encode()


def n_bytes(many: Sequence[bytes] | Joined) -> int:
    """Returns the number of bytes in a group's documents."""
    if isinstance(many, Joined):
        return len(many.data) - many.n
    return sum(map(len, many))


# Small documents are grouped, since handling them one by one would take as long as encoding them.
# The document with which a group reaches one of these sizes is the last of the group.
GROUP = 1 << 18  # bytes of text
GROUP_DOCUMENTS = 4096
GROUP_JOINED = 1 << 16  # bytes with separators, which limits the number of empty documents, too


def full_group_size(texts: Iterable[bytes | None]) -> int:
    """Returns how many of these documents, from the first on, form a full group; or 0 if there are
    too few documents."""
    few = list(islice(texts, GROUP_DOCUMENTS))
    try:
        sizes = list(accumulate(map(len, few)))  # type: ignore[arg-type]
    except TypeError:  # a text is None, because a record has no document
        sizes = list(accumulate(len(text or b"") for text in few))
    n = bisect_left(sizes, GROUP)
    if n < len(few):
        return n + 1
    return n if n == GROUP_DOCUMENTS else 0


def joined_end(text: bytes, start: int, separator: bytes) -> int:
    """Returns the end of the group that begins at text[start], just after a separator; or 0 if the
    group isn't full yet."""
    return text.find(separator, start + GROUP_JOINED - 1) + 1


def faultless(texts: Sequence[bytes | None] | Joined) -> bool:
    """Whether no document of a group is missing, empty or invalid UTF-8."""
    if isinstance(texts, Joined):
        joined, separator = texts.data, texts.separator
        if joined.startswith(separator) or 2 * separator in joined:
            return False
    elif not all(texts):
        return False
    else:
        joined = b"\n".join(texts)  # type: ignore[arg-type]
    return _is_utf8(joined)


def one_by_one(
    pieces: Iterable[DocumentPiece], start: SourcePosition, end: SourcePosition
) -> Pieces:
    """Yields the pieces of a group with faults, from `start` to `end`. If the group has no pieces,
    yields an empty piece that ends at `end`."""
    last: DocumentPiece | None = None
    for piece in pieces:
        if last is not None:
            last.inside = True
            yield last
        last = piece
    if last is None:
        last = DocumentPiece(None, 0, start)
    last.size += max(end.offset - last.next.offset, 0)  # adds blank lines, which have no piece
    last.next = end
    yield last


_REPLACED = {
    "invalid_utf8": "puts U+FFFD in their place",
    "empty": "keeps them",
    "missing": "keeps them as empty documents",
    "malformed": "keeps them as empty documents",
}

Pieces = Iterator[DocumentPiece]


JOINER = "\n\n"  # between the texts of two fields


class Fields:
    """The fields of a record that contain its document. The texts of several fields are joined by a
    blank line. If no field is named ``meta.text``, that name means the field ``text`` in the object
    ``meta``.

    Attributes:
        names: the fields' names, at least one.
        text: a function that returns a record's document. If the record is faulty, the function may
            raise any exception, or return a value that isn't a string.
        opens: the bytes with which a record may begin.
        locates: whether encoding may find faults in documents.
    """

    opens = b"{"
    locates = False

    def __init__(self, names: Sequence[str]) -> None:
        self.names = tuple(names)
        self.text: Callable[[Any], str] = self._joined
        if len(names) == 1:
            plain = "." not in names[0]
            self.text = itemgetter(names[0]) if plain else lambda record: value(record, names[0])

    @classmethod
    def checked(cls, named: object) -> Fields:
        """Checks and converts a caller's argument; None means the field ``text``."""
        if named is None:
            return cls(["text"])
        names = [named] if isinstance(named, str) else named
        if not isinstance(names, (list, tuple)) or not all(isinstance(n, str) for n in names):
            what = type(named).__name__
            raise InvalidTypeError(f"field must be str or a list of str, not {what}")
        if not names:
            raise InvalidValueError("field names no field")
        return cls(names)

    @property
    def plan(self) -> str | list[str]:
        """The names of the fields, as journals and manifests store them."""
        return self.names[0] if len(self.names) == 1 else list(self.names)

    def __str__(self) -> str:
        return " and ".join(map(repr, self.names))

    def _joined(self, record: Any) -> str:
        return JOINER.join([value(record, name) for name in self.names])

    def documents(self, lines: Iterable[bytes], parse: Callable[[bytes], Any]) -> list[bytes]:
        """Returns the documents of JSON lines; raises any exception if a line is faulty."""
        text = self.text
        return [text(parse(line)).encode() for line in lines]

    def document(self, record: Any, line: bytes) -> bytes:
        """Returns the document of a record without faults. Raises UnicodeEncodeError if the
        document has a lone surrogate."""
        return self.text(record).encode()

    def type_fault(self, record: object) -> str | None:
        """Says what a JSON value is not, if it isn't a record."""
        return None if type(record) is dict else "not a JSON object"

    def fault(self, record: Any) -> str | None:
        """Describes the fault in a record's fields; returns None if there is none."""
        for name in self.names:
            try:
                found = value(record, name)
            except (LookupError, TypeError):
                return f"the field {name!r} is missing"
            if type(found) is not str:
                return f"the field {name!r} is not a string"
        return None


def value(record: Any, name: str) -> Any:
    """Returns a field's value. Raises LookupError or TypeError if there is no such field."""
    if name in record:
        return record[name]
    for part in name.split("."):
        if not isinstance(record, Mapping):
            raise TypeError
        record = record[part]
    return record
