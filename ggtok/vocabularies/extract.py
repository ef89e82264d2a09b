"""Extracts the vocabulary of a GGUF file to a separate file, without the weights."""

from __future__ import annotations

import errno
import os
import struct
import warnings

from ggtok import sources
from ggtok.base import files
from ggtok.base.escape import shown
from ggtok.base.files import open_regular
from ggtok.errors import InvalidValueError, UnknownPreTokenizerError, VocabWarning, file_error
from ggtok.loading.gguf_reader import ARRAY, STRING, Reader
from ggtok.sources.files import first_shard, shard
from ggtok.sources.prefix import read_file
from ggtok.tokenizer import load
from ggtok.vocabularies.writers import GGUF

_SPLIT = b"split."  # keys that make llama.cpp look for the other files of a split model


def extract(source: str, out: str, *, force: bool = False) -> int:
    """Write the key/value pairs of a model to a GGUF file without tensors.

    ggtok and llama.cpp (``vocab_only``) load the same vocabulary from that file. Keys keep their
    order, types and exact values, except that ``split.*`` is dropped. The file is little-endian
    and has version 3. It is written completely or not at all.

    Args:
        source: a path or a model's name, as for :func:`ggtok.load`.
        out: the file to write. An existing GGUF file is replaced and keeps its mode. Devices and
            FIFOs are written to.
        force: also replace a file that isn't a GGUF file, but never the source.

    Returns:
        The new file's size in bytes.

    Raises:
        InvalidValueError: `out` is the source, another file of a split source, or not a GGUF
            file.
        VocabError: llama.cpp couldn't load the vocabulary. (An unknown pre-tokenizer only causes
            a warning, because another version may know it.)
        FileError, GGUFError: as for :func:`ggtok.load`, or `out` can't be written.

    Warns:
        VocabWarning: ggtok doesn't know the pre-tokenizer.
    """
    path, data = metadata_of(source)
    inputs = () if path is None else (path,)
    files.check(out, GGUF, inputs=inputs, force=force)
    if path is not None:
        _check_shards(path, out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        unknown = None
        try:
            load(data)
        except UnknownPreTokenizerError as e:
            unknown = str(e.name)
            load(data, pre="default")  # there may be other errors
    file = vocabulary_only(data)
    files.write(out, file, GGUF, inputs=inputs, force=force)
    if unknown is not None:
        warnings.warn(
            f"{source}: ggtok doesn't know the pre-tokenizer '{shown(unknown)}', which is also "
            f"in {out}",
            VocabWarning,
            stacklevel=2,
        )
    return len(file)


def metadata_of(source: str) -> tuple[str | None, bytes]:
    """A model's file if it is local, and its metadata."""
    path = first_shard(source)
    if not os.path.exists(path):
        found = sources.find(source)
        if found is None:
            raise file_error(errno.ENOENT, os.strerror(errno.ENOENT), source)
        if found.data is not None:
            return None, found.data
        path = str(found.source.path)
    with open_regular(path) as file:
        return path, read_file(file, path)


def _check_shards(path: str, out: str) -> None:
    ours, other = shard(os.path.realpath(path)), shard(os.path.realpath(out))
    if ours and other and (ours[0], ours[2]) == (other[0], other[2]):
        raise InvalidValueError(f"{out} is the source itself: choose another name")


def vocabulary_only(metadata: bytes) -> bytes:
    """The new file's bytes, from well-formed metadata of either byte order."""
    pairs = [
        struct.pack("<Q", len(key)) + key + value
        for key, value in _Raw(metadata).pairs()
        if not key.startswith(_SPLIT)
    ]
    return b"".join([b"GGUF", struct.pack("<IQQ", 3, 0, len(pairs)), *pairs])


class _Raw(Reader):
    """Reads values as the bytes of a little-endian file."""

    def pairs(self) -> list[tuple[bytes, bytes]]:
        return [(self.string(), self._typed()) for _ in range(self.begin())]

    def _typed(self) -> bytes:
        (kind,) = self.scalars("I", 1)
        if kind != ARRAY:
            return struct.pack("<I", kind) + self._elements(kind, 1)
        (of,) = self.scalars("I", 1)
        (n,) = self.scalars("Q", 1)
        return struct.pack("<IIQ", kind, of, n) + self._elements(of, n)

    def _elements(self, kind: int, n: int) -> bytes:
        if kind == STRING:
            size = struct.Struct("<Q").pack
            return b"".join([size(len(text)) + text for text in self.strings(n)])
        return self.little(kind, n)
