"""Compressed files, read in a bounded amount of memory."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from ggtok.corpora.documents import LIMIT
from ggtok.errors import FileError, MissingExtraError

_IN = 4096  # bytes that are decompressed at a time: of zstd, four can become 128 KB
_WINDOW_LOG = LIMIT.bit_length() - 1  # of the decompressed data that a decompressor looks back at


class _Format(NamedTuple):
    """A format whose files are frames, one after the other.

    Attributes:
        new: makes an object that decompresses one frame.
        error: what that raises.
        tool: a command that decompresses what takes more memory.
        padding: what may stand between frames.
    """

    name: str
    new: Callable[[], Any]
    error: type[Exception]
    tool: str
    padding: bytes = b""


def decompressor(path: str, compression: str, file: Any) -> Any:
    """What reads an open file's bytes as they were before their compression, if any."""
    if not compression:
        return file
    if compression == ".gz":
        import gzip

        return gzip.GzipFile(fileobj=file, mode="rb")
    return _Frames(path, file, {".bz2": _bz2, ".xz": _xz, ".zst": _zstd}[compression]())


class _Frames:
    def __init__(self, path: str, file: Any, format: _Format) -> None:
        self._path, self._file, self._format = path, file, format
        self._frame: Any = None  # the frame that began and hasn't ended
        self._rest = b""  # what follows a frame's end

    def read(self, n: int) -> bytes:
        """About n bytes; none at the end."""
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
        """What comes next; None: nothing."""
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
            # zstandard's object, which lacks needs_input, gives all that there is.
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
                f"{self._path}: takes more than {LIMIT >> 20} MiB of memory to decompress, the "
                f"most that is used: decompress it with '{self._format.tool}'"
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
    """By the standard library (Python 3.14) or the package zstandard."""
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
