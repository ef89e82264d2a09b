"""Messages between a process and its child through pipes."""

from __future__ import annotations

import pickle
import struct
from typing import IO, Any


def write_frame(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any:
    """The next message.

    Raises:
        EOFError: the pipe ended before a complete message.
    """
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    n = struct.unpack("<Q", size)[0]
    data = pipe.read(n)
    if len(data) < n:
        raise EOFError
    return pickle.loads(data)
