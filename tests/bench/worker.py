"""The worker process for one tokenizer: `python -m tests.bench.worker`.

It reads requests (method, arguments) from standard input and writes answers, (True, result) or
(False, error), to standard output; both are pickled.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import pickle
import resource
import time
from array import array
from collections.abc import Callable
from typing import Any

from tests.bench.loaders import LOADERS
from tests.bench.peers import DOCS, DOCS_LISTS, OFFSETS, PEERS

SPECIAL = "special tokens"  # the form that makes the call in Peer.special


class Worker:
    def __init__(self) -> None:
        self.tok: Any = None
        self.texts: dict[str, list[str]] = {}
        self.runs: dict[str, Callable[..., int]] = {}
        self.passes: dict[tuple[str, str], int] = {}

    def start(self, name: str, threads: int, cores: list[int]) -> None:
        """Pins the process to its cores, then imports the tokenizer, which may count cores."""
        if cores:
            os.sched_setaffinity(0, cores)
        self.peer = PEERS[name]
        self.threads = threads
        importlib.import_module(self.peer.module)
        gc.disable()

    def load(self, path: str) -> int:
        """Loads a file in place of the previous file; returns the time in nanoseconds."""
        if hasattr(self.tok, "close"):
            self.tok.close()
        self.tok = None
        gc.collect()
        load = LOADERS[self.peer.name]
        start = time.perf_counter_ns()
        self.tok = load(path)
        return time.perf_counter_ns() - start

    def put(self, key: str, texts: list[str]) -> None:
        self.texts[key] = texts
        for form, other in list(self.passes):
            if other == key:
                del self.passes[form, other]

    def call(self, form: str) -> str:
        peer = self.peer
        if form == OFFSETS:
            return peer.offsets
        return (peer.special or peer.calls["one string"]) if form == SPECIAL else peer.calls[form]

    def run(self, form: str) -> Callable[..., int]:
        """Returns the compiled loop that calls the tokenizer and times itself."""
        if form not in self.runs:
            each = "" if form in (DOCS, DOCS_LISTS) else "for text in texts: "
            source = (
                "def run(tok, texts, threads, passes, clock):\n"
                "    start = clock()\n"
                "    for _ in range(passes):\n"
                f"        {each}{self.call(form)}\n"
                "    return clock() - start\n"
            )
            names: dict[str, Any] = {}
            exec(compile(source, f"<{self.peer.name}: {form}>", "exec"), names)
            self.runs[form] = names["run"]
        return self.runs[form]

    def _time(self, form: str, key: str, passes: int) -> int:
        run = self.run(form)
        gc.collect()
        return run(self.tok, self.texts[key], self.threads, passes, time.perf_counter_ns)

    def once(self, form: str, key: str) -> int:
        """Returns the nanoseconds for one pass over the texts, without a warm-up.

        NumPy, which some tokenizers import for their first array, belongs to the group `job`."""
        importlib.import_module("numpy")
        return self._time(form, key, 1)

    def sample(self, form: str, key: str, at_least: int) -> float:
        """Returns the nanoseconds per pass, warm, averaged over enough passes to take `at_least` in
        total."""
        if (form, key) not in self.passes:
            self._time(form, key, 2)
            passes, elapsed = 1, self._time(form, key, 1)
            while elapsed < at_least / 4 and passes < 1 << 20:
                passes *= 4
                elapsed = self._time(form, key, passes)
            self.passes[form, key] = max(1, round(1.1 * at_least * passes / elapsed))
        passes = self.passes[form, key]
        return self._time(form, key, passes) / passes

    def ids(self, form: str, key: str) -> bytes:
        """Returns the ids of all texts, joined, as int32."""
        names = {"tok": self.tok, "texts": self.texts[key], "threads": self.threads}
        if form in (DOCS, DOCS_LISTS):
            return flat(eval(self.call(form), names)).tobytes()
        parts = array("i")
        for text in self.texts[key]:
            parts += flat(eval(self.call(form), {**names, "text": text}))
        return parts.tobytes()

    def touch(self) -> None:
        """Writes to a gigabyte of memory, so that the host assigns it (see fresh.py)."""
        bytearray(1 << 30)[:: resource.getpagesize()] = b"x" * ((1 << 30) // resource.getpagesize())

    def rss(self) -> int:
        """Returns the resident memory in bytes."""
        gc.collect()
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def flat(result: Any) -> array[int]:
    """Returns the ids in a tokenizer's result, whatever its type, joined."""
    if isinstance(result, tuple):  # ids and offsets
        result = result[0]
    if isinstance(result, bytes):
        return array("i", result)
    if hasattr(result, "ids"):
        result = result.ids
    if hasattr(result, "layout"):  # awkward.Array
        result = importlib.import_module("awkward").to_numpy(
            importlib.import_module("awkward").flatten(result)
        )
    if hasattr(result, "astype"):
        return array("i", result.astype("int32").tobytes())
    if isinstance(result, memoryview):
        return array("i", result.tobytes())
    if not result or isinstance(result[0], int):
        return array("i", result)
    ids = array("i")
    for item in result:
        ids += flat(item)
    return ids


def _serve() -> None:
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # redirects a tokenizer's prints to standard error
    worker = Worker()
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            method, args = pickle.load(requests)
            try:
                answer = (True, getattr(worker, method)(*args))
            except (KeyboardInterrupt, SystemExit):
                return
            except BaseException as error:  # panics in Rust aren't derived from Exception
                answer = (False, f"{type(error).__name__}: {str(error).strip() or '-'}")
            pickle.dump(answer, answers)
            answers.flush()


if __name__ == "__main__":
    _serve()
