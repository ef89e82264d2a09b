"""Opens and writes files.

Reading: a path that ggtok itself found (in a store, cache or folder, or next to another file) may
turn out to be a FIFO without a writer, an endless device, or a link to either. The functions here
open only regular files, and never block. A path from the caller may be any kind of file, and is
opened with ``open``.

Writing: every file that ggtok produces for its caller is written or renamed here. An existing file
belongs to the user, so symbolic links are followed; devices and FIFOs are written to if the format
allows it, but never replaced; an input is never overwritten, nor is a file in another format
unless the caller passes `force`. A new file takes over the mode of the file that it replaces, and
is private until then. :func:`open_own` creates every file.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable, Iterator
from typing import BinaryIO, NamedTuple

from ggtok.errors import (
    FileError,
    InvalidValueError,
    file_error,
    not_found,
)

# ---- reading ----

SNIFFED = 8000  # bytes at a file's start; as in git, a NUL among them means a binary file

# Windows has only the first of these flags. Without O_NONBLOCK, opening a FIFO blocks.
_OPEN_FLAGS = 0
for _name in ("O_BINARY", "O_CLOEXEC", "O_NOCTTY", "O_NONBLOCK"):
    _OPEN_FLAGS |= getattr(os, _name, 0)
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
        handle = _open_regular(name, os.O_RDONLY, follow)
    except FileError:
        raise
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), name) from None
    return os.fdopen(handle, "rb", buffering=0)


def open_own(path: str, flags: int, *, private: bool = False) -> int:
    """Opens or creates one of ggtok's own files, and returns its file descriptor.

    The file must be a regular file, not a symbolic link.

    Args:
        private: whether only the owner may read and write the file if it is created. Otherwise, the
            umask decides.

    Raises:
        OSError: ``os.open`` failed.
        FileError: the path is a link or another kind of file.
    """
    return _open_regular(path, flags, follow=False, mode=0o600 if private else 0o666)


def _open_regular(path: str, flags: int, follow: bool, mode: int = 0o600) -> int:
    if not follow and not _NO_FOLLOW and os.path.islink(path):
        raise file_error(errno.ELOOP, "a symbolic link", path)
    handle = os.open(path, flags | _OPEN_FLAGS | (0 if follow else _NO_FOLLOW), mode)
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
    """Returns at most the first `most` bytes of a regular file."""
    with open_regular(path) as file:
        try:
            return read_up_to(file, most)
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), os.fspath(path)) from None


def read_up_to(file: BinaryIO, most: int) -> bytes:
    """Returns at most the next `most` bytes of an open file."""
    parts: list[bytes] = []
    while most and (part := file.read(min(most, _BLOCK))):
        parts.append(part)
        most -= len(part)
    return b"".join(parts)


_BLOCK = 1 << 20  # bytes to request per call to read(), which allocates that many


# ---- writing ----

_HEAD = 4096  # bytes at the start of a file that are examined to recognize its format


class FileFormat(NamedTuple):
    """A format of files that are written in one step.

    Attributes:
        name: the format's name for messages, with an article.
        begins: a function that tests whether a file with these first bytes has this format.
    """

    name: str
    begins: Callable[[bytes], object]


def write(
    path: str, data: bytes, kind: FileFormat, *, inputs: Iterable[str] = (), force: bool = False
) -> None:
    """Writes a file completely or not at all.

    Raises:
        InvalidValueError: `path` is one of `inputs`, or a file in another format and `force` is
            false.
        FileError: the file can't be written.
    """
    status = check_target(path, kind, inputs=inputs, force=force)
    try:
        if status is not None and not stat.S_ISREG(status.st_mode):
            _stream(path, data)
        else:
            target = follow_link(path)
            with temporary(target) as (written, file):
                file.write(data)
                file.close()
                give_name(written, target)
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


def check_target(
    path: str, kind: FileFormat, *, inputs: Iterable[str] = (), force: bool = False
) -> os.stat_result | None:
    """Raises the errors of :func:`write` in advance. Returns the status of the file at `path`, or
    None if there is none."""
    status = status_of(path)
    if status is None:
        folder = os.path.dirname(follow_link(path)) or os.curdir
        if not os.access(folder, os.W_OK):
            raise file_error(errno.EACCES, os.strerror(errno.EACCES), path)
        return None
    check_input(path, inputs)
    if stat.S_ISDIR(status.st_mode):
        raise file_error(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not stat.S_ISREG(status.st_mode):
        if not (stat.S_ISCHR(status.st_mode) or stat.S_ISFIFO(status.st_mode)):
            raise file_error(errno.EINVAL, "neither a file nor a stream; not written to", path)
        return status
    if not os.access(path, os.W_OK):
        raise file_error(errno.EACCES, os.strerror(errno.EACCES), path)
    if status.st_size and not force and not kind.begins(read_regular(path, _HEAD)):
        raise InvalidValueError(
            f"{path}: exists and is not {kind.name}; force=True (--force) overwrites it"
        )
    return status


def status_of(path: str) -> os.stat_result | None:
    """Returns the status of the file at a path, or None if it doesn't exist but its folder does."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        folder = os.path.dirname(follow_link(path))
        if folder and not os.path.isdir(folder):
            raise not_found(f"{path}: the folder {folder} doesn't exist") from None
        return None
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    except ValueError as e:  # the path contains NUL
        raise InvalidValueError(f"{path!r}: {e}") from None


def check_input(path: str, inputs: Iterable[str]) -> None:
    """Raises InvalidValueError if the output is one of the input files."""
    for each in inputs:
        try:
            same = os.path.samefile(each, path)
        except (OSError, ValueError):  # `each` no longer exists, or isn't a path
            continue
        if same:
            raise InvalidValueError(f"{path} is the source itself: choose another name")


def follow_link(path: str) -> str:
    """Returns the target of a symbolic link, and any other path unchanged."""
    return os.path.realpath(path) if os.path.islink(path) else path


def give_name(written: str, path: str) -> None:
    """Renames a finished file, and gives it the mode and owner of the file that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        copy_owner_and_mode(written, os.stat(path))
    os.replace(written, path)


@contextlib.contextmanager
def temporary(path: str) -> Iterator[tuple[str, BinaryIO]]:
    """Creates a file in the folder of `path`, and yields its name and the file, open for writing.

    The file is private if `path` exists. It is deleted at the end unless it has been renamed.
    """
    written = os.path.join(os.path.dirname(path), f".ggtok-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    handle = open_own(written, flags, private=os.path.exists(path))
    try:
        with os.fdopen(handle, "wb") as file:
            yield written, file
    finally:
        with contextlib.suppress(OSError):
            os.unlink(written)


def sync_folder(path: str) -> None:
    """Syncs a file's folder, so that renaming survives a crash. Does nothing where the system or
    the file system can't do that."""
    try:
        folder = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
    except OSError:  # Windows can't open folders
        return
    try:
        with contextlib.suppress(OSError):
            os.fsync(folder)
    finally:
        os.close(folder)


def copy_owner_and_mode(path: str, status: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # only root may change the owner
            os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))


def _stream(path: str, data: bytes) -> None:
    # No O_CREAT or O_TRUNC, in case the path is a regular file by now.
    with open(os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise file_error(errno.EAGAIN, "changed while it was opened; not written to", path)
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]
