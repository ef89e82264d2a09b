"""Starts worker processes and sends them requests."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

from tests.bench.peers import PEERS

# The cores on which this process could run when it started.
_CORES = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []


class PeerFailureError(Exception):
    """A tokenizer doesn't support a request, crashed, or timed out."""


def cores(threads: int) -> list[int]:
    """Returns the cores for a worker: the last ones, since the system tends to use the first."""
    return _CORES[-threads:]


def environment(threads: int) -> dict[str, str]:
    return dict(
        os.environ,
        GGML_NO_BACKTRACE="1",
        RAYON_NUM_THREADS=str(threads),
        TOKENIZERS_PARALLELISM="true" if threads > 1 else "false",
    )


class Process:
    """A worker process that has imported its tokenizer, and loaded a file if a path was passed."""

    def __init__(
        self, name: str, path: str | None = None, threads: int = 1, seconds: float = 300.0
    ) -> None:
        assert name in PEERS
        self.seconds = seconds
        self.load_ns = 0
        self._child = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(threads),
        )
        try:
            self._ask("start", name, threads, cores(threads))
            if path is not None:
                self.load(path)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Process:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._child.kill()
        self._child.wait()
        for pipe in (self._child.stdin, self._child.stdout):
            assert pipe is not None
            try:
                pipe.close()
            except BrokenPipeError:  # unsent data that the worker never read
                continue

    def _ask(self, method: str, *args: Any) -> Any:
        child = self._child
        assert child.stdin is not None and child.stdout is not None
        late = threading.Event()

        def stop() -> None:
            late.set()
            child.kill()

        watchdog = threading.Timer(self.seconds, stop)
        watchdog.daemon = True
        watchdog.start()
        try:
            pickle.dump((method, args), child.stdin)
            child.stdin.flush()
            ok, answer = pickle.load(child.stdout)
        except (EOFError, BrokenPipeError, pickle.UnpicklingError):
            if late.is_set():
                raise PeerFailureError(f"more than {self.seconds:.0f} s") from None
            raise PeerFailureError(f"died (status {child.wait()})") from None
        finally:
            watchdog.cancel()
        if not ok:
            raise PeerFailureError(str(answer).splitlines()[0][:200])
        return answer

    def load(self, path: str) -> int:
        self.load_ns = self._ask("load", path)
        return self.load_ns

    def put(self, key: str, texts: Sequence[str]) -> None:
        self._ask("put", key, list(texts))

    def once(self, form: str, key: str) -> int:
        ns: int = self._ask("once", form, key)
        return ns

    def sample(self, form: str, key: str, at_least: int) -> float:
        ns: float = self._ask("sample", form, key, at_least)
        return ns

    def ids(self, form: str, key: str) -> bytes:
        ids: bytes = self._ask("ids", form, key)
        return ids

    def touch(self) -> None:
        self._ask("touch")

    def rss(self) -> int:
        bytes: int = self._ask("rss")
        return bytes
