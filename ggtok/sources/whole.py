"""Checks that a file contains all of its tensors.

After an interrupted download, a file may have complete metadata but lack tensors.
"""

from __future__ import annotations

import struct
from typing import BinaryIO

from ggtok.errors import GGUFError
from ggtok.native import metadata_size
from ggtok.sources.prefix import LIMIT, LIMIT_VARIABLE, number

_TENSORS = 4 << 20  # the largest number of bytes read of the tensor descriptions


def fill(file: BinaryIO, data: bytearray, n: int) -> None:
    """Reads until `data` has the file's first n bytes."""
    while len(data) < n:
        block = file.read(n - len(data))
        if not block:
            raise GGUFError("the file became shorter while it was read")
        data += block


def check(file: BinaryIO, data: bytearray, size: int, name: str) -> None:
    """Checks that a file doesn't end before its last tensor begins.

    Args:
        data: the file's first bytes. More are appended as needed.

    Raises:
        GGUFError: the file is cut off.
    """
    while (end := metadata_size(data, size, name)) > len(data):
        if end > number(LIMIT_VARIABLE, LIMIT):
            return
        fill(file, data, end)
    fill(file, data, min(end + _TENSORS, size))
    try:
        cut_off = _last_tensor(data, end) > size
    except (struct.error, OverflowError):  # not all descriptions were read
        cut_off = len(data) == size
    if cut_off:
        raise GGUFError(
            f"the file is cut off: it has {size} bytes, and its tensors take more; its download "
            "was probably interrupted: download it again"
        )


def _last_tensor(data: bytearray, at: int) -> int:
    """A lower bound of the last tensor's start, from the descriptions that begin at `at`."""
    order = "<" if struct.unpack_from("<I", data, 4)[0] < 1 << 16 else ">"
    (n,) = struct.unpack_from(f"{order}Q", data, 8)
    last = 0
    for _ in range(n):
        (length,) = struct.unpack_from(f"{order}Q", data, at)
        at += 8 + length
        (dimensions,) = struct.unpack_from(f"{order}I", data, at)
        at += 4 + 8 * dimensions + 4
        (offset,) = struct.unpack_from(f"{order}Q", data, at)
        at += 8
        last = max(last, offset + 1)
    return at + last
