"""Threads for work that would block the event loop."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from ggtok.server.errors import Refusal

T = TypeVar("T")

SMALL = 16_384  # bytes; a body up to this size is answered on the event loop
WAITING = 256  # how many requests may wait for a thread


class Workers:
    """A few threads with a bounded queue of work."""

    def __init__(self, threads: int = 0, waiting: int = WAITING) -> None:
        self.threads = threads or min(8, os.cpu_count() or 1)
        self._pool = ThreadPoolExecutor(self.threads, "ggtok-server")
        self._most = self._free = self.threads + waiting

    @property
    def pending(self) -> int:
        """The number of requests that threads are answering, or that wait for a thread."""
        return self._most - self._free

    async def run(self, work: Callable[[], T]) -> T:
        """Runs `work` on a thread, and returns its result. Raises Refusal if the queue is full."""
        if self._free <= 0:
            raise Refusal("too many requests are waiting; try again", "unavailable_error")
        self._free -= 1  # needs no lock: only the event loop changes it
        loop = asyncio.get_running_loop()
        future = loop.run_in_executor(self._pool, work)
        future.add_done_callback(self._done)
        return await asyncio.shield(future)

    def _done(self, future: asyncio.Future[T]) -> None:
        self._free += 1
        if not future.cancelled():
            future.exception()  # avoids a warning if nobody waits for the future

    def close(self) -> None:
        self._pool.shutdown(wait=False, cancel_futures=True)
