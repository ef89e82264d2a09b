"""Two threads beside the one that encodes: one reads ahead, one writes behind."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")
_POLL = 0.05  # seconds after which a thread that waits looks whether it should stop


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def ahead(items: Iterator[T], room: int = 1) -> Iterator[T]:
    """The items, which a thread of its own asks for: at most `room` of them wait.

    A thread that is inside a caller's iterator when nobody wants more can't be stopped there;
    it is a daemon, and ends when the iterator answers.
    """
    waiting: queue.Queue[T | _Raised | None] = queue.Queue(room)
    stop = threading.Event()

    def put(item: T | _Raised | None) -> None:
        while not stop.is_set():
            try:
                waiting.put(item, timeout=_POLL)
                return
            except queue.Full:
                pass

    def run() -> None:
        try:
            for item in items:
                put(item)
                del item  # or it would live while the next is made
                if stop.is_set():
                    return
            put(None)
        except BaseException as e:
            put(_Raised(e))

    thread = threading.Thread(target=run, name="ggtok reader", daemon=True)
    thread.start()
    try:
        while (item := _get(waiting)) is not None:
            if isinstance(item, _Raised):
                raise item.error
            yield item
            del item
    finally:
        stop.set()


def _get(waiting: queue.Queue[T]) -> T:
    while True:
        try:
            return waiting.get(timeout=_POLL)  # Windows handles Ctrl-C only between calls
        except queue.Empty:
            pass


class Behind(Generic[T]):
    """A thread that is given items, one after the other; what it raises, `put` raises.

    To be used with ``with``. If the block ends by an error, what waits is dropped.
    """

    def __init__(self, do: Callable[[T], object], room: int = 1) -> None:
        self._do = do
        self._waiting: queue.Queue[T | None] = queue.Queue(room)
        self._stop = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="ggtok writer", daemon=True)

    def __enter__(self) -> Behind[T]:
        self._thread.start()
        return self

    def put(self, item: T | None) -> None:
        while True:
            if self._error is not None:
                raise self._error
            try:
                self._waiting.put(item, timeout=_POLL)
                return
            except queue.Full:
                pass

    def __exit__(self, error: object, *_: object) -> None:
        try:
            if error is None:
                self.put(None)
        finally:
            if error is not None:
                self._stop.set()
            self._thread.join()
        if error is None and self._error is not None:
            raise self._error

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                try:
                    item = self._waiting.get(timeout=_POLL)
                except queue.Empty:
                    continue
                if item is None:
                    return
                self._do(item)
                del item
        except BaseException as e:
            self._error = e
