"""Writes or renames every file that ggtok produces for its caller.

An existing file belongs to the user. So symbolic links are followed; devices and FIFOs are
written to if the format allows it, but never replaced; a source of the output is never
overwritten, nor is a file of another format unless the caller passes `force`. A file that is
replaced keeps its mode.
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
from ggtok.errors import Argument, InvalidValueError, Wording, file_error, not_found

_HEAD = 4096  # bytes of a file that identify its format


class Kind(NamedTuple):
    """A file format, for files that are written in one step.

    Attributes:
        name: its name for messages, with an article.
        begins: whether a file with these first bytes has this format.
    """

    name: str
    begins: Callable[[bytes], object]


def write(
    path: str, data: bytes, kind: Kind, *, inputs: Iterable[str] = (), force: bool = False
) -> None:
    """Writes a file completely or not at all.

    Raises:
        InvalidValueError: `path` is one of `inputs`, or has another format and `force` is false.
        FileError: the file can't be written.
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
    """Raises the errors of :func:`write` in advance. Returns the status of an existing file."""
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
        raise InvalidValueError(
            Wording(
                f"{path}: exists and is not {kind.name}; ",
                *(Argument("force", True), " writes over it"),
            )
        )
    return status


def existing(path: str) -> os.stat_result | None:
    """The status of the file at a path; None: there is none, but it can be created."""
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
    """Raises InvalidValueError if the output is one of the input files."""
    for each in inputs:
        try:
            same = os.path.samefile(each, path)
        except (OSError, ValueError):  # `each` no longer exists, or isn't a path
            continue
        if same:
            raise InvalidValueError(f"{path} is the source itself: choose another name")


def followed(path: str) -> str:
    """The target of a symbolic link; any other path itself."""
    return os.path.realpath(path) if os.path.islink(path) else path


def give_name(written: str, path: str) -> None:
    """Renames a finished file, and gives it the mode and owner of the file it replaces."""
    with contextlib.suppress(FileNotFoundError):
        _keep(written, os.stat(path))
    os.replace(written, path)


def _replace(path: str, data: bytes, status: os.stat_result | None) -> None:
    target = followed(path)
    written = os.path.join(os.path.dirname(target), f".ggtok-{secrets.token_hex(8)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    # Private until it gets the mode of the file that it replaces.
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
        with contextlib.suppress(OSError):  # only root may change the owner
            os.chown(path, status.st_uid, status.st_gid)
    os.chmod(path, stat.S_IMODE(status.st_mode))


def _stream(path: str, data: bytes) -> None:
    # Without O_CREAT and O_TRUNC, in case it has become a regular file since.
    with open(os.open(path, os.O_WRONLY | getattr(os, "O_BINARY", 0)), "wb", buffering=0) as file:
        if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise file_error(errno.EAGAIN, "changed while it was opened; not written to", path)
        left = memoryview(data)
        while left:
            left = left[file.write(left) or 0 :]
