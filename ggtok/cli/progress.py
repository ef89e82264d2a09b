"""Progress on a terminal: a line of standard error that is written over."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from typing import Any, TextIO


def shown(quiet: bool) -> bool:
    """Whether there is somebody to see it."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


class Line:
    """What a call's ``progress`` may be: `describe` puts its argument into words."""

    def __init__(self, stream: TextIO, describe: Callable[[Any], str]) -> None:
        self._stream, self._describe = stream, describe
        self._last = 0.0
        self._length = 0

    def __call__(self, progress: Any) -> None:
        now = time.perf_counter()
        if now - self._last < 0.1:
            return
        self._last = now
        self._write(self._describe(progress))

    def _write(self, text: str) -> None:
        text = text[: os.get_terminal_size(self._stream.fileno()).columns - 1]
        self._stream.write("\r" + text.ljust(self._length))
        self._stream.flush()
        self._length = len(text)

    def clear(self) -> None:
        self._stream.write("\r" + " " * self._length + "\r")
        self._stream.flush()
