"""What threads and processes share: cached properties, bounded queues, messages through pipes."""

from __future__ import annotations

import pickle
import queue
import struct
from collections.abc import Callable
from typing import IO, Any, Generic, TypeVar, overload

T = TypeVar("T")


class cached_property(Generic[T]):  # noqa: N801  # as in functools
    """The cached_property of functools without the lock that it has before Python 3.12.

    All instances share that lock. If a process forks while another thread computes a property,
    the child waits for the lock forever. Without it, several threads may compute the value at
    the same time, but all get the same object.
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


_POLL = 0.05  # seconds; Windows handles Ctrl-C only between calls


class Channel(Generic[T]):
    """A queue of at most `room` items from one thread to others.

    Unlike `queue.Queue`, it is safe if a signal handler raises an exception, which can leave the
    lock of a `queue.Queue` held forever. Operations of a `SimpleQueue` are atomic.
    """

    def __init__(self, room: int) -> None:
        self._items: queue.SimpleQueue[T | None] = queue.SimpleQueue()  # None: no more items
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(room):
            self._room.put(None)
        self.closed = False

    def put(self, item: T) -> bool:
        """Waits for room and adds an item. False: the channel is closed."""
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
        """The next item; None: there are no more, or the channel is closed."""
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


def write_frame(pipe: IO[bytes], message: object) -> None:
    data = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    pipe.write(struct.pack("<Q", len(data)) + data)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> Any:
    """The next message.

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
