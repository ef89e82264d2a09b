"""Writes a new header to a file, so that an interruption never loses anything.

In place: the old and the new header are first saved next to the file as a journal, and synced; then
the new header is written and synced; then the old header is saved as an undo file, and the journal
is deleted. If the process ends in between, the journal still exists, and :func:`recover` restores
the old header. A writer holds a lock on the file, so if the file isn't locked, a journal means that
an edit was interrupted.

As a new file: the header and the tensors' data are written to a temporary file in the same folder,
which is synced and then renamed.

:mod:`ggtok.vocabularies.edit.saved` has the format of journals and undo files. An interrupted edit
can leave an undo file whose edit never happened: the file's header isn't the one that it names, so
it is ignored.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import os
import shutil
from collections.abc import Iterator
from typing import BinaryIO

from ggtok.base.files import (
    check_regular,
    follow_link,
    give_name,
    read_up_to,
    sync_folder,
    temporary,
)
from ggtok.errors import FileError, GGTokError, InvalidValueError, file_error
from ggtok.vocabularies.edit.header import Header
from ggtok.vocabularies.edit.saved import (
    UNDO,
    Saved,
    check_interrupted,
    check_replaces,
    header_size,
    journal_of,
    load_header,
    next_undo_file,
    save_header,
    sync,
    undo_files,
)

_BLOCK = 1 << 20


Locked = contextlib.AbstractContextManager[BinaryIO]


def write_in_place(file: BinaryIO, path: str, old: bytes, new: bytes) -> None:
    """Replaces the header of a locked file by a header of the same size."""
    size = size_of(file)
    _overwrite(file, path, old, new, size)
    save_header(path, next_undo_file(path), old, new, size)
    _delete_journal(path)


def write_new(file: BinaryIO, header: Header, new: bytes, out: str, *, undo: bool) -> None:
    """Writes a file with a new header and the data of a source file. The new file gets its name
    when it is complete. If `undo` is set, it replaces the source, and the source's header is saved.

    Raises:
        FileError: the file can't be written, for example because the disk is full, or the source
            has changed.
    """
    out = follow_link(out)
    size = size_of(file)
    end = header_size(header, size)
    with _temporary_file(file, end, new, out):
        if undo:
            file.seek(0)
            save_header(out, next_undo_file(out), read_up_to(file, end), new, size)


def restore(file: BinaryIO, path: str) -> None:
    """Writes the header that the last edit saved back into a locked file.

    Raises:
        FileError: no header is saved, the saved header isn't valid, or the file's header has
            changed since the edit.
    """
    files = undo_files(path)
    if not files:
        raise FileError(f"{path}: nothing to undo: there is no {path}{UNDO}")
    name, saved = _last_edit(file, path, files)
    file.seek(0)
    header = Header(file, path)
    size = size_of(file)
    if saved.new_size != header_size(header, size):
        raise FileError(f"{name} doesn't fit the header of {path}, so nothing is restored")
    check_replaces(saved, header, name)
    if len(saved.old) == saved.new_size:
        file.seek(0)
        _overwrite(file, path, read_up_to(file, saved.new_size), saved.old, size)
        _delete_journal(path)
    else:
        with _temporary_file(file, saved.new_size, saved.old, path):
            pass
    for _, each in files:  # from the latest edit to the restored one
        os.unlink(each)
        if each == name:
            break
    sync_folder(path)


def _last_edit(file: BinaryIO, path: str, files: list[tuple[int, str]]) -> tuple[str, Saved]:
    """Returns the latest undo file of an edit that led to the file's present header."""
    status = os.fstat(file.fileno())
    for _, name in files:
        saved = load_header(name, status)
        if saved is None:
            continue
        file.seek(0)
        new = read_up_to(file, min(saved.new_size, status.st_size))
        size = status.st_size - len(new) + len(saved.old)
        if hashlib.sha256(new).digest() == saved.new_hash and size == saved.file_size:
            return name, saved
    raise FileError(
        f"{path} isn't as the edit left it, so the header in {files[0][1]} isn't restored"
    )


def recover(path: str) -> bool:
    """Restores the header of a file if an edit was interrupted; returns whether that was the case.

    Raises:
        FileError: the file is being edited now, or the journal or the file is damaged.
    """
    path = follow_link(os.path.abspath(path))
    journal = journal_of(path)
    if not os.path.lexists(journal):
        return False
    with open_locked(path) as file:
        if not os.path.lexists(journal):  # the edit has ended in the meantime
            return False
        saved = load_header(journal, os.fstat(file.fileno()))
        if saved is None or len(saved.old) != len(saved.new):
            raise FileError(
                f"{journal} is damaged, so an interrupted edit of {path} can't be undone: "
                "compare the file with its source, then delete the journal"
            )
        if size_of(file) != saved.file_size:
            raise FileError(
                f"{path} has changed its size since an edit was interrupted: if the file was "
                f"replaced, delete {journal}"
            )
        check_interrupted(saved, file, journal)
        check_replaces(saved, _journal_header(saved, journal), journal)
        _write_at_start(file, saved.old)
        _delete_journal(path)
    return True


def _journal_header(saved: Saved, name: str) -> Header:
    try:
        return Header(io.BytesIO(saved.new), name)
    except GGTokError:
        raise FileError(f"{name} has no valid header, so nothing is restored: delete it") from None


def _overwrite(file: BinaryIO, path: str, old: bytes, new: bytes, size: int) -> None:
    """Writes a header over one of the same size, while a journal has both."""
    save_header(path, journal_of(path), old, new, size, journal=True)
    _write_at_start(file, new)


def _delete_journal(path: str) -> None:
    os.unlink(journal_of(path))
    sync_folder(path)


def size_of(file: BinaryIO) -> int:
    return os.fstat(file.fileno()).st_size


@contextlib.contextmanager
def _temporary_file(source: BinaryIO, data_offset: int, header: bytes, out: str) -> Iterator[None]:
    """A context that begins by writing a temporary file with this header and the source's data, and
    ends by renaming that file to `out`."""
    before = os.fstat(source.fileno())
    size = max(0, before.st_size - data_offset)
    free = shutil.disk_usage(os.path.dirname(os.path.abspath(out))).free
    if free < size + len(header):
        raise FileError(
            f"{out}: a new file takes {size + len(header):,} bytes, but only {free:,} are free"
        )
    try:
        with temporary(out) as (written, file):
            file.write(header)
            file.flush()
            _copy(source, data_offset, size, file)
            after = os.fstat(source.fileno())
            if (before.st_size, before.st_mtime_ns) != (after.st_size, after.st_mtime_ns):
                raise FileError(f"{source.name} changed while it was copied: try again")
            sync(file)
            yield
            give_name(written, out)
    except FileError:
        raise
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), out) from None
    sync_folder(out)


@contextlib.contextmanager
def open_locked(path: str) -> Iterator[BinaryIO]:
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
        sync(file)
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
