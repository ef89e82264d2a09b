"""Input: files, and standard input under the name ``-``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from typing import Any, BinaryIO

from ggtok.base.files import open_regular
from ggtok.cli.messages import hint
from ggtok.cli.status import UsageError

BLOCK = 1 << 20  # bytes
STDIN = "standard input"


@contextmanager
def blocks(
    path: str, *, regular: bool = False, decompress: bool = False
) -> Iterator[Iterator[bytes]]:
    """What a file holds, in parts of about :data:`BLOCK` bytes; ``-`` is standard input.

    `regular`: it was a regular file, and nothing else is read in its place. `decompress`: of
    .gz, .bz2, .xz and .zst files, what was compressed."""
    if path == "-":
        yield _blocks(_standard_input(), STDIN)
    else:
        with open_regular(path) if regular else open(path, "rb", buffering=0) as f:
            yield _decompressed(f, path) if decompress else _blocks(f, path)


def _decompressed(f: Any, path: str) -> Iterator[bytes]:
    from ggtok.corpora import compressions, sources, streams

    compression = sources.compression_of(path)
    with streams.naming(path) if compression else nullcontext():
        yield from _blocks(compressions.decompressor(path, compression, f), path)


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise UsageError("standard input is closed")
    if sys.stdin.isatty():
        key = "Ctrl-Z and Enter" if sys.platform == "win32" else "Ctrl-D"
        hint(f"reading standard input up to its end ({key})")
    return sys.stdin.buffer


def _blocks(f: Any, name: str) -> Iterator[bytes]:
    # One call of the system each: a terminal's end of file would else have to be typed twice.
    read = getattr(f, "read1", f.read)
    try:
        while block := read(BLOCK):
            yield block
    except OSError as e:  # which doesn't know the name
        if e.errno is None:  # of a decompressor
            raise
        raise OSError(e.errno, e.strerror, name) from None


def file(path: str) -> bytes:
    """All of a file; ``-`` is standard input."""
    with blocks(path) as parts:
        return b"".join(parts)


def json_file(path: str) -> Any:
    """The value that a JSON file holds."""
    import json

    data = file(path)
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as e:
        name = "standard input" if path == "-" else path
        raise UsageError(f"{name}: not valid JSON: {e}") from None
