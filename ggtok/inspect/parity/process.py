"""Runs llama.cpp in a child process.

Some inputs make llama.cpp abort or overflow its stack. If the child dies, the request raises
`LlamaCppDied`, and the next request starts a new child, which loads the vocabularies again.

    with LlamaCpp("xllamacpp") as llama:
        vocab = llama.load("model.gguf")
        vocab.tokenize(b"Hello", add_special=True, parse_special=False)
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ggtok.base.concurrency import read_frame, write_frame
from ggtok.errors import GGTokError

REQUEST_SECONDS = 600.0

Override = int | float | bool | str

# The child has the same sys.path as this process.
_CHILD = """\
import json, sys
sys.path[:] = json.loads(sys.argv.pop(1))
from importlib import import_module
import_module(sys.argv.pop(1)).main(sys.argv[1:])
"""


class LlamaCppError(GGTokError):
    """An error from llama.cpp."""


class LlamaCppLoadError(LlamaCppError):
    """Raised if llama.cpp refuses a file, or can't be used."""


class LlamaCppDied(LlamaCppError):
    """Raised if llama.cpp crashes (or hangs) on a request."""

    def __init__(self, request: str, status: int | None) -> None:
        super().__init__(f"llama.cpp died (status {status}) on {request}")
        self.request = request
        self.status = status


class Vocab:
    """A vocabulary loaded in the child."""

    def __init__(self, owner: LlamaCpp, path: str) -> None:
        self._owner = owner
        self.path = path

    def tokenize(self, text: bytes, add_special: bool, parse_special: bool) -> list[int]:
        return self.tokenize_many([text], add_special, parse_special)[0]

    def tokenize_many(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int]]:
        ids: list[list[int]] = []
        self._owner._requests(ids, "tokenize", self.path, list(texts), add_special, parse_special)
        return ids

    def survivors(
        self, texts: Sequence[bytes], add_special: bool, parse_special: bool
    ) -> list[list[int] | None]:
        """Like tokenize_many, but returns None for each text that crashes llama.cpp."""
        ids: list[list[int] | None] = []
        while len(ids) < len(texts):
            rest = list(texts[len(ids) :])
            try:
                self._owner._requests(ids, "tokenize", self.path, rest, add_special, parse_special)
            except LlamaCppDied:
                ids.append(None)
        return ids


class LlamaCpp:
    """A child process that is started on demand, and restarted if it dies.

    Args:
        arguments: the arguments for the child's ``main``.
        module: the module whose ``main`` the child runs.
    """

    def __init__(self, *arguments: str, module: str = "ggtok.inspect.parity.worker") -> None:
        self._command = [
            *(sys.executable, "-c", _CHILD, json.dumps(sys.path), module),
            *arguments,
        ]
        self._child: subprocess.Popen[bytes] | None = None
        self._overrides: dict[str, dict[str, Override]] = {}

    def __enter__(self) -> LlamaCpp:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._child is not None:
            self._child.kill()
            self._reap()

    def check(self) -> None:
        """Raises a LlamaCppError if the package can't be used."""
        self._request("check")

    def build(self) -> str:
        """Returns what a library says about its version, or ""."""
        build: str = self._request("build")
        return build

    def knows_key(self, key: str) -> bool:
        """Whether this llama.cpp's code contains the name of a file's key."""
        knows: bool = self._request("knows_key", key)
        return knows

    def load(
        self, path: str | os.PathLike[str], overrides: Mapping[str, Override] | None = None
    ) -> Vocab:
        """Loads a file, with overrides for its values (``kv_overrides``).

        A file has one set of overrides at a time: new ones also apply to earlier Vocabs of the
        same file.
        """
        full = os.fspath(Path(path).resolve())
        self._overrides[full] = dict(overrides or {})
        self._request(*self._load_request(full))
        return Vocab(self, full)

    def _load_request(self, path: str) -> tuple[Any, ...]:
        return "load", path, self._overrides.get(path, {})

    def _reap(self) -> int | None:
        child, self._child = self._child, None
        if child is None:
            return None
        status = child.wait()
        for pipe in (child.stdin, child.stdout):
            assert pipe is not None
            with contextlib.suppress(BrokenPipeError):  # the child hasn't read all of its input
                pipe.close()
        return status

    def _start(self) -> subprocess.Popen[bytes]:
        if self._child is None:
            # Without GGML_NO_BACKTRACE, an abort would start a debugger.
            env = dict(os.environ, GGML_NO_BACKTRACE="1")
            self._child = subprocess.Popen(
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=env,
            )
        return self._child

    def _request(self, *request: Any) -> Any:
        answers: list[Any] = []
        self._exchange(request, 1, answers)
        return answers[0]

    def _requests(
        self, answers: list[Any], what: str, path: str, items: list[Any], *flags: bool
    ) -> None:
        """Appends an answer for each item to `answers`. If the child dies on an item, appends those
        for the items before it, and raises LlamaCppDied."""
        before = len(answers)
        try:
            self._exchange((what, path, items, *flags), len(items), answers)
        except LlamaCppDied as death:
            # This raises an error if loading fails, too. Then no item is to blame.
            self._request(*self._load_request(path))
            killer = items[len(answers) - before]
            raise LlamaCppDied(repr((what, path, killer, *flags)), death.status) from None

    def _exchange(self, request: tuple[Any, ...], n: int, answers: list[Any]) -> None:
        child = self._start()
        assert child.stdin is not None and child.stdout is not None
        watchdog = threading.Timer(REQUEST_SECONDS, child.kill)
        watchdog.daemon = True
        watchdog.start()
        try:
            write_frame(child.stdin, request)
            for _ in range(n):
                ok, answer = read_frame(child.stdout)
                if not ok:
                    raise LlamaCppLoadError(answer)
                answers.append(answer)
        except LlamaCppLoadError:
            raise
        except (EOFError, BrokenPipeError):
            raise LlamaCppDied(repr(request), self._reap()) from None
        except BaseException:
            self.close()  # otherwise the next request would read this request's answer
            raise
        finally:
            watchdog.cancel()
