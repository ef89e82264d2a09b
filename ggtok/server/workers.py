"""Threads for work that would block the event loop: answering long requests, and loading models.

Models are loaded, and their files checked, on threads of their own, so that a model whose server or
disk doesn't answer delays only requests for that model.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from queue import SimpleQueue
from threading import Thread
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from ggtok.server.folders import ServedFolder
from ggtok.server.refusals import NotReady, Refusal
from ggtok.server.registry import AllowedModel, Ready, Registry

T = TypeVar("T")

SMALL = 16_384  # bytes; a body up to this size is answered on the event loop
WAITING = 256  # how many requests may wait for a thread
REMOTE_LOADS = 16  # models that are fetched from servers at the same time
CHECK_SECONDS = 1.0  # to wait for a check of a loaded model's file


class Threads:
    """Threads that run work in order, and that don't keep the process alive."""

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._started = 0
        self._work: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()

    def submit(self, work: Callable[[], T]) -> Future[T]:
        """Adds work. As long as it hasn't begun, its future can be cancelled."""
        if self._started < self._most:
            try:
                Thread(target=self._run, name=self._name, daemon=True).start()
                self._started += 1
            except RuntimeError as e:  # the system has no more threads
                if not self._started:
                    raise Refusal(f"{e}; try again", "unavailable_error") from None
        future: Future[T] = Future()
        self._work.put((future, work))
        return future

    def _run(self) -> None:
        while (item := self._work.get()) is not None:
            future, work = item
            if future.set_running_or_notify_cancel():
                try:
                    result = work()
                except BaseException as e:
                    future.set_exception(e)
                else:
                    future.set_result(result)
                    del result
            del item, future, work  # frees the request's memory while the thread waits

    def close(self) -> None:
        for _ in range(self._started):
            self._work.put(None)


class Workers:
    """A few threads with a bounded queue of work, and further threads that load models."""

    def __init__(self, registry: Registry, threads: int = 0, waiting: int = WAITING) -> None:
        self.threads = threads or min(8, os.cpu_count() or 1)
        self._answers = Threads(self.threads, "ggtok-server")
        self._short = Threads(self.threads, "ggtok-short")
        self._most = self.threads + waiting
        self._free = {False: self._most, True: self._most}  # for long and for short work
        self._registry = registry
        # One for models that are files, and one for models by other names.
        self._loaders = {
            True: Threads(self.threads, "ggtok-files"),
            False: Threads(REMOTE_LOADS, "ggtok-loads"),
        }
        self._loads: dict[str, asyncio.Future[Ready]] = {}
        self._scanning: asyncio.Future[None] | None = None

    @property
    def pending(self) -> int:
        """The number of requests that threads are answering, or that wait for a thread."""
        return 2 * self._most - sum(self._free.values())

    async def run(self, work: Callable[[Ready | None], T], *, short: bool = False) -> T:
        """Runs `work` on a thread, and returns its result. If it raises NotReady for a model or a
        folder, loads or scans that, and calls `work` again with the result. `short` work, that of
        small bodies, runs on separate threads with their own queue, so that it doesn't wait for
        large bodies.

        If the caller is cancelled, work that hasn't begun is dropped; otherwise waits for its end,
        because the caller accounts for its memory.

        Raises:
            Refusal: the queue is full.
        """
        ready: Ready | None = None
        while True:
            try:
                return await self._on_thread(partial(work, ready), short)
            except NotReady as e:
                scanned = ready is not None and ready.scanned
                if isinstance(e.model, ServedFolder) and not scanned:
                    await self._scan(e.model)
                    ready = replace(ready or Ready(), scanned=True)
                elif isinstance(e.model, AllowedModel) and (
                    ready is None or ready.model is not e.model
                ):
                    ready = replace(await self.load(e.model), scanned=scanned)
                else:
                    raise

    async def _on_thread(self, work: Callable[[], T], short: bool) -> T:
        if self._free[short] <= 0:
            raise Refusal("too many requests are waiting; try again", "unavailable_error")
        submitted = (self._short if short else self._answers).submit(work)
        self._free[short] -= 1  # needs no lock: only the event loop changes it
        future = asyncio.wrap_future(submitted)
        future.add_done_callback(partial(self._done, short))
        try:
            return await asyncio.shield(future)
        except asyncio.CancelledError:
            if not submitted.cancel():
                await asyncio.wait({future})
            raise

    def _done(self, short: bool, future: asyncio.Future[Any]) -> None:
        self._free[short] += 1
        if not future.cancelled():
            future.exception()  # avoids a warning if nobody waits for the future

    async def load(self, model: AllowedModel) -> Ready:
        """Loads a model, or checks whether its file has changed. All requests for the model share
        the work. If checking takes long, a loaded model is used as it is."""
        load = self._loads.get(model.name)
        if load is None:
            submitted = self._loaders[model.is_file].submit(partial(self._registry.ready, model))
            load = self._loads[model.name] = asyncio.wrap_future(submitted)
            load.add_done_callback(lambda _: self._loads.pop(model.name, None))
        tok = model.tok
        await asyncio.wait({load}, timeout=None if tok is None else CHECK_SECONDS)
        if not load.done() and tok is not None:
            return Ready(model, model.served(tok))
        return load.result()

    async def _scan(self, folder: ServedFolder) -> None:
        """Scans a folder for new models. If that takes long, requests get the models known so far,
        and the next scan begins after the current one."""
        if self._scanning is None or self._scanning.done():
            submitted = self._loaders[True].submit(partial(self._registry.scan, folder))
            self._scanning = asyncio.wrap_future(submitted)
        await asyncio.wait({self._scanning}, timeout=CHECK_SECONDS)
        folder.postpone()

    def close(self) -> None:
        for threads in self._answers, self._short, *self._loaders.values():
            threads.close()


async def unless_disconnected(work: Coroutine[Any, Any, T], receive: Receive) -> T:
    """Returns the result of `work`, or cancels it and raises ClientDisconnect if the client goes
    away before."""

    async def disconnected() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(disconnected())
    try:
        await asyncio.wait({working, gone}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        gone.cancel()
        if not working.done():
            working.cancel()
        await asyncio.gather(working, gone, return_exceptions=True)
    if working.cancelled():
        raise ClientDisconnect
    return working.result()
