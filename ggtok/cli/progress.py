"""Progress on a terminal: a line on standard error that is rewritten repeatedly."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO, TypeVar

from ggtok.cli import messages, standard_output

_BAR = 20  # the length of the bar in characters
SILENT = 1.0  # seconds until the line first appears
T = TypeVar("T")


def is_shown(quiet: bool) -> bool:
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


class Line:
    """The progress line, also usable as a ``progress`` callback.

    Args:
        describe: converts the callback's argument to text. A narrow terminal shows only the text's
            beginning.
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


@contextmanager
def line(quiet: bool, describe: Callable[[Any], str]) -> Iterator[Line | None]:
    """A context with a progress line that is cleared at the end. The context's value is the line,
    or None if nobody would see one."""
    if not is_shown(quiet):
        yield None
        return
    shown = Line(sys.stderr, describe)
    try:
        yield shown
    finally:
        shown.clear()


def bar(share: float, left: float, rest: str) -> str:
    """Returns a bar for the completed share, followed by the remaining time and more text."""
    filled = f"[{'#' * int(share * _BAR):<{_BAR}}]"
    return f"{filled} {share:4.0%}  {int(left) // 60}:{int(left) % 60:02} left  {rest}"


def of_bytes(done: int, total: int, seconds: float, more: str = "") -> str:
    """Describes progress in bytes, with a bar unless `total` is unknown or too small."""
    rest = f"{standard_output.size(done)}, {done / max(seconds, 1e-9) / 1e6:.0f} MB/s{more}"
    if not 0 < done < total:
        return rest
    return bar(done / total, (total - done) * seconds / done, rest)


def time_items(items: Iterable[T]) -> Iterator[tuple[float, T]]:
    """Yields the items, each with the seconds since the first was requested."""
    began = time.perf_counter()
    for item in items:
        yield time.perf_counter() - began, item


def of_blocks(blocks: Iterator[bytes], path: str, quiet: bool) -> Iterator[bytes]:
    """Yields a file's blocks, and shows a progress line unless the output goes to a terminal,
    too."""
    done = total = 0
    with line(
        quiet or standard_output.to_terminal(), lambda seconds: of_bytes(done, total, seconds)
    ) as show:
        if show is not None and path != "-":
            total = os.stat(path).st_size
        for seconds, block in time_items(blocks):
            done += len(block)
            if show is not None and seconds > SILENT:
                show(seconds)
            yield block


@contextmanager
def waiting(quiet: bool, text: str) -> Iterator[Callable[[str], None]]:
    """A context that shows, every second, what the command is doing and for how long.

    Args:
        text: what the command is doing; the context's value is a function that changes this text.
    """
    current = [text]

    def say(text: str) -> None:
        current[0] = text

    with line(quiet, str) as show:
        if show is None:
            yield say
            return
        done = threading.Event()

        def run() -> None:
            seconds = 0
            while not done.wait(SILENT):
                seconds += 1
                show.write(f"{seconds // 60}:{seconds % 60:02}  {current[0]}")

        thread = threading.Thread(target=run, name="ggtok progress", daemon=True)
        thread.start()
        try:
            yield say
        finally:
            done.set()
            thread.join()
