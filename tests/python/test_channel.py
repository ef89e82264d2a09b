"""A channel between threads, interrupted by signals at any moment."""

from __future__ import annotations

import gc
import itertools
import random
import signal
import threading
from collections.abc import Iterator
from types import FrameType
from typing import Any

import pytest

from ggtok.base.concurrency import BackgroundWriter, Channel, ahead, map_ordered
from tests.support.waits import LIMIT

# The fixture replaces the timer of pytest-timeout, which must therefore start before it.
pytestmark = pytest.mark.timeout(LIMIT, func_only=False)


class Interrupted(BaseException):
    pass


@pytest.fixture
def interrupts() -> Iterator[None]:
    """Interrupts the main thread repeatedly."""

    def handler(_: int, frame: FrameType | None) -> None:
        if frame and frame.f_globals.get("__name__", "").startswith("coverage."):
            signal.setitimer(signal.ITIMER_REAL, 0.0001, 5)  # retry later: coverage may hold a lock
            return
        raise Interrupted

    if not hasattr(signal, "setitimer"):
        pytest.skip("needs POSIX timers")
    before = signal.signal(signal.SIGALRM, handler)
    gc.disable()  # Python drops exceptions raised in gc callbacks, and hypothesis has one
    yield
    gc.enable()
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupt_after(round: int) -> None:
    # The timer repeats, in case something (a destructor, for instance) swallows the first
    # exception.
    signal.setitimer(signal.ITIMER_REAL, 0.0005 + 0.000013 * (round % 50), 5)


def test_items_come_in_order_within_the_capacity() -> None:
    channel: Channel[int] = Channel(2)
    sent: list[int] = []

    def send() -> None:
        for i in range(20):
            assert channel.put(i)
            sent.append(i)
        channel.end()

    thread = threading.Thread(target=send)
    thread.start()
    received = []
    while (item := channel.get()) is not None:
        received.append(item)
        assert len(sent) <= len(received) + 3
    thread.join()
    assert received == list(range(20)) and channel.get() is None


def test_close_ends_all_waits() -> None:
    channel: Channel[int] = Channel(1)
    assert channel.put(1)
    results: list[object] = []
    threads = [
        threading.Thread(target=lambda: results.append(channel.put(2))),
        *(threading.Thread(target=lambda: results.append(channel.get())) for _ in range(4)),
    ]
    for thread in threads:
        thread.start()
    channel.close()
    for thread in threads:
        thread.join(LIMIT)
        assert not thread.is_alive()
    assert channel.put(3) is False and channel.get() is None


def test_an_interrupted_sender_blocks_nobody(interrupts: None) -> None:
    for round in range(300):
        channel: Channel[int] = Channel(2)
        receivers = [
            threading.Thread(target=lambda: list(iter(channel.get, None)))  # noqa: B023
            for _ in range(2)
        ]
        for receiver in receivers:
            receiver.start()
        try:
            interrupt_after(round)
            for i in itertools.count():
                channel.put(i)
        except Interrupted:
            signal.setitimer(signal.ITIMER_REAL, 0)
        channel.close()
        for receiver in receivers:
            receiver.join(LIMIT)
            assert not receiver.is_alive()


def test_interrupted_sending_ends(interrupts: None) -> None:
    for round in range(300):
        written: list[int] = []
        with pytest.raises(Interrupted), BackgroundWriter(written.append) as writer:  # noqa: PT012
            interrupt_after(round)
            for i in itertools.count():
                writer.put(i)
        signal.setitimer(signal.ITIMER_REAL, 0)
        assert not writer._thread.is_alive()
        assert written == list(range(len(written)))


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("n", [0, 1, 99])
def test_mapped_keeps_the_order(threads: int, n: int) -> None:
    """Threads finish in any order, but results come in the order of the items."""
    gates = [threading.Event() for _ in range(n)]

    def function(i: int) -> int:
        if (i + 1) % threads:  # waits for the next item's thread
            gates[min(i + 1, n - 1)].wait(0.01)
        gates[i].set()
        return -i

    results = map_ordered(function, iter(range(n)), threads, size=lambda i: 1, room=99)
    assert list(results) == [-i for i in range(n)]


@pytest.mark.parametrize("threads", [1, 3])
def test_mapped_reads_a_bounded_number_of_items(threads: int) -> None:
    n_read = 0

    def items() -> Iterator[int]:
        nonlocal n_read
        for n_read in itertools.count(1):
            yield n_read - 1

    results = map_ordered(int, items(), threads, size=lambda i: 1, room=99)
    for i, result in enumerate(itertools.islice(results, 50)):
        assert result == i
        # For each thread an input, an item in work and a result; the reader's; the caller's.
        assert n_read <= i + 1 + 3 * threads + 1
    results.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("room", [1, 10, 25])
def test_mapped_bounds_the_size_of_items_in_progress(room: int) -> None:
    """An item larger than the room is in progress alone; the reader has one more item."""
    sizes = [random.Random(7).choice([1, 3, 20, 40]) for _ in range(300)]
    read: list[int] = []

    def items() -> Iterator[int]:
        for i in range(len(sizes)):
            read.append(i)
            yield i

    results = map_ordered(lambda i: i + 1, items(), 4, size=lambda i: sizes[i], room=room)
    for i, result in enumerate(results):
        assert result == i + 1
        in_progress = read[i:-1]  # the reader may be waiting with the last item
        assert len(in_progress) <= 1 or sum(sizes[k] for k in in_progress) <= room
    assert len(read) == len(sizes)


def test_mapped_starts_only_the_threads_that_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[str] = []

    class Thread(threading.Thread):
        def start(self) -> None:
            started.append(self.name)
            super().start()

    monkeypatch.setattr(threading, "Thread", Thread)
    assert list(map_ordered(str, iter(range(2)), 99, size=lambda i: 1, room=99)) == ["0", "1"]
    assert sorted(started) == ["ggtok reader", "ggtok worker", "ggtok worker"]


def test_mapped_raises_an_error_if_no_thread_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    class Thread(threading.Thread):
        def start(self) -> None:
            if self.name == "ggtok worker":
                raise RuntimeError("can't start new thread")
            super().start()

    monkeypatch.setattr(threading, "Thread", Thread)
    with pytest.raises(RuntimeError, match="can't start"):
        list(map_ordered(str, iter(range(9)), 2, size=lambda i: 1, room=99))


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("fails", ["items", "function"])
def test_mapped_raises_errors_in_order(threads: int, fails: str) -> None:
    def items() -> Iterator[int]:
        for i in range(20):
            if fails == "items" and i == 7:
                raise LookupError(str(i))
            yield i

    def function(i: int) -> int:
        if i == 7:
            raise LookupError(str(i))
        return i

    results = map_ordered(function, items(), threads, size=lambda i: 1, room=99)
    assert [next(results) for _ in range(7)] == list(range(7))
    with pytest.raises(LookupError, match="7"):
        next(results)


@pytest.mark.parametrize("threads", [0, 2])
def test_interrupted_receiving_ends(interrupts: None, threads: int) -> None:
    for round in range(300):
        numbers = iter(itertools.count())
        options: Any = {"size": lambda i: 1, "room": 99}
        items = map_ordered(int, numbers, threads, **options) if threads else ahead(numbers)
        assert next(items) == 0  # start the threads now: doing so isn't safe to interrupt
        with pytest.raises(Interrupted):  # noqa: PT012
            interrupt_after(round)
            for i, item in enumerate(items, 1):
                assert i == item
        signal.setitimer(signal.ITIMER_REAL, 0)
        items.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name in ("ggtok reader", "ggtok worker"):
            thread.join(LIMIT)
            assert not thread.is_alive()
