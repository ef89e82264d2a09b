"""Progress on a terminal: a line of standard error that is written over."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from ggtok.cli import messages, writing

_BAR = 20  # characters
_SILENT = 1.0  # seconds in which nothing is shown yet


def shown(quiet: bool) -> bool:
    """Whether there is somebody to see it."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


class Line:
    """What a call's ``progress`` may be: `describe` puts its argument into words.

    What a narrow terminal should show comes first in these.
    """

    def __init__(self, stream: TextIO, describe: Callable[[Any], str]) -> None:
        self._stream, self._describe = stream, describe
        self._last = 0.0
        self._length = 0

    def __call__(self, progress: Any) -> None:
        now = time.perf_counter()
        if now - self._last < 0.1:
            return
        self._last = now
        self.write(self._describe(progress))

    def write(self, text: str) -> None:
        text = text[: os.get_terminal_size(self._stream.fileno()).columns - 1]
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)
        messages.clear_progress = self.clear

    def clear(self) -> None:
        messages.clear_progress = None
        if self._length:
            self._stream.write("\r" + " " * self._length + "\r")
            self._stream.flush()
            self._length = 0


def described(share: float, left: float, rest: str) -> str:
    """A bar for a share of the work, the seconds left, and what else there is to say."""
    bar = f"[{'#' * int(share * _BAR):<{_BAR}}]"
    return f"{bar} {share:4.0%}  {int(left) // 60}:{int(left) % 60:02} left  {rest}"


def of_bytes(done: int, total: int, seconds: float, more: str = "") -> str:
    """How far `done` bytes are of `total`, which may be too few: then that isn't known."""
    rest = f"{writing.size(done)}, {done / max(seconds, 1e-9) / 1e6:.0f} MB/s{more}"
    if not 0 < done < total:
        return rest
    return described(done / total, (total - done) * seconds / done, rest)


def of_blocks(blocks: Iterator[bytes], path: str, quiet: bool) -> Iterator[bytes]:
    """The blocks of a file, while a terminal shows how far they are. Output to a terminal shows
    that by itself."""
    if not shown(quiet) or writing.to_terminal():
        yield from blocks
        return
    done, total = 0, 0 if path == "-" else os.stat(path).st_size
    begun = time.perf_counter()
    line = Line(sys.stderr, lambda seconds: of_bytes(done, total, seconds))
    try:
        for block in blocks:
            done += len(block)
            seconds = time.perf_counter() - begun
            if seconds > _SILENT:
                line(seconds)
            yield block
    finally:
        line.clear()


@contextmanager
def waiting(quiet: bool, text: str) -> Iterator[Callable[[str], None]]:
    """Within it, a terminal shows each second what the command does, and for how long it has
    done so: `text`, until the result is called with another."""
    what = [text]

    def say(text: str) -> None:
        what[0] = text

    if not shown(quiet):
        yield say
        return
    line = Line(sys.stderr, str)
    done = threading.Event()

    def run() -> None:
        seconds = 0
        while not done.wait(_SILENT):
            seconds += 1
            line.write(f"{seconds // 60}:{seconds % 60:02}  {what[0]}")

    thread = threading.Thread(target=run, name="ggtok progress", daemon=True)
    thread.start()
    try:
        yield say
    finally:
        done.set()
        thread.join()
        line.clear()
