"""Unfinished files: data is appended to them, they can be truncated, and the CRC-32 of their
contents is kept up to date."""

from __future__ import annotations

import contextlib
import os
import zlib
from typing import Any, BinaryIO, NamedTuple

from ggtok.base import files
from ggtok.errors import FileError, file_error

_BLOCK = 4 << 20  # bytes to read at a time


class Extent(NamedTuple):
    """A file's first `size` bytes, and their CRC-32."""

    size: int = 0
    crc: int = 0


def partial_of(path: str) -> str:
    """Returns the name that a file has while it is unfinished."""
    return files.follow_link(path) + ".partial"


def give_name(path: str) -> None:
    """Renames the finished ``PATH.partial`` to ``PATH``."""
    try:
        files.give_name(partial_of(path), files.follow_link(path))
    except FileNotFoundError:
        raise file_error(2, "is missing", partial_of(path)) from None
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


class PartialFile:
    """The file ``PATH.partial``, which is renamed to ``PATH`` when it is finished.

    If ``PATH`` is a symbolic link, its target is replaced. ``PATH.partial`` is never a link.
    The CRC-32 covers the bytes after a header of `header` bytes, which is rewritten at the end.
    `output` is the output to which a working file belongs; by default, ``PATH``. If the output
    exists, a new ``PATH.partial`` is private until it is renamed.
    """

    def __init__(self, path: str, header: int = 0, *, output: str | None = None) -> None:
        self.path = path
        self._output = output or path
        self.partial = partial_of(path)
        self.extent = self._start = Extent(header)
        self._since = self._start  # the extent at the last checkpoint
        self.header_crc = 0
        self._file: Any = None

    @property
    def header(self) -> int:
        return self._start.size

    def create(self) -> None:
        """Creates the file, after removing an older one."""
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.partial)
        except OSError as e:
            raise self._named(e) from None
        self._open(os.O_CREAT | os.O_EXCL)
        self.patch(bytes(self._start.size))

    def reopen(self, state: tuple[int, int, int, int]) -> None:
        """Continues from a checkpoint. Checks the CRC-32 of the data that was written after the
        previous checkpoint; older data had already been synced by then."""
        extent, (size, crc) = Extent(*state[:2]), state[2:]
        self._open(0)
        try:
            if os.fstat(self._file.fileno()).st_size < extent.size:
                raise self._damaged()
            self._file.seek(size)
            while size < extent.size:
                block = self._file.read(min(_BLOCK, extent.size - size))
                size, crc = size + len(block), zlib.crc32(block, crc)
            if crc != extent.crc:
                raise self._damaged()
            self.cut(extent)
            self.trim()
            self._since = extent
        except OSError as e:
            raise self._named(e) from None

    def state(self) -> tuple[int, int, int, int]:
        """Returns the file's state for a checkpoint; call it after :meth:`sync`."""
        state = *self.extent, *self._since
        self._since = self.extent
        return state

    def append(self, data: Any) -> None:
        view = memoryview(data)
        if not view.nbytes:  # cast() fails for an empty view
            return
        view = view.cast("B")
        size, crc = self.extent
        try:
            left = view
            while left:
                left = left[self._file.write(left) :]
        except OSError as e:
            raise self._named(e) from None
        self.extent = Extent(size + len(view), zlib.crc32(view, crc))

    def cut(self, extent: Extent) -> None:
        """Makes the file continue after `extent`. Data beyond `extent` no longer counts, but stays
        in the file until :meth:`trim`."""
        self._file.seek(extent.size)
        self.extent = extent
        self._since = min(self._since, extent)

    def trim(self) -> None:
        """Removes the data after the extent from the file."""
        self._file.truncate(self.extent.size)

    def patch(self, data: bytes) -> None:
        """Writes the header."""
        self.header_crc = zlib.crc32(data)
        self._file.seek(0)
        self._file.write(data)
        self._file.seek(self.extent.size)

    def sync(self) -> None:
        """Syncs the data to the disk."""
        try:
            getattr(os, "fdatasync", os.fsync)(self._file.fileno())
        except OSError as e:
            raise self._named(e) from None

    def written(self) -> BinaryIO:
        """Opens the unfinished file for reading."""
        return files.open_regular(self.partial, follow=False)

    def give_name(self) -> None:
        """Renames the complete ``PATH.partial`` to ``PATH``."""
        give_name(self.path)

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _open(self, flags: int) -> None:
        try:
            private = os.path.exists(self._output)
            handle = files.open_own(self.partial, flags | os.O_RDWR, private=private)
            self._file = os.fdopen(handle, "r+b", buffering=0)
        except OSError as e:
            raise self._named(e) from None

    def _named(self, e: OSError) -> OSError:
        if isinstance(e, FileError):
            return e
        return file_error(e.errno or 0, e.strerror or str(e), self.partial)

    def _damaged(self) -> FileError:
        return FileError(
            f"{self.partial}: has changed since the last checkpoint, so the run can't be resumed; "
            "resume=False (--restart) starts over"
        )
