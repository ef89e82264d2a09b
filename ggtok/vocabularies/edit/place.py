"""Writes a new header to a file, so that an interruption never loses anything.

In place: the old header is first saved next to the file, as ``NAME.ggtok-journal``, and synced;
then the new header is written and synced; then the journal is renamed to ``NAME.ggtok-undo``. If
the process ends in between, the journal still exists, and :func:`recover` restores the old header.
A writer holds a lock on the file, so if the file isn't locked, a journal means that an edit was
interrupted.

As a new file: the header and the tensors' data are written to a temporary file in the same folder,
which is synced and then renamed.

A journal consists of a line with its version, a line of JSON (the file's size, the old header's
size, and SHA-256 of the old and the new header), the old header, and the SHA-256 of all of this.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple

from ggtok.base.files import (
    check_regular,
    followed,
    give_name,
    open_own,
    read_regular,
    read_up_to,
)
from ggtok.errors import FileError, InvalidValueError, file_error
from ggtok.loading.loaded import JOURNAL

if TYPE_CHECKING:
    from ggtok.vocabularies.edit.header import Header

UNDO = ".ggtok-undo"
_MAGIC = b"ggtok-journal 1\n"
_BLOCK = 1 << 20
_MOST_HEADER = 1 << 30  # bytes in the largest header that can be saved
_HASH = 32


Locked = contextlib.AbstractContextManager[BinaryIO]


class Saved(NamedTuple):
    """A saved header: the old header up to the tensors' data, the file's size at that time, and the
    SHA-256 and size of the header that replaced it."""

    old: bytes
    file_size: int
    new_hash: str
    new_size: int


def write_in_place(file: BinaryIO, path: str, old: bytes, new: bytes) -> None:
    """Replaces the header of a locked file by a header of the same size."""
    assert len(old) == len(new)
    save(path, JOURNAL, old, new, size_of(file))
    _write_at_start(file, new)
    os.replace(path + JOURNAL, path + UNDO)
    _sync_folder(path)


def write_new(file: BinaryIO, header: Header, new: bytes, out: str, *, undo: bool) -> None:
    """Writes a file with a new header and the data of a source file. The new file gets its name
    when it is complete. If `undo` is set, it replaces the source, and the source's header is saved.

    Raises:
        FileError: the file can't be written, for example because the disk is full, or the source
            has changed.
    """
    out = followed(out)
    with _written(file, header.data_offset, new, out):
        if undo:
            file.seek(0)
            save(out, UNDO, file.read(header.data_offset), new, size_of(file))


def restore(file: BinaryIO, path: str) -> None:
    """Writes the saved header back into a locked file.

    Raises:
        FileError: no header is saved, or the file's header has changed since the edit.
    """
    if not os.path.lexists(path + UNDO):
        raise FileError(f"{path}: nothing to undo: there is no {path}{UNDO}")
    saved = load_saved(path + UNDO)
    file.seek(0)
    new = b"" if saved is None else read_up_to(file, saved.new_size)
    if saved is None or hashlib.sha256(new).hexdigest() != saved.new_hash:
        raise FileError(
            f"{path} isn't as the edit left it, so the header in {path}{UNDO} isn't restored"
        )
    if len(new) == len(saved.old) and size_of(file) == saved.file_size:
        save(path, JOURNAL, new, saved.old, saved.file_size)
        _write_at_start(file, saved.old)
        os.unlink(path + JOURNAL)
        os.unlink(path + UNDO)
        _sync_folder(path)
        return
    with _written(file, saved.new_size, saved.old, path):
        pass
    os.unlink(path + UNDO)


def size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


def save(path: str, extension: str, old: bytes, new: bytes, file_size: int) -> None:
    """Saves the old header next to a file, completely or not at all."""
    fields = {
        "file_size": file_size,
        "header": len(old),
        "old": hashlib.sha256(old).hexdigest(),
        "new": hashlib.sha256(new).hexdigest(),
        "new_size": len(new),
    }
    data = b"".join([_MAGIC, json.dumps(fields).encode(), b"\n", old])
    data += hashlib.sha256(data).digest()
    with temporary(path) as (written, file):
        file.write(data)
        _sync(file)
        os.replace(written, path + extension)
    _sync_folder(path)


def load_saved(path: str) -> Saved | None:
    """Returns the header saved in a journal, or None if the journal is incomplete or damaged."""
    data = read_regular(path, _MOST_HEADER)
    body, digest = data[:-_HASH], data[-_HASH:]
    if not body.startswith(_MAGIC) or hashlib.sha256(body).digest() != digest:
        return None
    line, _, old = body[len(_MAGIC) :].partition(b"\n")
    fields = json.loads(line)
    return Saved(old, fields["file_size"], fields["new"], fields["new_size"])


def recover(path: str) -> bool:
    """Restores the header of a file if an edit was interrupted; returns whether that was the case.

    Raises:
        FileError: the file is being edited now, or the journal or the file is damaged.
    """
    path = followed(os.path.abspath(path))
    if not os.path.lexists(path + JOURNAL):
        return False
    with locked(path) as file:
        if not os.path.lexists(path + JOURNAL):  # the edit has ended in the meantime
            return False
        saved = load_saved(path + JOURNAL)
        if saved is None:
            raise FileError(
                f"{path}{JOURNAL} is damaged, so an interrupted edit of {path} can't be undone: "
                "compare the file with its source, then delete the journal"
            )
        if os.fstat(file.fileno()).st_size != saved.file_size:
            raise FileError(
                f"{path} has changed its size since an edit was interrupted: if the file was "
                f"replaced, delete {path}{JOURNAL}"
            )
        _write_at_start(file, saved.old)
        os.unlink(path + JOURNAL)
        _sync_folder(path)
    return True


@contextlib.contextmanager
def _written(source: BinaryIO, data_offset: int, header: bytes, out: str) -> Iterator[None]:
    """A context that begins by writing a temporary file with this header and the source's data, and
    ends by renaming that file to `out`."""
    before = os.fstat(source.fileno())
    size = max(0, before.st_size - data_offset)
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(out))).free
    if free < size + len(header):
        raise FileError(
            f"{out}: a new file takes {size + len(header):,} bytes, but only {free:,} are free"
        )
    with temporary(out) as (written, file):
        file.write(header)
        file.flush()
        _copy(source, data_offset, size, file)
        after = os.fstat(source.fileno())
        if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
            raise FileError(f"{source.name} changed while it was copied: try again")
        _sync(file)
        yield
        give_name(written, out)
    _sync_folder(out)


@contextlib.contextmanager
def locked(path: str) -> Iterator[BinaryIO]:
    """Opens the file for reading and writing, locked against other edits."""
    try:
        file = open(path, "r+b", buffering=0)  # noqa: SIM115  # closed below
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    with file:
        check_regular(os.fstat(file.fileno()), path)
        try:
            import fcntl
        except ImportError:  # Windows itself refuses to replace an open file
            yield file
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(f"{path} is being edited by another process") from None
        if not _has_name(file, path):
            raise FileError(f"{path} was replaced while it was opened: try again")
        yield file


def _has_name(file: BinaryIO, path: str) -> bool:
    """Whether `path` still names the open file. Another edit may have replaced the file."""
    try:
        return os.path.samestat(os.fstat(file.fileno()), os.stat(path))
    except OSError:
        return False


@contextlib.contextmanager
def temporary(path: str) -> Iterator[tuple[str, BinaryIO]]:
    """Creates a file in the folder of `path`, and yields its name and the file, open for writing.
    The file is deleted at the end unless it has been renamed."""
    written = os.path.join(os.path.dirname(path), f".ggtok-{secrets.token_hex(8)}")
    try:
        handle = open_own(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
        try:
            with os.fdopen(handle, "wb") as file:
                yield written, file
        finally:
            with contextlib.suppress(OSError):
                os.unlink(written)
    except OSError as e:
        if isinstance(e, FileError):
            raise
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None


def check_in_place(path: str) -> None:
    """Raises InvalidValueError for files that belong to a store, or have several hard links, and
    FileError for missing files, folders and devices."""
    try:
        status = os.stat(path)
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), path) from None
    check_regular(status, path)
    parts = path.replace(os.sep, "/").split("/")
    name = parts[-1]
    reason = None
    if "blobs" in parts and name.startswith(("sha256-", "sha256:")):
        reason = (
            "is a blob of Ollama's, which is named by its contents and may belong to many models"
        )
    elif any(part.startswith("models--") for part in parts) and (
        "blobs" in parts or "snapshots" in parts
    ):
        reason = "is in the cache of the Hugging Face Hub, which would no longer match its source"
    elif status.st_nlink > 1:
        reason = "has several names (hard links), all of which would change"
    if reason is not None:
        raise InvalidValueError(f"{path} {reason}: write a new file instead")


def _write_at_start(file: BinaryIO, header: bytes) -> None:
    try:
        file.seek(0)
        left = memoryview(header)
        while left:
            left = left[file.write(left) or 0 :]
        _sync(file)
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), file.name) from None


def _copy(source: BinaryIO, at: int, size: int, to: BinaryIO) -> None:
    """Appends a file's bytes to another file, in the kernel if possible."""
    source.seek(at)
    for copy in (_copy_range, _send):
        while size:
            try:
                copied = copy(source.fileno(), to.fileno(), size)
            except (OSError, AttributeError) as e:
                if isinstance(e, OSError) and e.errno in (errno.ENOSPC, errno.EIO, errno.EDQUOT):
                    raise
                break  # unsupported for these files, or on this system
            if not copied:
                break
            size -= copied
    while size:
        block = source.read(min(size, _BLOCK))
        if not block:
            raise FileError(f"{source.name} became shorter while it was copied")
        to.write(block)
        size -= len(block)


def _copy_range(source: int, to: int, size: int) -> int:
    return os.copy_file_range(source, to, min(size, 1 << 30))


def _send(source: int, to: int, size: int) -> int:
    return os.sendfile(to, source, None, min(size, 1 << 30))


def _sync(file: Any) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_folder(path: str) -> None:
    with contextlib.suppress(OSError):  # not every file system supports this
        handle = os.open(os.path.dirname(path) or ".", os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
