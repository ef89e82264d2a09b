"""Runs a source's own package in a child process with limits on time and memory.

A source can make its package use any amount of time and memory: a normalizer can grow a text
without end, or search for an expression that takes exponential time. A malformed source can crash
the package. So no package loads a source in this process.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import struct
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Sequence
from typing import Any

from ggtok.base.concurrency import write_frame
from ggtok.errors import VocabError

SECONDS = 60  # per request
MEMORY = 3 << 30  # bytes
MAX_ANSWER = 32 << 20  # bytes; about four million ids
_TOTAL = 10  # limit on the child's processor time, in requests; ends a child without a parent

# Encodes texts to ids, parsing special tokens and adding none.
Encode = Callable[[Sequence[str]], list[list[int]]]

_ENVIRONMENT = {
    "TOKENIZERS_PARALLELISM": "false",  # saves memory
    "HF_HUB_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
}

# The child has the same sys.path as this process.
_CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from ggtok.vocabularies.convert.original_worker import main
main(sys.argv[1:])
"""


class TooMuch(VocabError):
    """The package exceeds the limits, crashes, or can't be run."""


def is_installed(package: str) -> bool:
    return importlib.util.find_spec(package) is not None


class Package:
    """One of the packages that original_worker.py supports.

    The child process is started on demand, keeps the last source, and ends with this object.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self._child: subprocess.Popen[bytes] | None = None
        self._source: object = None  # the source that the child has read last

    def read(self, source: object) -> Encode | None:
        """A function that encodes with a source; None: the package isn't installed.

        Raises:
            VocabError: the package can't read the source.
            TooMuch: the limits are exceeded. The returned function may raise this, too.
        """
        if getattr(sys, "frozen", False) or not sys.executable:
            return None  # there is no interpreter to start
        if not is_installed(self.name):
            return None
        self._read(source)

        def encode(lines: Sequence[str]) -> list[list[int]]:
            if self._source is not source:
                self._read(source)
            answer = self._ask("encode", list(lines))
            if "error" in answer:
                raise self._too_much(answer["error"])
            ids: list[list[int]] = answer["ids"]
            return ids

        return encode

    def _read(self, source: object) -> None:
        answer = self._ask("read", source)
        if "error" in answer:
            reason = " ".join(answer["error"].split())
            raise VocabError(f"{self.name} can't load the source: {reason}")
        self._source = source

    def _ask(self, what: str, argument: object) -> dict[str, Any]:
        child = self._child = self._child or self._start()
        assert child.stdin is not None and child.stdout is not None
        watchdog = threading.Timer(SECONDS, child.kill)
        watchdog.daemon = True
        watchdog.start()
        answered = False
        try:
            write_frame(child.stdin, (what, argument))
            (size,) = struct.unpack("<Q", child.stdout.read(8))
            data = child.stdout.read(size) if size <= MAX_ANSWER else b""
            answer: dict[str, Any] = json.loads(data)
            answered = True
        except (OSError, ValueError, struct.error):
            raise self._too_much("it exceeded a limit or crashed") from None
        finally:
            watchdog.cancel()
            if not answered:
                self._child = self._source = None
                _end(child, 0)
        return answer

    def _too_much(self, reason: str) -> TooMuch:
        return TooMuch(
            f"{self.name} can't encode text with this source within {SECONDS} seconds and "
            f"{MEMORY >> 30} GiB: {reason}"
        )

    def _start(self) -> subprocess.Popen[bytes]:
        limits = map(str, (SECONDS * _TOTAL, MEMORY, MAX_ANSWER))
        arguments = json.dumps(sys.path), self.name, *limits
        try:
            child = subprocess.Popen(
                (sys.executable, "-c", _CHILD, *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, **_ENVIRONMENT},
            )
        except OSError as e:
            raise TooMuch(f"{self.name} can't run in a child process: {e.strerror}") from None
        weakref.finalize(self, _end, child)
        return child


def _end(child: subprocess.Popen[bytes], timeout: float = 1.0) -> None:
    """Ends the child. It exits at the end of its input, or is killed after the timeout."""
    assert child.stdin is not None and child.stdout is not None
    with contextlib.suppress(OSError):  # the child left input unread
        child.stdin.close()
    try:
        child.wait(timeout)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
    child.stdout.close()
