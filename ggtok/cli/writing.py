"""Standard output: bytes, text, JSON and tables."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Sequence

from ggtok.base.escape import shown

# What a terminal would obey, but for tabs and newlines.
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
# Those of them that JSON doesn't escape by itself.
_CONTROLS_IN_JSON = re.compile("[\x7f-\x9f]")


class OutputError(Exception):
    """Standard output can't be written to."""

    def __init__(self, error: OSError | None = None) -> None:
        super().__init__(
            f"standard output: {error.strerror or error}" if error else "standard output is closed"
        )
        self.reader_is_gone = isinstance(error, BrokenPipeError) or (
            # What Windows says then.
            sys.platform == "win32" and error is not None and error.errno == 22
        )


def write(data: bytes) -> None:
    """Writes bytes as they are."""
    left = memoryview(data)
    if left and sys.stdout is None:
        raise OutputError
    try:
        while left:  # with PYTHONUNBUFFERED, one call may write a part
            left = left[sys.stdout.buffer.write(left) or 0 :]
    except OSError as e:
        raise OutputError(e) from None


def flush() -> None:
    try:
        if sys.stdout is not None:
            sys.stdout.buffer.flush()
    except OSError as e:
        raise OutputError(e) from None


def discard() -> None:
    """Points standard output, which the interpreter flushes at exit, to where that succeeds."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def to_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def write_text(text: bytes) -> None:
    """Writes text as it is; to a terminal as :func:`visible` gives it, with a newline after it."""
    write(visible(text) + b"\n" if to_terminal() else text)


def visible(text: bytes) -> bytes:
    r"""`text` for a terminal: control characters and bytes that are not UTF-8 become ``\x1b``."""
    decoded = text.decode("utf-8", "backslashreplace")
    return _CONTROLS.sub(lambda control: shown(control[0]), decoded).encode()


def printed(piece: bytes) -> bytes:
    """What llama-tokenize's printf("%s") prints of a piece: it ends at the first NUL."""
    return piece.split(b"\0", 1)[0]


def write_line(line: str) -> None:
    write(line.encode("utf-8", "backslashreplace") + b"\n")


def write_made(path: str) -> None:
    """Says which file was written, and how large it is. What went to a device may be in the midst
    of the same output."""
    if os.path.isfile(path):
        write_line(f"{path}: {size(os.path.getsize(path))}")


def json_text(value: object, indent: int | None = None) -> bytes:
    """A value as JSON, in UTF-8."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        return _CONTROLS_IN_JSON.sub(lambda c: f"\\u{ord(c[0]):04x}", text).encode()
    except UnicodeEncodeError:
        # Bytes that were no UTF-8 became lone surrogates: leave those to JSON's escapes.
        return json.dumps(value, indent=indent).encode()


def write_json(value: object, indent: int | None = None) -> None:
    write(json_text(value, indent) + b"\n")


def write_table(rows: Sequence[tuple[str, ...]], right: Sequence[int]) -> None:
    """Writes rows in columns, those numbered in `right` flush right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        write_line("  ".join(cells).rstrip())


def size(n: int) -> str:
    """A number of bytes for people."""
    size, unit = float(n), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"
