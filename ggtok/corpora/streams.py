"""A source's bytes, decompressed, from an offset on."""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ggtok.base.files import open_regular, read_up_to
from ggtok.corpora.compressions import decompressor
from ggtok.corpora.sources import Source, changed
from ggtok.errors import FileError, GGTokError, file_error

# Bytes read at a time. Larger blocks come and go in malloc's heap, and fragment it.
BLOCK = 1 << 20
_SAMPLES, _SAMPLE = 16, 4096  # blocks, and bytes of each


class Stream:
    """An open source. Use it with ``with``: what goes wrong inside names the file."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self._file: Any = None
        self._bytes: Any = None
        self._ahead = b""  # read by seek(), beyond its place

    def __enter__(self) -> Stream:
        with naming(self.source.path):
            self._file = open_regular(self.source.path)
            check(self.source, self._file.fileno())
            self._bytes = decompressor(self.source.path, self.source.compression, self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def seek(self, offset: int) -> None:
        """Goes to an offset in the decompressed bytes; what is compressed is read up to there."""
        with naming(self.source.path):
            if not self.source.compression:
                self._file.seek(offset)
                return
            while offset:
                got = self._bytes.read(min(BLOCK, offset))
                if not got:
                    raise FileError(f"{self.source.path}: ends before the place to go on from")
                self._ahead = got[offset:]
                offset -= len(got) - len(self._ahead)

    def blocks(self) -> Iterator[bytes]:
        """What follows, at most BLOCK bytes at a time."""
        with naming(self.source.path):
            if self._ahead:
                yield self._ahead
            while block := self._bytes.read(BLOCK):
                yield block
            check(self.source, self._file.fileno())

    def at(self) -> int:
        """The number of bytes of the file read so far, before decompression."""
        place: int = self._file.tell()
        return place


def sampled(source: Source) -> int:
    """A CRC-32 of some of the file's bytes on disk: all of a small file, else evenly spaced
    blocks, including the first and the last."""
    with naming(source.path), open_regular(source.path) as file:
        check(source, file.fileno())
        if source.size <= _SAMPLES * _SAMPLE:
            return zlib.crc32(read_up_to(file, source.size))
        crc = 0
        for i in range(_SAMPLES):
            file.seek((source.size - _SAMPLE) * i // (_SAMPLES - 1))
            crc = zlib.crc32(read_up_to(file, _SAMPLE), crc)
        return crc


def check(source: Source, file: int) -> None:
    """Refuses a file that isn't the one that was listed, or has changed since."""
    if changed(source, os.fstat(file)):
        raise FileError(f"{source.path}: changed while it was read; start again")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """Inside, errors of the system and of decompressors become FileErrors with the path."""
    try:
        yield
    except GGTokError:
        raise
    except EOFError:
        raise FileError(f"{path}: the compressed data is cut off") from None
    except zlib.error as e:
        raise FileError(f"{path}: not valid gzip data: {e}") from None
    except OSError as e:
        from gzip import BadGzipFile

        if isinstance(e, BadGzipFile):  # its message may show bytes
            raise FileError(f"{path}: not valid gzip data") from None
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
