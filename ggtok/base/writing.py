"""Every file that ggtok writes for its caller gets its contents, or its name, here.

What was there before is somebody's. A symbolic link is followed; a device or FIFO is written to
where the format allows that, and never replaced; the source of what is written is refused, and
so is a file of another format unless the caller insists. What is replaced keeps its mode.
"""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterable
from typing import NamedTuple

from ggtok.base.reading import read_regular
from ggtok.errors import InvalidValueError, file_error, not_found

_HEAD = 4096  # bytes of a file that tell its format


class Kind(NamedTuple):
    """A format of files that are written in one step.

    Attributes:
        name: with its article, for messages.
        begins: whether a file with these first bytes has the format.
    """

    name: str
    begins: Callable[[bytes], object]


def write(
    path: str, data: bytes, kind: Kind, *, inputs: Iterable[str] = (), force: bool = False
) -> None:
    """Writes a file whole or not at all.

    Raises:
        InvalidValueError: `path` is one of `inputs`, or holds another format and not `force`.
        FileError: it can't be written.
    """
    status = check(path, kind, inputs=inputs, force=force)
    try:
        if status is not None and not stat.S_ISREG(status.st_mode):
            _stream(path, data)
        else:
            _replace(path, data, status)
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


def check(
    path: str, kind: Kind, *, inputs: Iterable[str] = (), force: bool = False
) -> os.stat_result | None:
    """Refuses what :func:`write` would refuse; the status of what is there, if anything is."""
    status = existing(path)
    if status is None:
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
        raise InvalidValueError(f"{path}: exists and is not {kind.name}; force=True writes over it")
    return status


def existing(path: str) -> os.stat_result | None:
    """The status of what a path leads to; None: nothing yet, and a file can be made there."""
    try:
        return os.stat(path)
    except FileNotFoundError:
        folder = os.path.dirname(followed(path))
        if folder and not os.path.isdir(folder):
            raise not_found(f"{path}: the folder {folder} doesn't exist") from None
        return None
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    except ValueError as e:  # a NUL
        raise InvalidValueError(f"{path!r}: {e}") from None


def check_input(path: str, inputs: Iterable[str]) -> None:
    """Refuses an output that is one of the files it is made from."""
    for each in inputs:
        try:
            same = os.path.samefile(each, path)
        except (OSError, ValueError):  # it is gone, or no path
            continue
        if same:
            raise InvalidValueError(f"{path} is the source itself: give another name")


def followed(path: str) -> str:
    """The path of the file that a symbolic link leads to; of any other, the path itself."""
    return os.path.realpath(path) if os.path.islink(path) else path


def give_name(written: str, path: str) -> None:
    """Renames a finished file, which gets the mode and owner of the one that it replaces."""
    with contextlib.suppress(FileNotFoundError):
        _keep(written, os.stat(path))
    os.replace(written, path)


def _replace(path: str, data: bytes, status: os.stat_result | None) -> None:
    target = followed(path)
    written = os.path.join(os.path.dirname(target), f".ggtok-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Until it has the mode of the file that it replaces, nobody else may read it.
    handle = os.open(written, flags, 0o666 if status is None else 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        give_name(written, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(written)
        raise


def _keep(path: str, status: os.stat_result) -> None:
    if hasattr(os, "chown"):
        with contextlib.suppress(OSError):  # another user's, which only root may give
            os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))


def _stream(path: str, data: bytes) -> None:
    # Not created and not truncated, should it have become a regular file meanwhile.
    with open(os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise file_error(errno.EAGAIN, "changed while it was opened; not written to", path)
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]
