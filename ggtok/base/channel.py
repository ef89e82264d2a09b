"""A bounded queue from one thread to others."""

from __future__ import annotations

import queue
from typing import Generic, TypeVar

T = TypeVar("T")
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
