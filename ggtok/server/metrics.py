"""Metrics in Prometheus' text format: requests, times and bytes.

Each process of a server writes its numbers to its own file in a shared folder, and every process
can report the sums. A single process needs no file.

A file is an array of doubles: a row for each endpoint (numbers of requests by status and by
duration, then sums), followed by the gauges.
"""

from __future__ import annotations

import logging
import mmap
import os
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from ggtok import __version__

STATUSES = (
    *(200, 204, 206, 304, 400, 401, 403, 404, 405, 408, 409, 413, 422, 429, 431, 499),
    *(500, 501, 502, 503, 504),
    0,  # any other status
)
SECONDS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_AT_STATUS = {status: at for at, status in enumerate(STATUSES)}
_TIMES = len(STATUSES)
_SUMS = _TIMES + len(SECONDS) + 1
_ROW = _SUMS + 3  # a row ends with three sums: seconds, bytes received, bytes sent
_DOUBLE = 8
_COUNT = "_total"

logger = logging.getLogger("ggtok.server.metrics")

Gauge = tuple[str, str, Callable[[], float]]


class Metrics:
    """The numbers of this process and its siblings. Only the event loop may change them.

    Args:
        endpoints: the names of the rows.
        gauges: each gauge's name, meaning, and a function that returns its value. A name that ends
            in ``_total`` makes it a counter.
        folder: where the processes of a server keep their files.
    """

    def __init__(
        self, endpoints: Sequence[str], gauges: Sequence[Gauge], folder: str | None = None
    ) -> None:
        self._endpoints = list(endpoints)
        self._gauges = list(gauges)
        self._folder = None if folder is None else Path(folder)
        # The first gauge, the number of requests in progress, is this class's own.
        self._at_gauges = len(self._endpoints) * _ROW
        self._size = (self._at_gauges + 1 + len(self._gauges)) * _DOUBLE
        self._numbers = memoryview(self._map()).cast("d")

    def _map(self) -> mmap.mmap:
        if self._folder is None:
            return mmap.mmap(-1, self._size)
        path = self._folder / str(os.getpid())
        try:
            with path.open("w+b") as file:
                # Write to every page: if the disk is full, writing to a mapped page that has no
                # place on the disk would end the process.
                file.write(bytes(self._size))
                file.flush()
                return mmap.mmap(file.fileno(), self._size)
        except OSError as e:
            logger.warning("metrics are those of one process: %s: %s", path, e.strerror)
            with suppress(OSError):
                path.unlink()
            self._folder = None
            return mmap.mmap(-1, self._size)

    def begun(self) -> None:
        self._numbers[self._at_gauges] += 1

    def ended(self, row: int, status: int, seconds: float, received: int, sent: int) -> None:
        """Counts a request that has ended."""
        numbers, at = self._numbers, row * _ROW
        numbers[self._at_gauges] -= 1
        numbers[at + _AT_STATUS.get(status, len(STATUSES) - 1)] += 1
        numbers[at + _TIMES + bisect_left(SECONDS, seconds)] += 1
        numbers[at + _SUMS] += seconds
        numbers[at + _SUMS + 1] += received
        numbers[at + _SUMS + 2] += sent

    def text(self) -> str:
        """Returns all numbers in Prometheus' text format."""
        for at, (_, _, value) in enumerate(self._gauges, self._at_gauges + 1):
            self._numbers[at] = value()
        return "\n".join(self._lines(self._summed())) + "\n"

    def _summed(self) -> list[float]:
        total = list(self._numbers)
        for name, data in self._others():
            alive = _is_alive(int(name))
            for at, value in enumerate(memoryview(data).cast("d")):
                # Counts remain after their process ends, so that sums never decrease.
                if alive or at < self._at_gauges or self._is_count(at):
                    total[at] += value
        return total

    def _others(self) -> Iterator[tuple[str, bytes]]:
        """Yields the process id and the contents of each other process's file."""
        if self._folder is None:
            return
        with suppress(FileNotFoundError):  # the server is ending, and its folder is deleted
            for path in self._folder.iterdir():
                data = path.read_bytes()
                # A file of another size belongs to a process that is just starting.
                if len(data) == self._size and path.name != str(os.getpid()):
                    yield path.name, data

    def _is_count(self, at: int) -> bool:
        """Whether the number at this index belongs to a gauge that is a counter."""
        return at > self._at_gauges and self._gauges[at - self._at_gauges - 1][0].endswith(_COUNT)

    def _lines(self, numbers: list[float]) -> list[str]:
        rows = [
            (name, numbers[at * _ROW : (at + 1) * _ROW]) for at, name in enumerate(self._endpoints)
        ]
        rows = [(name, row) for name, row in rows if any(row)]
        lines = _head("ggtok_requests_total", "counter", "Requests by endpoint and status.")
        for name, row in rows:
            for status, value in zip(STATUSES, row, strict=False):
                if value:
                    code = status or "other"
                    lines.append(
                        f'ggtok_requests_total{{endpoint="{name}",status="{code}"}} {value:.0f}'
                    )
        lines += _head("ggtok_request_seconds", "histogram", "Time from request to answer.")
        for name, row in rows:
            below = 0.0
            for limit, value in zip((*SECONDS, "+Inf"), row[_TIMES:_SUMS], strict=True):
                below += value
                lines.append(
                    f'ggtok_request_seconds_bucket{{endpoint="{name}",le="{limit}"}} {below:.0f}'
                )
            lines.append(f'ggtok_request_seconds_sum{{endpoint="{name}"}} {row[_SUMS]:.6f}')
            lines.append(f'ggtok_request_seconds_count{{endpoint="{name}"}} {below:.0f}')
        for at, what in (_SUMS + 1, "received"), (_SUMS + 2, "sent"):
            lines += _head(f"ggtok_{what}_bytes_total", "counter", f"Bytes of bodies {what}.")
            lines += [
                f'ggtok_{what}_bytes_total{{endpoint="{name}"}} {row[at]:.0f}' for name, row in rows
            ]
        gauges = [(name, meaning) for name, meaning, _ in self._gauges]
        gauges.insert(0, ("requests_in_progress", "Requests that are being answered."))
        for at, (name, meaning) in enumerate(gauges, self._at_gauges):
            lines += _head(
                f"ggtok_{name}", "counter" if name.endswith(_COUNT) else "gauge", meaning
            )
            lines.append(f"ggtok_{name} {numbers[at]:.0f}")
        lines += _head("ggtok_build_info", "gauge", "The version, as a label.")
        lines.append(f'ggtok_build_info{{version="{__version__}"}} 1')
        return lines


def _head(name: str, kind: str, meaning: str) -> list[str]:
    return [f"# HELP {name} {meaning}", f"# TYPE {name} {kind}"]


def _is_alive(pid: int) -> bool:
    if os.name == "nt":  # signal 0 would be Ctrl+C
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
