"""Encodes batches of documents, with the same result as ``encode`` for each document, and adds EOS
on request."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.corpora.documents import DocumentPiece, Joined
from ggtok.corpora.summary import RunCounts
from ggtok.errors import InvalidValueError
from ggtok.native import ADD_SPECIAL, NOT_FIRST_BLOCK, NOT_LAST_BLOCK
from ggtok.native.arguments import on_main_thread
from ggtok.native.arrays import id_arrays
from ggtok.native.contexts import Blocks

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from ggtok.loading.loaded import Loaded
    from ggtok.text.batch_encoding import SamplingRule


@dataclass
class Encoded:
    """The ids of a batch.

    Attributes:
        ids: the ids of all documents, joined (int32).
        ends: the position in `ids` where each document ends (int64).
        before: for each piece, the number of documents that end before the piece; and, as the last
            element, the total number of documents.
        drops: whether the document that continues from the previous batch is dropped.
        opens: whether the last document continues in the next batch.
        mask: for each id, 1 if it is the assistant's (uint8); None for texts.
        faults: counts of the faults that encoding found.
        n_media: the number of images, audio and video without ids.
    """

    ids: NDArray[np.int32]
    ends: NDArray[np.int64]
    before: list[int]
    drops: bool = False
    opens: bool = False
    mask: NDArray[np.uint8] | None = None
    faults: RunCounts | None = None
    n_media: int = 0


class Encoder:
    """Encodes batches with one set of options."""

    def __init__(
        self, loaded: Loaded, add_special: bool, eos: bool, sampling: SamplingRule | None = None
    ) -> None:
        self._loaded = loaded
        self.sampling = sampling
        self._add_special = add_special
        self.eos: int | None = None
        if eos:
            if loaded.eos_id is None:
                raise InvalidValueError(
                    "this vocabulary has no EOS token: pass eos=False (--no-eos)"
                )
            self.eos = None if add_special and _adds_eos(loaded) else loaded.eos_id

    @property
    def flags(self) -> int:
        return ADD_SPECIAL if self._add_special else 0

    def encode(self, pieces: Sequence[DocumentPiece], threads: int = 1, first: int = 0) -> Encoded:
        """Encodes a batch, whose first document has the number `first`. Several threads share whole
        documents, but not parts of documents."""
        kept, before, drops, opens = _kept_pieces(pieces)
        arrays: list[NDArray[np.int32]] = []
        ends: list[NDArray[np.int64]] = []
        total = 0
        for parts, run in _runs(kept):
            if parts:
                ids, stops = self._parts(run)
            else:
                texts = list(chain.from_iterable(map(_document_texts, run)))
                ids, stops = self._whole(texts, threads, first)
            arrays.append(ids)
            ends.append(stops + total)
            total += len(ids)
        ids = arrays[0] if len(arrays) == 1 else _join_arrays(arrays, np.int32)
        stops = ends[0] if len(ends) == 1 else _join_arrays(ends, np.int64)
        return Encoded(ids, stops, before, drops, opens)

    def _whole(
        self, texts: list[Any], threads: int, first: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        # If documents are sampled, none is divided, so this is the batch's only call.
        rule = None if self.sampling is None else (*self.sampling[:-1], self.sampling[-1] + first)
        args = self._add_special, False, False, threads, False, on_main_thread(), None, rule
        try:
            result = self._loaded.encode_batch(texts, *args)
        except Exception as e:
            self._loaded.reraise(e)
        array, ends = id_arrays(result)
        if self.eos is None:
            return array, ends[1:]
        return with_eos(array, ends, self.eos), ends[1:] + np.arange(1, len(ends))

    def _parts(self, pieces: list[DocumentPiece]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Encodes parts of documents."""
        blocks = Blocks(self._loaded)
        arrays = [self._part(blocks, piece) for piece in pieces]
        sizes = np.cumsum([len(array) for array in arrays], dtype=np.int64)
        return _join_arrays(arrays, np.int32), sizes[[piece.ends for piece in pieces]]

    def _part(self, blocks: Any, piece: DocumentPiece) -> NDArray[np.int32]:
        flags = self.flags
        flags |= 0 if piece.begins else NOT_FIRST_BLOCK
        flags |= 0 if piece.ends else NOT_LAST_BLOCK
        text = piece.text or b""
        ids = blocks.encode(text, len(text), flags)
        if piece.ends and self.eos is not None:
            ids += np.int32(self.eos).tobytes()
        return np.frombuffer(ids, np.int32)


def _document_texts(piece: DocumentPiece) -> Iterable[Any]:
    """Returns a piece's documents in the form that encode_batch accepts."""
    if isinstance(piece.many, Joined):
        return (piece.many.fields(),)
    return piece.many or (piece.text,)


def _kept_pieces(
    pieces: Sequence[DocumentPiece],
) -> tuple[list[DocumentPiece], list[int], bool, bool]:
    """Returns the pieces to encode, and the values of `before`, `drops` and `opens` for
    :class:`Encoded`."""
    kept: list[DocumentPiece] = []
    before, n, start = [], 0, 0
    drops, opens, new = False, False, False
    for piece in pieces:
        before.append(n)
        if piece.begins:
            start, new = len(kept), True
        if piece.text is None:
            del kept[start:]
            drops, opens = drops or not new, False
            continue
        kept.append(piece)
        opens = not piece.ends
        n += len(piece.many) or piece.ends
    before.append(n)
    return kept, before, drops, opens


def _runs(pieces: list[DocumentPiece]) -> Iterator[tuple[bool, list[DocumentPiece]]]:
    """Splits the pieces into sequences that contain either only parts of documents (True) or only
    whole documents (False)."""
    run: list[DocumentPiece] = []
    parts = False
    for piece in pieces:
        part = not (piece.begins and piece.ends)
        if run and part != parts:
            yield parts, run
            run = []
        parts = part
        run.append(piece)
    if run:
        yield parts, run


def _join_arrays(arrays: list[Any], dtype: type) -> Any:
    return np.concatenate([np.empty(0, dtype), *arrays])


def with_eos(ids: NDArray[Any], offsets: NDArray[np.int64], eos: int) -> NDArray[Any]:
    """Inserts `eos` after each document in a batch's ids."""
    n = len(offsets) - 1
    out = np.empty(len(ids) + n, ids.dtype)
    ends = offsets[1:] + np.arange(n)
    if len(ids) > 256 * n:  # for long documents, one copy per document is faster
        begin = 0
        for i, end in enumerate(offsets[1:].tolist()):
            out[begin + i : end + i] = ids[begin:end]
            begin = end
    else:
        kept = np.ones(len(out), bool)
        kept[ends] = False
        out[kept] = ids
    out[ends] = eos
    return out


def _adds_eos(loaded: Loaded) -> bool:
    """Whether add_special adds EOS with this vocabulary."""
    alone = loaded.encode("a", False, False, False)
    framed = loaded.encode("a", True, False, False)
    return framed[-1:] == [loaded.eos_id] and framed[len(framed) - len(alone) :] != alone
