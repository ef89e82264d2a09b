"""Standard output: bytes, text, JSON and tables."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterable, Sequence

from ggtok.base.escape import printable

# Control characters that terminals obey, except tab and newline.
_CONTROLS = re.compile("[\0-\x08\x0b-\x1f\x7f-\x9f]")
# The control characters that json.dumps doesn't escape.
_CONTROLS_IN_JSON = re.compile("[\x7f-\x9f]")


class OutputError(Exception):
    """Raised when standard output can't be written to."""

    def __init__(self, error: OSError | None = None) -> None:
        super().__init__(
            f"standard output: {error.strerror or error}" if error else "standard output is closed"
        )
        self.reader_is_gone = isinstance(error, BrokenPipeError) or (
            # Windows reports a broken pipe as EINVAL.
            sys.platform == "win32" and error is not None and error.errno == 22
        )


def write(data: bytes) -> None:
    """Writes bytes unchanged to standard output."""
    left = memoryview(data)
    if left and sys.stdout is None:
        raise OutputError
    try:
        while left:  # with PYTHONUNBUFFERED, a call may write only part of the data
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
    """Redirects standard output to /dev/null, so that the interpreter's flush at exit succeeds."""
    if sys.stdout is not None:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def to_terminal() -> bool:
    return sys.stdout is not None and sys.stdout.isatty()


def write_text(text: bytes) -> None:
    """Writes text unchanged or, on a terminal, as :func:`visible` returns it, with a newline."""
    write(visible(text) + b"\n" if to_terminal() else text)


def visible(text: bytes) -> bytes:
    r"""Prepares text for a terminal: escapes control characters, and bytes that aren't UTF-8, as in
    ``\x1b``."""
    decoded = text.decode("utf-8", "backslashreplace")
    return _CONTROLS.sub(lambda control: printable(control[0]), decoded).encode()


def write_line(line: str) -> None:
    write(line.encode("utf-8", "backslashreplace") + b"\n")


def write_result(args: argparse.Namespace, value: object, lines: Iterable[str]) -> None:
    """Writes a command's result: `value` if --json is given, else `lines`."""
    if args.json:
        write_json(value, indent=2)
    else:
        for line in lines:
            write_line(line)


def lines_of_files(*paths: str | None) -> list[str]:
    """Returns a line with name and size for each file that the command wrote.

    Devices such as /dev/stdout are omitted, because the lines would mix with the output.
    """
    files = [path for path in paths if path is not None and os.path.isfile(path)]
    return [f"{path}: {size(os.path.getsize(path))}" for path in files]


def utf8(argument: str) -> str:
    """Decodes an argument or path as UTF-8, whatever the locale's encoding."""
    return os.fsencode(argument).decode("utf-8", "surrogateescape")


def json_text(value: object, indent: int | None = None) -> bytes:
    """Converts a value to JSON, in UTF-8."""
    import json

    try:
        text = json.dumps(value, ensure_ascii=False, indent=indent)
        return _CONTROLS_IN_JSON.sub(lambda c: f"\\u{ord(c[0]):04x}", text).encode()
    except UnicodeEncodeError:
        # The text has lone surrogates, for bytes that aren't UTF-8: let JSON escape them.
        return json.dumps(value, indent=indent).encode()


def write_json(value: object, indent: int | None = None) -> None:
    write(json_text(value, indent) + b"\n")


def table(rows: Sequence[tuple[str, ...]], right: Sequence[int]) -> list[str]:
    """Returns a table's lines. `right` has the indices of right-aligned columns."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append("  ".join(cells).rstrip())
    return lines


def size(n: int) -> str:
    """Formats a number of bytes for people, such as ``1.5 MB``."""
    size, unit = float(n), "B"
    for larger in ("kB", "MB", "GB", "TB"):
        if size < 1000:
            break
        size, unit = size / 1000, larger
    return f"{n} B" if unit == "B" else f"{size:.1f} {unit}"
