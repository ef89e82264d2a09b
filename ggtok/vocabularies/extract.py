"""A GGUF file's key/values as a file of their own: the vocabulary without the weights."""

from __future__ import annotations

import errno
import os
import struct
import warnings

from ggtok import sources
from ggtok.base import writing
from ggtok.base.escape import shown
from ggtok.base.reading import open_regular
from ggtok.errors import InvalidValueError, UnknownPreTokenizerError, VocabWarning, file_error
from ggtok.loading.gguf_reader import ARRAY, STRING, Reader
from ggtok.sources.prefix import read_file
from ggtok.sources.split import first_shard, shard
from ggtok.tokenizer import load
from ggtok.vocabularies.writers import GGUF

_SPLIT = b"split."  # keys that would make llama.cpp look for the other files


def extract(source: str, out: str, *, force: bool = False) -> int:
    """Writes the key/values of a model to a GGUF file without tensors, from which ggtok and
    llama.cpp (``vocab_only``) load the same vocabulary.

    Keys keep their order, types and values, bit by bit; the file is little-endian and of
    version 3, and ``split.*`` is dropped. It appears whole or not at all.

    Args:
        source: a path or a model's name, as of :func:`ggtok.load`.
        out: the file to write. A GGUF file that is there is replaced, and keeps its mode;
            devices and FIFOs are written to.
        force: also write over a file that is no GGUF file, but never over the source.

    Returns:
        The new file's size in bytes.

    Raises:
        InvalidValueError: `out` is the source, another file of a split source, or a file that is
            no GGUF file.
        VocabError: the vocabulary is one that llama.cpp couldn't load. An unknown pre-tokenizer
            is only warned of, since it may be known to another version.
        FileError, GGUFError: as of :func:`ggtok.load`; `out` can't be written.

    Warns:
        VocabWarning: ggtok doesn't know the pre-tokenizer.
    """
    path, data = metadata_of(source)
    inputs = () if path is None else (path,)
    writing.check(out, GGUF, inputs=inputs, force=force)
    if path is not None:
        _check_shards(path, out)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        unknown = None
        try:
            load(data)
        except UnknownPreTokenizerError as e:
            unknown = str(e.name)
            load(data, pre="default")  # which may not be the only fault
    file = vocabulary_only(data)
    writing.write(out, file, GGUF, inputs=inputs, force=force)
    if unknown is not None:
        warnings.warn(
            f"{source}: ggtok doesn't know the pre-tokenizer '{shown(unknown)}', which {out} "
            "has, too",
            VocabWarning,
            stacklevel=2,
        )
    return len(file)


def metadata_of(source: str) -> tuple[str | None, bytes]:
    """A model's file, if it is on this machine, and its metadata."""
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
        raise InvalidValueError(f"{out} is the source itself: give another name")


def vocabulary_only(metadata: bytes) -> bytes:
    """The file, made of well-formed metadata of either byte order."""
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
