"""Waiting for what may not come: with a limit, and with a notice for whoever asks for one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

# Seconds before a listener hears what is being waited for.
SILENT = 2.0

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@contextmanager
def telling(listener: Callable[[str], None]) -> Iterator[None]:
    """Calls `listener` with what ggtok waits for, once a wait takes longer than two seconds.

    The library itself prints nothing. A program that someone is watching wraps its
    calls, as the command line does::

        with ggtok.sources.telling(lambda text: print(text, file=sys.stderr)):
            tok = ggtok.load("user/repo")

    The text is one line without control characters: ``"waiting for huggingface.co
    (user/repo) ..."``. It comes from another thread, while the call goes on; what the
    listener raises is lost. The setting is the current context's (:mod:`contextvars`),
    so other threads and tasks are not affected.
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """The listener hears of `what` if the block takes long."""
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
    """A function did not end in time."""


def call_with_timeout(seconds: float, function: Callable[[], T]) -> T:
    """function(), for calls that take no limit themselves, such as resolving a name.

    They run in a thread of their own, which is left to itself when the time is over.

    Raises:
        CallTimeout: it has not ended after so many seconds.
    """
    results: list[T] = []
    errors: list[BaseException] = []

    def run() -> None:
        try:
            results.append(function())
        except BaseException as e:  # raised again below, in the caller's thread
            errors.append(e)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    if not results:
        raise CallTimeout
    return results[0]
