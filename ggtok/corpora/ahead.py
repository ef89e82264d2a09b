"""Two helper threads for the encoding one: one reads ahead, one writes behind."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

from ggtok.base.concurrency import Channel

T = TypeVar("T")


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def ahead(items: Iterator[T], room: int = 1) -> Iterator[T]:
    """The items, prefetched by a separate thread: at most `room` of them wait.

    A thread that is inside a caller's iterator when nobody wants more can't be stopped there;
    it is a daemon, and ends when the iterator answers.
    """
    waiting: Channel[T | _Raised] = Channel(room)

    def run() -> None:
        try:
            for item in items:
                if not waiting.put(item):
                    return
                del item  # or it would live while the next is made
        except BaseException as e:
            waiting.put(_Raised(e))
        waiting.end()

    try:
        threading.Thread(target=run, name="ggtok reader", daemon=True).start()
        while (item := waiting.get()) is not None:
            if isinstance(item, _Raised):
                raise item.error
            yield item
            del item
    finally:
        waiting.close()


class BackgroundWriter(Generic[T]):
    """A thread that calls a function for each item, in order. `put` raises its errors.

    Use it in a ``with`` statement. If the block raises, items that still wait are dropped.
    """

    def __init__(self, do: Callable[[T], object], room: int = 1) -> None:
        self._do = do
        self._waiting: Channel[T] = Channel(room)
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ggtok writer", daemon=True)

    def __enter__(self) -> BackgroundWriter[T]:
        try:
            self._thread.start()
        except BaseException:
            self._waiting.close()
            raise
        return self

    def put(self, item: T) -> None:
        if not self._waiting.put(item) and self._error is not None:
            raise self._error

    def __exit__(self, error: object, *_: object) -> None:
        try:
            if error is not None:
                self._waiting.close()
            else:
                self._waiting.end()
                self._thread.join()
        except BaseException:
            self._waiting.close()
            raise
        finally:
            self._thread.join()
        if error is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while (item := self._waiting.get()) is not None:
                self._do(item)
                del item
        except BaseException as e:
            self._error = e
            self._waiting.close()
