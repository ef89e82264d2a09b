"""The file formats for ids: raw, NumPy, Megatron and Arrow."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok.base.files import read_up_to
from ggtok.corpora.partial_file import PartialFile, partial_of
from ggtok.corpora.sources import COMPRESSIONS
from ggtok.corpora.tables import pyarrow
from ggtok.errors import (
    FileError,
    InvalidTypeError,
    InvalidValueError,
    file_error,
)
from ggtok.loading.loaded import checked_path
from ggtok.native.arguments import is_one_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MEGATRON_MAGIC = b"MMIDIDX\0\0"  # from megatron/core/datasets/indexed_dataset.py
_MEGATRON_CODES = {"int32": 4, "uint16": 8}
_MOST = (1 << 31) - 1  # the maximum number of ids in a document
_AT_ONCE = 1 << 20  # the number of index entries to convert at a time


class Raw:
    """A file of little-endian ids, and an index of n + 1 int64 offsets: the i-th document is
    ``ids[index[i]:index[i + 1]]``.

    This is also the base class of the other formats. Each format has two growing files, `data` and
    `index`; and for conversations, `mask`, which has a byte for each id: 1 if it is the
    assistant's.
    """

    name = "raw"
    dtypes: tuple[str, ...] = ("uint16", "uint32", "int32")
    whole = False  # whether a document can't be written in parts
    header = 0  # the number of bytes before the first id

    def __init__(self, out: str, dtype: str, masked: bool = False) -> None:
        self.dtype = np.dtype(dtype).newbyteorder("<")
        data, index = self.names(out)
        self.data, self.index = PartialFile(data, self.header), PartialFile(index, self.header)
        mask = self.mask_name(out) if masked else None
        self.mask = None if mask is None else PartialFile(mask, self.header)

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        """Returns the names of the growing files: the ids and the index."""
        return out, out + ".offsets"

    @staticmethod
    def mask_name(out: str) -> str | None:
        """Returns the name of the file of masks, or None if masks are in the file of ids."""
        return out + ".mask"

    @classmethod
    def paths(cls, out: str, masked: bool = False) -> tuple[str, ...]:
        """Returns the paths of the finished files, with the file of ids first."""
        mask = cls.mask_name(out) if masked else None
        return cls.names(out) if mask is None else (*cls.names(out), mask)

    @staticmethod
    def auto(n_tokens: int) -> str:
        """Returns the smallest type in which all ids fit."""
        return "uint16" if n_tokens <= 1 << 16 else "uint32"

    def begin(self) -> None:
        """Writes the beginning of new files."""
        self.index.append(struct.pack("<q", 0))

    def append(
        self,
        ids: NDArray[np.int32],
        ends: NDArray[np.int64],
        mask: NDArray[np.uint8] | None = None,
    ) -> None:
        """Writes ids, the ends of documents as positions among all of the output's ids, and the
        masks of conversations."""
        self.data.append(self._converted(ids))
        self.index.append(ends.astype("<i8", copy=False).view(np.uint8))
        if self.mask is not None:
            self.mask.append(mask)

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        """Completes and returns the files."""
        return [self.index, *([] if self.mask is None else [self.mask]), self.data]

    def fits(self, n_ids: int, n_documents: int, sizes: Mapping[str, int]) -> bool:
        """Whether `sizes` are the growing files' sizes in bytes for these numbers of ids and
        documents."""
        expected = {
            "data": self.header + self.dtype.itemsize * n_ids,
            "index": self.index.header + 8 * (n_documents + 1),
        }
        if self.mask is not None:
            expected["mask"] = self.mask.header + n_ids
        return sizes == expected

    def _converted(self, ids: NDArray[np.int32]) -> NDArray[Any]:
        if self.dtype.itemsize == 4:  # ids aren't negative, so int32 and uint32 have the same bytes
            return ids.astype("<i4", copy=False).view(np.uint8)
        return ids.astype(self.dtype).view(np.uint8)


class Npy(Raw):
    """NumPy's format, which ``np.load(mmap_mode="r")`` can map, for the ids and the index."""

    name = "npy"
    header = 128  # enough bytes for any number of ids

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        return out, out.removesuffix(".npy") + ".offsets.npy"

    @staticmethod
    def mask_name(out: str) -> str | None:
        return out.removesuffix(".npy") + ".mask.npy"

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        self.data.patch(self._header(self.dtype, n_ids))
        if self.mask is not None:
            self.mask.patch(self._header(np.dtype(bool), n_ids))
        self.index.patch(self._header(np.dtype("<i8"), n_documents + 1))
        return super().finish(n_ids, n_documents)

    def _header(self, dtype: np.dtype[Any], n: int) -> bytes:
        """Returns a header of version 1.0 (numpy/lib/format.py)."""
        text = f"{{'descr': '{dtype.str}', 'fortran_order': False, 'shape': ({n},), }}"
        start = b"\x93NUMPY\x01\x00" + struct.pack("<H", self.header - 10)
        return start + text.ljust(self.header - 11).encode() + b"\n"


class Megatron(Raw):
    """Megatron's indexed dataset: ids in ``.bin``, and the lengths and offsets of sequences in
    ``.idx``. Each document is a sequence."""

    name = "megatron"
    dtypes = ("uint16", "int32")

    def __init__(self, out: str, dtype: str, masked: bool = False) -> None:
        super().__init__(out, dtype, masked)
        self._code = _MEGATRON_CODES[dtype]
        # Offsets are collected in a separate file, which becomes the index at the end.
        self._idx = PartialFile(self.index.path)
        self.index = PartialFile(self.index.path + ".offsets", output=self.index.path)

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        prefix = out.removesuffix(".bin")
        return prefix + ".bin", prefix + ".idx"

    @staticmethod
    def mask_name(out: str) -> str | None:
        return out.removesuffix(".bin") + ".mask"

    @staticmethod
    def auto(n_tokens: int) -> str:
        return "uint16" if n_tokens < 65500 else "int32"  # as in Megatron's DType.optimal_dtype

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
        return [idx, *([] if self.mask is None else [self.mask]), self.data]

    def _offsets(self, n: int) -> Iterator[NDArray[np.int64]]:
        """Yields the offsets in parts. Each part after the first begins with the last offset of the
        part before."""
        with self.index.written() as file:
            for start in range(0, max(n - 1, 1), _AT_ONCE):
                file.seek(8 * start)
                yield np.frombuffer(read_up_to(file, 8 * (_AT_ONCE + 1)), "<i8")


_MAGIC = b"ARROW1"
_END = b"\xff\xff\xff\xff\0\0\0\0"
# A Block in format/File.fbs: offset, length of the metadata, padding, length of the body.
_BLOCK = struct.Struct("<qi4xq")
_FIELD_BATCHES = 3  # the index of recordBatches among Footer's fields


class Arrow(Raw):
    """An Arrow IPC file with a column ``ids`` of lists, one for each document; for conversations,
    also a column ``assistant_masks``.

    pyarrow's writer can't continue a file that another process began. So each record batch is
    serialized separately, and the footer, which has the batches' offsets, is written at the end:

        ARROW1\\0\\0  schema  batch  batch ...  end mark  footer  its length  ARROW1

    `index` contains a block for each record batch, which is copied to the footer.
    """

    name = "arrow"
    whole = True

    def __init__(self, out: str, dtype: str, masked: bool = False) -> None:
        self._pa = pyarrow("format='arrow'")
        super().__init__(out, dtype, masked)
        self._schema = schema(self._pa, dtype, masked)

    @staticmethod
    def names(out: str) -> tuple[str, str]:
        return out, out + ".blocks"

    @staticmethod
    def mask_name(out: str) -> str | None:
        return None

    @classmethod
    def paths(cls, out: str, masked: bool = False) -> tuple[str, ...]:
        return (out,)

    def begin(self) -> None:
        self.data.append(_MAGIC + b"\0\0")
        self.data.append(self._schema.serialize())

    def append(
        self,
        ids: NDArray[np.int32],
        ends: NDArray[np.int64],
        mask: NDArray[np.uint8] | None = None,
    ) -> None:
        if not len(ends):
            return
        first = int(ends[-1]) - len(ids)  # the last document ends where the ids end
        offsets = np.concatenate([np.zeros(1, np.int64), ends - first])
        pa = self._pa
        lists = [ids.astype(self.dtype.newbyteorder("="), copy=False)]
        lists += [] if mask is None else [mask]
        columns = [
            pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(each)).cast(field.type)
            for each, field in zip(lists, self._schema, strict=True)
        ]
        batch = pa.record_batch(columns, self._schema)
        message = batch.serialize()
        (metadata,) = struct.unpack_from("<i", message, 4)
        start, metadata = self.data.extent.size, metadata + 8
        self.data.append(message)
        self.index.append(_BLOCK.pack(start, metadata, message.size - metadata))

    def fits(self, n_ids: int, n_documents: int, sizes: Mapping[str, int]) -> bool:
        return sizes["index"] % _BLOCK.size == 0

    def finish(self, n_ids: int, n_documents: int) -> list[PartialFile]:
        with self.index.written() as file:
            blocks = read_up_to(file, self.index.extent.size)
        footer = self._footer(blocks)
        self.data.append(_END + footer + struct.pack("<i", len(footer)) + _MAGIC)
        return [self.data]

    def _footer(self, blocks: bytes) -> bytes:
        """Returns the footer that pyarrow writes for a file with the same number of empty batches,
        with its blocks replaced by `blocks`."""
        pa = self._pa
        sink = pa.BufferOutputStream()
        empty = pa.record_batch([pa.array([], field.type) for field in self._schema], self._schema)
        with pa.ipc.new_file(sink, self._schema) as writer:
            for _ in range(len(blocks) // _BLOCK.size):
                writer.write_batch(empty)
        file = sink.getvalue().to_pybytes()
        (length,) = struct.unpack_from("<i", file, len(file) - len(_MAGIC) - 4)
        footer = bytearray(file[-len(_MAGIC) - 4 - length : -len(_MAGIC) - 4])
        if blocks:
            at = _vector(footer, _FIELD_BATCHES)
            footer[at : at + len(blocks)] = blocks
        return bytes(footer)


def schema(pa: Any, dtype: str, masked: bool = False) -> Any:
    """Returns the schema for an Arrow file of ids."""
    columns = {"ids": dtype, **({"assistant_masks": "uint8"} if masked else {})}
    lists = {name: pa.large_list(getattr(pa, kind)()) for name, kind in columns.items()}
    return pa.schema([pa.field(name, kind, nullable=False) for name, kind in lists.items()])


def _vector(flatbuffer: bytearray, field: int) -> int:
    """Returns the offset of the first element of a vector that is a field of the root table."""
    (table,) = struct.unpack_from("<I", flatbuffer, 0)
    (back,) = struct.unpack_from("<i", flatbuffer, table)
    (slot,) = struct.unpack_from("<H", flatbuffer, table - back + 4 + 2 * field)
    place = table + slot
    (offset,) = struct.unpack_from("<I", flatbuffer, place)
    return int(place + offset + 4)  # skips the vector's length


FORMATS: dict[str, type[Raw]] = {"raw": Raw, "npy": Npy, "megatron": Megatron, "arrow": Arrow}

# The formats that each extension allows, the default first. The extensions in _OTHERS allow no
# format, and all remaining extensions allow every format.
_EXTENSIONS = {
    ".bin": ("raw", "megatron"),
    ".npy": ("npy",),
    **dict.fromkeys((".arrow", ".feather", ".ipc"), ("arrow",)),
}
_OTHERS = (
    *COMPRESSIONS,
    *".csv .gguf .idx .json .jsonl .ndjson .npz .parquet .pt .txt .zip".split(),
)


def format_name(name: str | None, out: str) -> str:
    """Returns the name of the output's format: `name`, which the file extension must allow, or the
    extension's default."""
    extension = os.path.splitext(out)[1].lower()
    if extension in _OTHERS:
        raise InvalidValueError(
            f"{out}: ids aren't written as {extension}; name the output {out[: -len(extension)]}"
            ".bin, or .npy or .arrow"
        )
    fitting = _EXTENSIONS.get(extension, tuple(FORMATS))
    if name is None:
        return fitting[0]
    if is_one_of(name, FORMATS) and name not in fitting:
        raise InvalidValueError(
            f"{out}: a {extension} file can't have the format {name!r}, only {fitting[0]!r}; "
            "choose another name, or leave out the format"
        )
    return name


def choose_format(name: str, dtype: str, n_tokens: int) -> tuple[type[Raw], str]:
    """Returns a format's class and the type of its ids, with "auto" resolved."""
    if name not in FORMATS:
        known = ", ".join(map(repr, FORMATS))
        raise InvalidValueError(f"format must be one of {known}, not {name!r}")
    known = ", ".join(map(repr, ("auto", *Raw.dtypes)))
    if dtype not in ("auto", *Raw.dtypes):
        raise InvalidValueError(f"dtype must be one of {known}, not {dtype!r}")
    format = FORMATS[name]
    dtype = format.auto(n_tokens) if dtype == "auto" else dtype
    if dtype not in format.dtypes:
        raise InvalidValueError(
            f"Megatron's datasets have no {dtype}: use the dtype 'int32', or 'auto', which takes "
            "uint16 for vocabularies of fewer than 65,500 tokens"
        )
    if dtype == "uint16" and n_tokens > 1 << 16:
        raise InvalidValueError(
            f"the dtype 'uint16' holds ids below 65,536, and this vocabulary has {n_tokens} tokens"
        )
    return format, dtype


def checked_out(out: object) -> str:
    """Checks and converts a caller's argument for the path of the output."""
    if not isinstance(out, (str, os.PathLike)):
        raise InvalidTypeError(f"out must be str or a path, not {type(out).__name__}")
    path = os.fsdecode(checked_path(out, "out"))
    if not os.path.basename(path):
        raise InvalidValueError(f"out: {path!r} is not a file name")
    if os.path.isdir(path):
        raise file_error(21, "is a folder, and out must be a file", path)
    return path


def _grown(out: str) -> set[str]:
    """Returns the files that a run for `out` may write, in any format."""
    names = {out, out + ".manifest.json", out + ".sources"}
    for format in FORMATS.values():
        names.update((*format.names(out), *format.paths(out, masked=True)))
    names.add(Megatron.names(out)[1] + ".offsets")
    return names


def unfinished_files(out: str) -> list[str]:
    """Returns the names of the files that an interrupted run for `out` may leave, except its
    journal."""
    return sorted(map(partial_of, _grown(out)))


def companions(out: str) -> frozenset[str]:
    """Returns the absolute paths of all files that a run for `out` may write."""
    names = [*_grown(out), *unfinished_files(out), out + ".journal", os.path.realpath(out)]
    return frozenset(map(os.path.abspath, names))


def clean(out: str) -> None:
    """Removes the unfinished files of an earlier run for `out`, in any format."""
    for path in unfinished_files(out):
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), path) from None
