"""Groups documents into batches of a bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from ggtok.corpora.documents import DocumentPiece, Pieces, SourcePosition, n_bytes
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.summary import RunCounts

# The approximate size of a batch, in bytes of text. In an Arrow file, a batch is a record batch.
BYTES = 2 << 20
DOCUMENTS = 1 << 16  # the maximum number of documents in a batch

Read = Callable[[SourceFile, SourcePosition], Pieces]


@dataclass
class DocumentBatch:
    """Pieces that are encoded together. The end of a batch depends only on the pieces, so a run
    that is resumed at the end of a batch has the same batches as an uninterrupted run.

    Attributes:
        next: the position where the next batch begins.
        read: the number of bytes on disk, in all sources, that were read by the end of the batch.
        pieces: the pieces, except for dropped documents that consist of one piece.
        size: the number of bytes of text in `pieces`.
        counts: the number of bytes in the batch, and of faults of each kind.
        closed: for each source that ends in the batch, the number of `pieces` before its end.
        first: the number of documents in all earlier batches.
    """

    next: SourcePosition
    read: int = 0
    pieces: list[DocumentPiece] = field(default_factory=list)
    size: int = 0
    counts: RunCounts = field(default_factory=RunCounts)
    closed: list[int] = field(default_factory=list)
    first: int = 0

    @property
    def documents(self) -> int:
        """The number of documents, if no document is divided into pieces."""
        return sum(len(piece.many) or 1 for piece in self.pieces)


def batches(
    sources: Sequence[SourceFile],
    position: SourcePosition,
    read: Read,
    limit: int = BYTES,
    first: int = 0,
) -> Iterator[DocumentBatch]:
    """Yields the documents of all sources, starting at `position`, in batches of about `limit`
    bytes. `first` is the number of documents before `position`."""
    finished = sum(source.size for source in sources[: position.source])
    batch, n = DocumentBatch(position, first=first), 0
    for piece in _pieces(sources, position, read):
        batch.next = piece.next
        batch.read = finished + piece.at
        batch.counts.bytes += piece.size
        if piece.faults is not None:
            batch.counts.add(piece.faults)
        if piece.text is not None or not piece.begins or not piece.ends:
            batch.pieces.append(piece)
            batch.size += len(piece.text or b"") + n_bytes(piece.many)
            n += 1 + len(piece.many)
        if piece.last:
            finished += piece.at
            batch.closed.append(len(batch.pieces))
        if not piece.inside and (batch.size >= limit or n + len(batch.closed) >= DOCUMENTS):
            yield batch
            batch, n = DocumentBatch(batch.next, first=batch.first + batch.documents), 0
    yield batch


def _pieces(sources: Sequence[SourceFile], position: SourcePosition, read: Read) -> Pieces:
    """Yields all sources' pieces. Each source's last piece has `last` set, and its `next` is the
    beginning of the next source."""
    for number in range(position.source, len(sources)):
        source = sources[number]
        last: DocumentPiece | None = None
        for piece in read(
            source, position if number == position.source else SourcePosition(number)
        ):
            if last is not None:
                yield last
            last = piece
        last = last or DocumentPiece(None, 0, position)
        last.next, last.at, last.last = SourcePosition(number + 1), source.size, True
        yield last
