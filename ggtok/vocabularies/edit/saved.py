"""Saved headers: what :mod:`ggtok.vocabularies.edit.place` needs to restore a header.

``NAME.ggtok-journal`` exists while a header is written in place. ``NAME.ggtok-undo`` has the header
before the first edit in place, ``NAME.ggtok-undo-2`` the one before the second, and so on.

::

    magic | size of the file | size of the old and new header | SHA-256 of the new header
          | the old header   | the new header (journals only)  | SHA-256 of all of this

Anyone who can write to the folder may have written these files, so they only tell which valid
header to restore: see :func:`check_replaces`, :func:`check_interrupted` and :func:`_check_owner`.
"""

from __future__ import annotations

import hashlib
import io
import os
import re
import struct
from typing import BinaryIO, NamedTuple

from ggtok.base.files import copy_owner_and_mode, open_regular, read_up_to, sync_folder, temporary
from ggtok.errors import FileError, GGTokError, file_error
from ggtok.loading.loaded import JOURNAL
from ggtok.vocabularies.edit.header import Header

UNDO = ".ggtok-undo"
_NUMBER = re.compile(r"(?:-([1-9][0-9]{0,8}))?")
_MAGIC = b"ggtok-journal 2\n"
_FIELDS = struct.Struct("<QQQ32s")
_MOST_HEADER = 1 << 30  # bytes in the largest header that can be saved
_HASH = 32
_BLOCK = 4096


class Saved(NamedTuple):
    """A saved header.

    Attributes:
        old: the old header, up to the tensors' data.
        new: the new header if the file is a journal, else empty.
        file_size: the size of the file that had the old header.
        new_size, new_hash: the size and SHA-256 of the new header.
    """

    old: bytes
    new: bytes
    file_size: int
    new_size: int
    new_hash: bytes


def save_header(
    model: str, name: str, old: bytes, new: bytes, file_size: int, *, journal: bool = False
) -> None:
    """Saves the old header of a model as the file `name`, completely or not at all. The file gets
    the mode and owner of the model."""
    fields = _FIELDS.pack(file_size, len(old), len(new), hashlib.sha256(new).digest())
    parts = [_MAGIC, fields, old, new if journal else b""]
    digest = hashlib.sha256()
    try:
        with temporary(model) as (written, file):
            for part in parts:
                digest.update(part)
                file.write(part)
            file.write(digest.digest())
            sync(file)
            copy_owner_and_mode(written, os.stat(model))
            file.close()
            os.replace(written, name)
    except FileError:
        raise
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), name) from None
    sync_folder(name)


def load_header(name: str, model: os.stat_result) -> Saved | None:
    """Returns the header saved in a file, or None if the file is incomplete or damaged.

    Raises:
        FileError: the file can't be read, or belongs to another user.
    """
    with open_regular(name, follow=False) as file:
        try:
            status = os.fstat(file.fileno())
            _check_owner(name, status, model)
            start = read_up_to(file, len(_MAGIC) + _FIELDS.size)
            if not start.startswith(_MAGIC) or len(start) != len(_MAGIC) + _FIELDS.size:
                return None
            file_size, old_size, new_size, new_hash = _FIELDS.unpack_from(start, len(_MAGIC))
            left = status.st_size - len(start) - _HASH
            if old_size > _MOST_HEADER or left not in (old_size, old_size + new_size):
                return None
            old = read_up_to(file, old_size)
            new = read_up_to(file, min(left - old_size, _MOST_HEADER))
            digest = hashlib.sha256(start)
            digest.update(old)
            digest.update(new)
            if read_up_to(file, _HASH) != digest.digest():
                return None
        except FileError:
            raise
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), name) from None
    return Saved(old, new, file_size, new_size, new_hash)


def _check_owner(name: str, status: os.stat_result, model: os.stat_result) -> None:
    """Raises FileError if neither the model's owner, the current user nor root owns the file. In a
    folder in which others can create files, theirs aren't believed."""
    if status.st_uid not in (0, model.st_uid, getattr(os, "geteuid", int)()):
        raise FileError(f"{name} isn't used because another user owns it: delete it")


# ---- what a saved header may replace ----


def header_size(header: Header, file_size: int) -> int:
    """Returns the number of bytes before the tensors' data. A file that is cut off may end in the
    padding before the data."""
    return min(header.data_offset, file_size)


def check_replaces(saved: Saved, new: Header, name: str) -> None:
    """Raises FileError unless the old header is that of a GGUF file with the tensors of `new`."""
    try:
        header = Header(io.BytesIO(saved.old), name)
        valid = len(saved.old) == header_size(header, saved.file_size)
    except GGTokError:
        valid = False
    if not valid:
        raise FileError(f"{name} has no valid header, so nothing is restored: delete it")
    if header.tensors != new.tensors or header.alignment != new.alignment:
        raise FileError(f"{name} has another model's header, so nothing is restored: delete it")


def check_interrupted(saved: Saved, file: BinaryIO, name: str) -> None:
    """Raises FileError unless the file is in a state in which writing the new header over the old
    one leaves it: each of its bytes comes from either."""
    file.seek(0)
    for at in range(0, len(saved.old), _BLOCK):
        old, new = (data[at : at + _BLOCK] for data in (saved.old, saved.new))
        present = read_up_to(file, len(old))
        if present not in (old, new) and not _is_mixture(present, old, new):
            raise FileError(
                f"{file.name} has changed since an edit was interrupted: if the file was replaced, "
                f"delete {name}"
            )


def _is_mixture(present: bytes, old: bytes, new: bytes) -> bool:
    if not len(present) == len(old) == len(new):
        return False
    return all(p in pair for p, *pair in zip(present, old, new, strict=True))


# ---- undo files ----


def undo_files(path: str) -> list[tuple[int, str]]:
    """Returns the numbers and paths of a model's undo files, the latest first."""
    folder, prefix = os.path.dirname(path), os.path.basename(path) + UNDO
    found = []
    for name in os.listdir(folder or "."):
        number = _NUMBER.fullmatch(name[len(prefix) :]) if name.startswith(prefix) else None
        if number is not None:
            found.append((int(number[1] or 1), os.path.join(folder, name)))
    return sorted(found, reverse=True)


def next_undo_file(path: str) -> str:
    """Returns the name of the undo file for the next edit of a model."""
    number = max([0, *(number for number, _ in undo_files(path))]) + 1
    return path + UNDO + (f"-{number}" if number > 1 else "")


def journal_of(path: str) -> str:
    return path + JOURNAL


# ---- syncing ----


def sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())
