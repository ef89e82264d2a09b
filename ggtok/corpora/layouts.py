"""The layouts of raw, NumPy and Megatron files of ids: their headers, indices and ends."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.files import read_up_to
from ggtok.corpora.partial_file import PartialFile
from ggtok.errors import FileError

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEGATRON_MAGIC = b"MMIDIDX\0\0"  # megatron/core/datasets/indexed_dataset.py
_MEGATRON_CODES = {"int32": 4, "uint16": 8}
_MOST = (1 << 31) - 1  # ids of a document
_AT_ONCE = 1 << 20  # numbers of an index that are converted at a time


class Raw:
    """Ids alone, little-endian; and where documents begin, int64, n + 1 of them: the i-th
    document is ``ids[index[i]:index[i + 1]]``.

    What formats have in common: `data` and `index` grow.
    """

    name = "raw"
    dtypes: tuple[str, ...] = ("uint16", "uint32", "int32")
    whole = False  # documents come in one piece
    header = 0  # bytes before the first id

    def __init__(self, out: str, dtype: str) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        data, index = self.names(out)
        self.data, self.index = PartialFile(data, self.header), PartialFile(index, self.header)

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        """The files that grow: that of the ids, and the index."""
        return out, out + ".offsets"

    @classmethod
    def paths(cls, out: str) -> tuple[str, ...]:
        """The finished files, that of the ids first."""
        return cls.names(out)

    @staticmethod
    def auto(n_tokens: int) -> str:
        """The smallest type that holds all ids."""
        return "uint16" if n_tokens <= 1 << 16 else "uint32"

    def begin(self) -> None:
        """Writes what comes first into the new files."""
        self.index.append(struct.pack("<q", 0))

    def append(self, ids: NDArray[np.int32], ends: NDArray[np.int64]) -> None:
        """Writes ids, and where documents end, counted from the first id of all."""
        self.data.append(self._converted(ids))
        self.index.append(ends.astype("<i8", copy=False).view(np.uint8))

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        """Completes the files, and says which there are."""
        return [self.index, self.data]

    def fits(self, n_ids: int, n_documents: int, data: int, index: int) -> bool:
        """Whether files with so many bytes hold so many ids and documents."""
        ids = self.header + self.dtype.itemsize * n_ids
        return (data, index) == (ids, self.index.header + 8 * (n_documents + 1))

    def _converted(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        if self.dtype.itemsize == 4:  # ids are not negative
            return ids.astype("<i4", copy=False).view(np.uint8)
        return ids.astype(self.dtype).view(np.uint8)


class Npy(Raw):
    """NumPy's format, which ``np.load(mmap_mode="r")`` maps; the index likewise."""

    name = "npy"
    header = 128  # whatever the length is

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        return out, out.removesuffix(".npy") + ".offsets.npy"

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        self.data.patch(self._header(self.dtype, n_ids))
        self.index.patch(self._header(np.dtype("<i8"), n_documents + 1))
        return super().finish(n_ids, n_documents)

    def _header(self, dtype: np.dtype[Any], n: int) -> bytes:
        """Version 1.0: numpy/lib/format.py."""
        text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({n},), }}"
        start = b"\x93NUMPY\x01\x00" + struct.pack("<H", self.header - 10)
        return start + text.ljust(self.header - 11).encode() + b"\n"


class Megatron(Raw):
    """Megatron's indexed dataset: ids in ``.bin``; ``.idx`` tells lengths and places of sequences,
    each document being one."""

    name = "megatron"
    dtypes = ("uint16", "int32")

    def __init__(self, out: str, dtype: str) -> None:
        super().__init__(out, dtype)
        self._code = _MEGATRON_CODES[dtype]
        # Offsets are collected in a separate file, which becomes the index at the end.
        self._idx = PartialFile(self.index.path)
        self.index = PartialFile(self.index.path + ".offsets")

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        prefix = out.removesuffix(".bin")
        return prefix + ".bin", prefix + ".idx"

    @staticmethod
    def auto(n_tokens: int) -> str:
        return "uint16" if n_tokens < 65500 else "int32"  # DType.optimal_dtype

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        idx = self._idx
        idx.create()
        idx.append(
            _MEGATRON_MAGIC + struct.pack("<QBQQ", 1, self._code, n_documents, n_documents + 1)
        )
        for offsets in self._offsets(n_documents + 1):
            lengths = np.diff(offsets)
            if len(lengths) and lengths.max() > _MOST:
                raise FileError(
                    f"{self.data.path}: a document has {lengths.max()} ids, and Megatron's index "
                    "holds lengths below 2**31"
                )
            idx.append(lengths.astype("<i4").view(np.uint8))
        size = self.dtype.itemsize
        for offsets in self._offsets(n_documents + 1):
            idx.append((offsets[:-1] * size).astype("<i8").view(np.uint8))
        for start in range(0, n_documents + 1, _AT_ONCE):
            stop = min(start + _AT_ONCE, n_documents + 1)
            idx.append(np.arange(start, stop, dtype="<i8").view(np.uint8))
        return [idx, self.data]

    def _offsets(self, n: int) -> Iterator[NDArray[np.int64]]:
        """The offsets, in parts, each of which begins with the last one of the part before."""
        with self.index.written() as file:
            for start in range(0, max(n - 1, 1), _AT_ONCE):
                file.seek(8 * start)
                yield np.frombuffer(read_up_to(file, 8 * (_AT_ONCE + 1)), "<i8")
