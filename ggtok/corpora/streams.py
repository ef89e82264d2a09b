"""Reads a source's bytes, starting at an offset, and decompresses them in bounded memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

from ggtok.base.files import open_regular, read_up_to
from ggtok.corpora.documents import LIMIT
from ggtok.corpora.sources import SourceFile, has_changed
from ggtok.errors import FileError, GGTokError, MissingExtraError, file_error

# The number of bytes to read at a time. Larger blocks would fragment malloc's heap.
BLOCK = 1 << 20
_SAMPLES, _SAMPLE = 16, 4096  # the number of blocks in a sample, and the size of each in bytes


class Stream:
    """An open source, as a context manager. Errors from its methods name the file."""

    def __init__(self, source: SourceFile) -> None:
        self.source = source
        self._file: Any = None
        self._bytes: Any = None
        self._ahead = b""  # bytes after the current offset that seek() has already read

    def __enter__(self) -> Stream:
        with naming(self.source.path):
            self._file = open_regular(self.source.path)
            check_unchanged(self.source, self._file.fileno())
            self._bytes = decompressor(self.source.path, self.source.compression, self._file)
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()

    def seek(self, offset: int) -> None:
        """Moves to an offset in the decompressed bytes. A compressed file must be read up to that
        offset."""
        with naming(self.source.path):
            if not self.source.compression:
                self._file.seek(offset)
                return
            while offset:
                got = self._bytes.read(min(BLOCK, offset))
                if not got:
                    raise FileError(f"{self.source.path}: is shorter than at the last checkpoint")
                self._ahead = got[offset:]
                offset -= len(got) - len(self._ahead)

    def blocks(self) -> Iterator[bytes]:
        """Yields the remaining bytes, at most BLOCK at a time."""
        with naming(self.source.path):
            if self._ahead:
                yield self._ahead
            while block := self._bytes.read(BLOCK):
                yield block
            check_unchanged(self.source, self._file.fileno())

    def at(self) -> int:
        """Returns how many of the file's bytes have been read so far, before decompression."""
        position: int = self._file.tell()
        return position


def sample_checksum(source: SourceFile) -> int:
    """Returns the CRC-32 of a sample of the file's bytes on disk: all of a small file, otherwise
    evenly spaced blocks, including the first and the last."""
    with naming(source.path), open_regular(source.path) as file:
        check_unchanged(source, file.fileno())
        if source.size <= _SAMPLES * _SAMPLE:
            return zlib.crc32(read_up_to(file, source.size))
        crc = 0
        for i in range(_SAMPLES):
            file.seek((source.size - _SAMPLE) * i // (_SAMPLES - 1))
            crc = zlib.crc32(read_up_to(file, _SAMPLE), crc)
        return crc


def check_unchanged(source: SourceFile, file: int) -> None:
    """Refuses a file that has changed or been replaced since it was found."""
    if has_changed(source, os.fstat(file)):
        raise FileError(f"{source.path}: changed while it was read; run again")


@contextmanager
def naming(path: str) -> Iterator[None]:
    """A context that converts errors from the system and from decompressors to FileErrors with the
    path."""
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

        if isinstance(e, BadGzipFile):  # its message may contain bytes of the file
            raise FileError(f"{path}: not valid gzip data") from None
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


_IN = 4096  # bytes to decompress at a time; four bytes of zstd can become 128 KB
_WINDOW_LOG = LIMIT.bit_length() - 1  # limits a zstd decompressor's window to LIMIT bytes


class _Format(NamedTuple):
    """A compression format whose files are sequences of frames.

    Attributes:
        new: creates an object that decompresses one frame.
        error: the exception that such an object raises.
        tool: a command that decompresses files for which ggtok's memory limit is too low.
        padding: a byte that may occur between frames.
    """

    name: str
    new: Callable[[], Any]
    error: type[Exception]
    tool: str
    padding: bytes = b""


def decompressor(path: str, compression: str, file: Any) -> Any:
    """Returns an object that reads an open file, and decompresses it if it is compressed."""
    if not compression:
        return file
    if compression == ".gz":
        import gzip

        return gzip.GzipFile(fileobj=file, mode="rb")
    return _Frames(path, file, {".bz2": _bz2, ".xz": _xz, ".zst": _zstd}[compression]())


class _Frames:
    def __init__(self, path: str, file: Any, format: _Format) -> None:
        self._path, self._file, self._format = path, file, format
        self._frame: Any = None  # the decompressor of an unfinished frame
        self._rest = b""  # input after the end of the last frame

    def read(self, n: int) -> bytes:
        """Returns about n decompressed bytes, or b"" at the end."""
        parts, have = [], 0
        while have < n:
            data = self._compressed()
            if data is None:
                break
            part = self._decompressed(data, n - have)
            if part:
                parts.append(part)
                have += len(part)
        return b"".join(parts)

    def _compressed(self) -> bytes | None:
        """Returns the next input for the decompressor: b"" if it needs none, or None at the end."""
        if self._frame is not None and not getattr(self._frame, "needs_input", True):
            return b""
        while data := self._rest or self._file.read(_IN):
            self._rest = b""
            if self._frame is None and self._format.padding:
                data = data.lstrip(self._format.padding)
            if data:
                return data
        if self._frame is not None:
            raise EOFError
        return None

    def _decompressed(self, data: bytes, most: int) -> bytes:
        try:
            if self._frame is None:
                self._frame = self._format.new()
            # zstandard's object lacks needs_input, and always returns all its output.
            bounded = hasattr(self._frame, "needs_input")
            part: bytes = self._frame.decompress(data, *([most] if bounded else []))
        except (self._format.error, ValueError) as e:
            raise self._fault(e) from None
        if self._frame.eof:
            self._rest, self._frame = self._frame.unused_data, None
        return part

    def _fault(self, error: Exception) -> FileError:
        if "memory" in str(error).lower():
            return FileError(
                f"{self._path}: needs more than {LIMIT >> 20} MiB of memory to decompress, the "
                f"limit; decompress it with '{self._format.tool}'"
            )
        return FileError(f"{self._path}: not valid {self._format.name} data: {error}")


def _bz2() -> _Format:
    import bz2

    return _Format("bz2", bz2.BZ2Decompressor, OSError, "bzip2 -d")


def _xz() -> _Format:
    import lzma

    new = partial(lzma.LZMADecompressor, memlimit=LIMIT)
    return _Format("xz", new, lzma.LZMAError, "xz -d", b"\0")


def _zstd() -> _Format:
    """Returns zstd's format, with the standard library (Python 3.14) or the package zstandard."""
    tool = "zstd -d --long=31"
    try:
        from compression import zstd  # type: ignore[import-not-found,unused-ignore]

        options = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        new = partial(zstd.ZstdDecompressor, options=options)
        return _Format("zstd", new, zstd.ZstdError, tool)
    except ImportError:
        pass
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError(
            "a .zst file needs the package zstandard: run 'pip install \"ggtok[zstd]\"'"
        ) from None
    made = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG)
    return _Format("zstd", made.decompressobj, zstandard.ZstdError, tool)
