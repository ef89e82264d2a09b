"""The beginning of a GGUF file, read until it holds all the metadata.

How much that is becomes known only on the way: ``ggtok_metadata_size`` says what is needed
at the least, given what was read. Whoever reads from anywhere but a path (which the C library
reads itself) appends to `data` until :meth:`Prefix.wanted` gives 0.
"""

from __future__ import annotations

import os
import re
from typing import Any

from ggtok.base.escape import shown
from ggtok.errors import FileError, InvalidTypeError, InvalidValueError
from ggtok.native import metadata_size

# Bytes of the first read; most of a small vocabulary.
FIRST = 1 << 20
# Bytes by which a read may go beyond what is known to be needed. Together with the
# parts of requests and answers that aren't the file, less than 2 MB too much.
STEP = 7 << 18
# Bytes after the metadata that are kept of a file elsewhere: descriptions of its first tensors.
TENSORS = 64 << 10

LIMIT_VARIABLE = "GGTOK_METADATA_LIMIT"
LIMIT = 256 << 20


def number(variable: str, default: int) -> int:
    """A number of bytes or seconds from the environment."""
    text = os.environ.get(variable, "")
    if not text:
        return default
    if not re.fullmatch("[0-9]{1,18}", text):
        raise InvalidValueError(
            f"{variable} must be a number, not '{shown(text, 40)}' (at most 18 digits)"
        )
    return int(text)


class Prefix:
    """The first bytes of a file.

    Attributes:
        data: what was read so far, from the file's start.
        file_size: the file's, once it is known.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.data = bytearray()
        self.file_size: int | None = None
        self._limit = number(LIMIT_VARIABLE, LIMIT)

    def size(self) -> int:
        """The metadata's size if `data` holds all of it, else how far to read at the least.

        Raises:
            GGUFError: it can't be a GGUF file, or the file ends too early.
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
        """How far to read next; 0: the metadata is whole."""
        size = self.size()
        have = len(self.data)
        if size <= have:
            return 0
        wanted = max(size, have + STEP if have else FIRST)
        return wanted if self.file_size is None else min(wanted, self.file_size)

    def whole(self, more: int = 0) -> bytes:
        """The metadata, and at most `more` bytes after it, as far as they have been read."""
        return bytes(memoryview(self.data)[: self.size() + more])


def read_file(file: Any, path: str | None = None) -> bytes:
    """The metadata from an object with ``read(n)``, from where it stands.

    Up to a few MB after the metadata may be consumed, too.

    Args:
        path: the file's name in errors, if ``file.name`` isn't it.
    """
    name = getattr(file, "name", None) if path is None else path
    name = "the open file" if name is None or isinstance(name, int) else shown(str(name))
    prefix = Prefix(name)
    while wanted := prefix.wanted():
        try:
            block = file.read(wanted - len(prefix.data))
        except OSError as e:
            raise FileError(f"{name}: {e}") from e
        except UnicodeDecodeError:
            block = ""  # of a text file
        except ValueError as e:  # a closed one
            raise InvalidValueError(f"{name}: {e}") from None
        if isinstance(block, str):
            raise InvalidTypeError("source: the file must be opened for bytes: open(path, 'rb')")
        if block is None:
            raise FileError(f"{name}: no bytes to read yet: the file must be in blocking mode")
        if not block:  # the end: what is there is all, and size() says what is wrong with it
            prefix.file_size = len(prefix.data)
        prefix.data += block
    return prefix.whole()
