"""Reads the beginning of a GGUF file: the metadata, and the descriptions of its tensors.

The size of the metadata isn't known in advance. Given the bytes read so far,
``ggtok_metadata_size`` returns the least number of bytes needed. If there is a path, the C library
reads the file itself. For other sources, a reader appends to :attr:`Prefix.data` until
:meth:`Prefix.wanted` returns 0.
"""

from __future__ import annotations

import contextlib
import os
import re
from typing import Any, BinaryIO

from ggtok.base.escape import printable
from ggtok.errors import FileError, GGUFError, InvalidTypeError, InvalidValueError
from ggtok.native import metadata_size
from ggtok.native.gguf import FileHeader

# The number of bytes in the first read, enough for most of a small vocabulary.
FIRST = 1 << 20
# The most bytes that a read may request in addition to the bytes that are known to be needed.
# Together with the overhead of requests and responses, this is less than 2 MB.
STEP = 7 << 18
# The most bytes to cache after a remote file's metadata: descriptions of its first tensors.
TENSORS = 64 << 10

LIMIT_VARIABLE = "GGTOK_METADATA_LIMIT"
LIMIT = 256 << 20


def environment_number(variable: str, default: int) -> int:
    """Returns the number of bytes or seconds in an environment variable."""
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,18}", text):
        raise InvalidValueError(
            f"{variable} must be a number, not '{printable(text, 40)}' (at most 18 digits)"
        )
    return int(text)


class Prefix:
    """The first bytes of a file.

    Attributes:
        data: the bytes read so far, from the file's start.
        file_size: the size of the file in bytes, or None while unknown.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.data = bytearray()
        self.file_size: int | None = None
        self._limit = environment_number(LIMIT_VARIABLE, LIMIT)

    def size(self) -> int:
        """Returns the metadata's size if `data` has all of it, else the least number of bytes to
        read.

        Raises:
            GGUFError: the file isn't a GGUF file, or ends too early.
            FileError: the metadata is larger than GGTOK_METADATA_LIMIT (default: 256 MiB).
        """
        size = metadata_size(self.data, self.file_size, self.name)
        if size > self._limit:
            raise FileError(
                f"{self.name}: the metadata takes more than {self._limit} bytes; set "
                f"{LIMIT_VARIABLE} to allow more"
            )
        return size

    def wanted(self) -> int:
        """Returns the size that `data` should have after the next read, or 0 if the metadata is
        complete."""
        size = self.size()
        have = len(self.data)
        if size <= have:
            return 0
        wanted = max(size, have + STEP if have else FIRST)
        return wanted if self.file_size is None else min(wanted, self.file_size)

    def whole(self, more: int = 0) -> bytes:
        """Returns the metadata, and up to `more` of the bytes read after it."""
        return bytes(memoryview(self.data)[: self.size() + more])


def read_file(file: Any, path: str | None = None) -> bytes:
    """Reads metadata from an object with ``read(n)``, starting at its current position.

    Up to a few MB after the metadata may also be consumed.

    Args:
        path: the file's name for error messages, if it isn't ``file.name``.
    """
    name = getattr(file, "name", None) if path is None else path
    name = "the open file" if name is None or isinstance(name, int) else printable(str(name))
    prefix = Prefix(name)
    while wanted := prefix.wanted():
        try:
            block = file.read(wanted - len(prefix.data))
        except OSError as e:
            raise FileError(f"{name}: {e}") from e
        except UnicodeDecodeError:
            block = ""  # the file is open in text mode
        except ValueError as e:  # the file is closed
            raise InvalidValueError(f"{name}: {e}") from None
        if isinstance(block, str):
            raise InvalidTypeError("source: the file must be opened for bytes: open(path, 'rb')")
        if block is None:
            raise FileError(f"{name}: no bytes to read yet: the file must be in blocking mode")
        if not block:  # the end of the file: size() raises an error if it is too short
            prefix.file_size = len(prefix.data)
        prefix.data += block
    return prefix.whole()


# ---- files that are cut off ----

_TENSORS = 4 << 20  # the most bytes to read of the tensor descriptions


def fill(file: BinaryIO, data: bytearray, n: int) -> None:
    """Reads until `data` has the file's first n bytes."""
    while len(data) < n:
        block = file.read(n - len(data))
        if not block:
            raise GGUFError("the file became shorter while it was read")
        data += block


def check_whole(file: BinaryIO, data: bytearray, size: int, name: str) -> None:
    """Checks that a file doesn't end before its last tensor begins.

    Args:
        data: the file's first bytes, to which more are appended as needed.

    Raises:
        GGUFError: the file is cut off.
    """
    while (end := metadata_size(data, size, name)) > len(data):
        if end > environment_number(LIMIT_VARIABLE, LIMIT):
            return
        fill(file, data, end)
    fill(file, data, min(end + _TENSORS, size))
    header = FileHeader(bytes(data), name)
    cut_off = len(data) == size  # used if not all descriptions were read, or one is malformed
    with contextlib.suppress(GGUFError):
        tensors, table_end = header.tensors()
        if table_end <= len(data):
            last_begin = max((tensor.offset for tensor in tensors), default=-1)
            cut_off = table_end + last_begin + 1 > size
    if cut_off:
        raise GGUFError(
            f"the file is cut off: it has {size} bytes, and its tensors take more; its download "
            "was probably interrupted: download it again"
        )
