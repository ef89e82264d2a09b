"""Files that no caller named: entries of stores, caches and folders, files beside another.

Such a name may stand for anything by the time that it is opened: a FIFO without a writer, a
device without an end, a link to either. The functions here open regular files only and never
wait. A path that the caller gave may be any of these, and is opened by ``open``.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import BinaryIO

from ggtok.errors import FileError, file_error

SNIFFED = 8000  # bytes among which a NUL tells a binary file, as for git

# Windows has O_BINARY, and lacks the others. Without O_NONBLOCK, a FIFO would be waited for.
_FLAGS = 0
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):
    _FLAGS |= getattr(os, _name, 0)
_NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)


def open_regular(path: str | bytes | os.PathLike[str], *, follow: bool = True) -> BinaryIO:
    """A regular file, opened for reading, without a buffer.

    Args:
        follow: whether `path` may be a symbolic link.

    Raises:
        FileError: it can't be opened, or isn't a regular file.
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
    """A handle of a file that ggtok keeps for itself beside an output: a regular file, and no
    symbolic link to one.

    Raises:
        OSError: as of ``os.open``.
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
    """Refuses what isn't a regular file."""
    if stat.S_ISDIR(status.st_mode):
        raise file_error(errno.EISDIR, os.strerror(errno.EISDIR), name)
    if not stat.S_ISREG(status.st_mode):
        raise file_error(errno.ESPIPE, "not a regular file", name)


def read_regular(path: str | bytes | os.PathLike[str], most: int) -> bytes:
    """The first `most` bytes of a regular file, or all if it has fewer."""
    with open_regular(path) as file:
        try:
            return read_up_to(file, most)
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), os.fspath(path)) from None


def read_up_to(file: BinaryIO, most: int) -> bytes:
    """The next `most` bytes of an open file, or all if there are fewer."""
    parts: list[bytes] = []
    while most and (part := file.read(min(most, _BLOCK))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


_BLOCK = 1 << 20  # bytes that a call asks for, all of which it allocates
