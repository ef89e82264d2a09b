"""Ids as an Arrow IPC file: a column ``ids`` of lists, a document each.

pyarrow's writer makes a file from its beginning to its end and can't go on with one. So record
batches are serialized one by one, as they lie in such a file, and the footer that tells where
they are is written at the end:

    ARROW1\\0\\0  schema  batch  batch ...  end mark  footer  its length  ARROW1
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.files import read_up_to
from ggtok.corpora.layouts import Raw
from ggtok.corpora.partial_file import PartialFile
from ggtok.corpora.tables import pyarrow

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\0\0\0\0"
# Block of format/File.fbs: offset, length of the metadata, padding, length of the body.
_BLOCK = struct.Struct("<qi4xq")
_FIELD_BATCHES = 3  # recordBatches, of Footer's fields


class Arrow(Raw):
    """`index` grows by a block of the footer for each record batch."""

    name = "arrow"
    whole = True

    def __init__(self, out: str, dtype: str) -> None:
        self._pa = pyarrow("format='arrow'")
        super().__init__(out, dtype)
        self._schema = schema(self._pa, dtype)

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        return out, out + ".blocks"

    @classmethod
    def paths(cls, out: str) -> tuple[str, ...]:
        return (out,)

    def begin(self) -> None:
        self.data.append(_MAGIC + b"\0\0")
        self.data.append(self._schema.serialize())

    def append(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        if not len(ends):
            return
        first = int(ends[-1]) - len(ids)  # whole documents: the last one ends with the ids
        offsets = np.concatenate([np.zeros(1, np.int64), ends - first])
        pa = self._pa
        values = pa.array(ids.astype(self.dtype.newbyteorder("="), copy=False))
        column = pa.LargeListArray.from_arrays(pa.array(offsets), values)
        batch = pa.record_batch([column.cast(self._schema.field(0).type)], self._schema)
        message = batch.serialize()
        (metadata,) = struct.unpack_from("<i", message, 4)
        start, metadata = self.data.extent.size, metadata + 8
        self.data.append(message)
        self.index.append(_BLOCK.pack(start, metadata, message.size - metadata))

    def fits(self, n_ids: int, n_documents: int, data: int, index: int) -> bool:
        return index % _BLOCK.size == 0

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        with self.index.written() as file:
            blocks = read_up_to(file, self.index.extent.size)
        footer = self._footer(blocks)
        self.data.append(_END + footer + struct.pack("<i", len(footer)) + _MAGIC)
        return [self.data]

    def _footer(self, blocks: bytes) -> bytes:
        """pyarrow's own, of a file with as many empty batches, with our blocks in it."""
        pa = self._pa
        sink = pa.BufferOutputStream()
        empty = pa.record_batch([pa.array([], field.type) for field in self._schema], self._schema)
        with pa.ipc.new_file(sink, self._schema) as writer:
            for _ in range(len(blocks) // _BLOCK.size):
                writer.write_batch(empty)
        made = sink.getvalue().to_pybytes()
        (length,) = struct.unpack_from("<i", made, len(made) - len(_MAGIC) - 4)
        footer = bytearray(made[-len(_MAGIC) - 4 - length : -len(_MAGIC) - 4])
        if blocks:
            at = _vector(footer, _FIELD_BATCHES)
            footer[at : at + len(blocks)] = blocks
        return bytes(footer)


def schema(pa: Any, dtype: str) -> Any:
    """The schema of such a file."""
    return pa.schema([pa.field("ids", pa.large_list(getattr(pa, dtype)()), nullable=False)])


def _vector(flatbuffer: bytearray, field: int) -> int:
    """Where the elements of a vector begin, which is a field of the root table."""
    (table,) = struct.unpack_from("<I", flatbuffer, 0)
    (back,) = struct.unpack_from("<i", flatbuffer, table)
    (slot,) = struct.unpack_from("<H", flatbuffer, table - back + 4 + 2 * field)
    place = table + slot
    (offset,) = struct.unpack_from("<I", flatbuffer, place)
    return int(place + offset + 4)  # after its length
