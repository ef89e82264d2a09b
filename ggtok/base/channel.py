"""What one thread hands to others, a few items at a time."""

from __future__ import annotations

import queue
from typing import Generic, TypeVar

T = TypeVar("T")
_POLL = 0.05  # seconds; Windows handles Ctrl-C only between calls


class Channel(Generic[T]):
    """Items from one thread to others, of which at most `room` wait.

    What `queue.Queue` is for, but safe where a signal's handler raises: the lock of that one can
    stay held then, and everybody waits for it. Each operation of a `SimpleQueue` is done or not.
    """

    def __init__(self, room: int) -> None:
        self._items: queue.SimpleQueue[T | None] = queue.SimpleQueue()  # None: that was all
        self._room: queue.SimpleQueue[None] = queue.SimpleQueue()
        for _ in range(room):
            self._room.put(None)
        self.closed = False

    def put(self, item: T) -> bool:
        """Waits for room; False: the channel is closed."""
        while not self.closed:
            try:
                self._room.get(timeout=_POLL)
            except queue.Empty:
                continue
            self._items.put(item)
            return True
        return False

    def end(self) -> None:
        """No more will be put."""
        self._items.put(None)

    def close(self) -> None:
        """Nobody wants what waits: all that wait return."""
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
        self._items.put(None)  # for the others that wait
        return None
