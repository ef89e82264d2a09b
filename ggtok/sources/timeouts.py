"""Limits on waiting for servers: timeouts, notices about long waits, and offline mode."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# The time in seconds after which the listener is called.
SILENT = 2.0

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls `listener` with a text when ggtok waits for longer than two seconds.

    The library itself prints nothing. An interactive program can wrap its calls, as the command
    line does::

        with ggtok.sources.telling(lambda text: print(text, file=sys.stderr)):
            tok = ggtok.load("user/repo")

    The text is one line without control characters: ``"waiting for huggingface.co
    (user/repo) ..."``. The listener is called on another thread while the call continues, and
    its exceptions are ignored. The setting applies to the current context
    (:mod:`contextvars`), not to other threads and tasks.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """Calls the listener with a text about `what` if the block takes longer than SILENT."""
    listener = _listener.get()
    if listener is None:
        yield
        return

    def tell() -> None:
        try:
            listener(f"waiting for {what} ...")
        except Exception:
            return

    timer = threading.Timer(SILENT, tell)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


class CallTimeout(Exception):
    """Raised when a function doesn't return in time."""


def call_with_timeout(seconds: float, function: Callable[[], T]) -> T:
    """Calls function(), such as name resolution, which has no timeout itself.

    The function runs on a separate thread, which is abandoned when the time is up.

    Raises:
        CallTimeout: the function hasn't returned after `seconds`.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as e:  # raised again below, on the caller's thread
            errors.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise CallTimeout
    return results[0]


# ---- offline mode ----

_offline: ContextVar[bool] = ContextVar("ggtok offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """A context in which no server is contacted, so that only local models are found."""
    token = _offline.set(True)
    try:
        yield
    finally:
        _offline.reset(token)


def offline_reason() -> str | None:
    """Returns why no server may be contacted and what to do about it, or None if servers are
    allowed."""
    if _offline.get():
        return "--offline is given: leave it out"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set: unset it"
    return None
