"""Concurrency: cached properties, queues between threads, helper threads that read ahead or write
in the background, and messages through pipes."""

from __future__ import annotations

import pickle
import queue
import struct
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import cycle
from typing import IO, Any, Generic, TypeVar, overload

T = TypeVar("T")
R = TypeVar("R")


class cached_property(Generic[T]):  # noqa: N801  # as in functools
    """Like cached_property in functools, but without the lock that it takes before Python 3.12.

    All instances share that lock. If a process forks while another thread computes a property,
    the child waits for the lock forever. Without the lock, several threads may compute the value
    at the same time, but all get the same object.
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self._function = function
        self._name = function.__name__
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> cached_property[T]: ...
    @overload
    def __get__(self, instance: object, owner: type) -> T: ...
    def __get__(self, instance: object, owner: type) -> cached_property[T] | T:
        if instance is None:
            return self
        found: T = instance.__dict__.setdefault(self._name, self._function(instance))
        return found


_POLL = 0.05  # seconds per wait; Windows handles Ctrl-C only between waits


class Channel(Generic[T]):
    """A queue from one thread to others, which holds at most `room` items.

    A signal handler that raises an exception can leave the lock of a `queue.Queue` held forever.
    This class is safe, because operations of a `SimpleQueue` are atomic.
    """

    def __init__(self, room: int) -> None:
        self._items: queue.SimpleQueue[T | None] = queue.SimpleQueue()  # None: no more items
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(room):
            self._room.put(None)
        self.closed = False

    def put(self, item: T) -> bool:
        """Waits for room and adds an item; returns False if the channel is closed."""
        while not self.closed:
            try:
                self._room.get(timeout=_POLL)
            except queue.Empty:
                continue
            self._items.put(item)
            return True
        return False

    def end(self) -> None:
        """Marks the end of the items."""
        self._items.put(None)

    def close(self) -> None:
        """Discards waiting items; all threads that wait in `put` or `get` return."""
        self.closed = True
        self._items.put(None)

    def get(self) -> T | None:
        """Returns the next item, or None if there are no more or the channel is closed."""
        while not self.closed:
            try:
                item = self._items.get(timeout=_POLL)
            except queue.Empty:
                continue
            if item is None:
                break
            self._room.put(None)
            return item
        self._items.put(None)  # wakes the next waiting thread
        return None


class _Raised:
    def __init__(self, error: BaseException) -> None:
        self.error = error


def ahead(items: Iterator[T], room: int = 1) -> Iterator[T]:
    """Yields the items. A separate thread prefetches up to `room` of them.

    If the caller stops early, the thread may be inside the iterator, where it can't be interrupted.
    So it is a daemon thread, and ends when the iterator returns.
    """
    waiting: Channel[T | _Raised] = Channel(room)

    def run() -> None:
        try:
            for item in items:
                if not waiting.put(item):
                    return
                del item  # frees it before the next one is produced
        except BaseException as e:
            waiting.put(_Raised(e))
        waiting.end()

    try:
        _start(run, "ggtok reader")
        while (item := waiting.get()) is not None:
            if isinstance(item, _Raised):
                raise item.error
            yield item
            del item
    finally:
        waiting.close()


def map_ordered(
    function: Callable[[T], R],
    items: Iterator[T],
    threads: int,
    *,
    size: Callable[[T], int],
    room: int,
) -> Iterator[R]:
    """Yields ``function(item)``, which mustn't be None, for each item, in order.

    One thread reads the items, and up to `threads` others, started as needed, call the function.
    The items in progress, whose results the caller hasn't finished with, have a total `size` of at
    most `room`, or there is only one; one more may have been read.

    If the caller stops early, the threads end after their current item, as in :func:`ahead`.
    """
    inputs: list[Channel[T | _Raised]] = [Channel(1) for _ in range(threads)]
    outputs: list[Channel[R | _Raised]] = [Channel(1) for _ in range(threads)]
    in_progress: queue.SimpleQueue[int] = queue.SimpleQueue()  # the sizes of items in progress
    finished: queue.SimpleQueue[int] = queue.SimpleQueue()  # the sizes of finished items

    def read() -> None:
        n = total = 0
        try:
            for item in items:
                n_bytes = size(item)
                while total and total + n_bytes > room:
                    if inputs[0].closed:
                        return
                    with suppress(queue.Empty):
                        total -= finished.get(timeout=_POLL)
                total += n_bytes
                in_progress.put(n_bytes)
                k = n % threads
                if n < threads:
                    _start(partial(_apply, function, inputs[k], outputs[k]), "ggtok worker")
                n += 1
                if not inputs[k].put(item):
                    return
                del item  # frees it before the next one is produced
        except BaseException as e:
            if n < threads:  # this position's worker hasn't started
                outputs[n].put(_Raised(e))
            else:
                inputs[n % threads].put(_Raised(e))
        for channel in inputs[:n]:
            channel.end()
        for output in outputs[n:]:
            output.end()

    try:
        _start(read, "ggtok reader")
        for output in cycle(outputs):
            if (result := output.get()) is None:
                return
            if isinstance(result, _Raised):
                raise result.error
            yield result
            del result
            finished.put(in_progress.get())
    finally:
        for channel in inputs:
            channel.close()
        for output in outputs:
            output.close()


def _start(function: Callable[[], object], name: str) -> None:
    threading.Thread(target=function, name=name, daemon=True).start()


def _apply(
    function: Callable[[T], R], inputs: Channel[T | _Raised], outputs: Channel[R | _Raised]
) -> None:
    """Calls the function for each input and puts the result, or the error, into `outputs`."""
    while (item := inputs.get()) is not None:
        result: R | _Raised
        try:
            result = item if isinstance(item, _Raised) else function(item)
        except BaseException as e:
            result = _Raised(e)
        del item
        if not outputs.put(result):
            return
        del result
    outputs.end()


class BackgroundWriter(Generic[T]):
    """A thread that calls a function for each item, in order.

    Use it in a ``with`` statement. An error of the function is raised by the next `put`, or at the
    end of the block. If the block raises an error, items that still wait are dropped.
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

    @property
    def stopped_between_items(self) -> bool:
        """Whether the thread has ended without an error, so that no item is half done."""
        return self._error is None and not self._thread.is_alive()

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


def write_frame(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any:
    """Returns the next message from the pipe.

    Raises:
        EOFError: the pipe ended before a complete message.
    """
    size = pipe.read(8)
    if len(size) < 8:
        raise EOFError
    n = struct.unpack("<Q", size)[0]
    data = pipe.read(n)
    if len(data) < n:
        raise EOFError
    return pickle.loads(data)
