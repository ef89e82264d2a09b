"""Opens files that no caller named: entries of stores, caches and folders, and sibling files.

By the time that such a file is opened, it may be a FIFO without a writer, an endless device, or
a link to either. The functions here open only regular files, and never block. A path from the
caller may be any kind of file, and is opened with ``open``.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

from ggtok.errors import FileError, file_error

SNIFFED = 8000  # a NUL among these first bytes marks a binary file, as in git

# Windows has only O_BINARY. Without O_NONBLOCK, opening a FIFO blocks.
_FLAGS = 0
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):
    _FLAGS |= getattr(os, _name, 0)
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | bytes | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """Opens a regular file for reading, unbuffered.

    Args:
        follow: whether `path` may be a symbolic link.

    Raises:
        FileError: the file can't be opened, or isn't a regular file.
    """
    name = os.fsdecode(path)
    try:
        handle = _opened(name, os.O_RDONLY, follow)
    except FileError:
        raise
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), name) from None
    return os.fdopen(handle, "rb", buffering=0)


def open_own(path: str, flags: int) -> int:
    """Opens a private file of ggtok next to an output, and returns its file descriptor.

    It must be a regular file, not a symbolic link.

    Raises:
        OSError: ``os.open`` failed.
        FileError: it is another kind of file.
    """
    return _opened(path, flags, follow=False)


def _opened(path: str, flags: int, follow: bool) -> int:
    if not follow and not _NO_FOLLOW and os.path.islink(path):
        raise file_error(errno.ELOOP, "a symbolic link", path)
    handle = os.open(path, flags | _FLAGS | (0 if follow else _NO_FOLLOW), 0o666)
    try:
        check_regular(os.fstat(handle), path)
    except BaseException:
        os.close(handle)
        raise
    return handle


def check_regular(status: os.stat_result, name: str | bytes) -> None:
    """Raises FileError unless `status` is that of a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise file_error(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise file_error(errno.ESPIPE, "not a regular file", name)


def read_regular(path: str | bytes | os.PathLike[str], most: int) -> bytes:
    """At most the first `most` bytes of a regular file."""
    with open_regular(path) as file:
        try:
            return read_up_to(file, most)
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), os.fspath(path)) from None


def read_up_to(file: BinaryIO, most: int) -> bytes:
    """At most the next `most` bytes of an open file."""
    parts: list[bytes] = []
    while most and (part := file.read(min(most, _BLOCK))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


_BLOCK = 1 << 20  # bytes per call of read(), which allocates that many
