"""Interrupts a running call with a signal."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from types import FrameType

import pytest

import ggtok

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")


class Interrupted(BaseException):
    """Raised by a signal handler."""


def interrupted(
    call: Callable[[], object],
    seconds: float,
    error: BaseException | None = None,
    *,
    again: float = 1,
    skip: Callable[[FrameType | None], bool] = lambda frame: False,
) -> bool:
    """Runs `call`, and returns whether it ended with `error`, which the signal handler raises.

    The first signal arrives after `seconds`, then one every `again` seconds, in case a destructor
    swallows the error. The handler does nothing if `skip` returns true for the interrupted frame.

    The garbage collector is disabled during the call, because Python drops exceptions that handlers
    raise during `gc.callbacks`, and hypothesis installs such a callback.
    """
    error = error or Interrupted()

    def handler(number: int, frame: FrameType | None) -> None:
        if calling and not skip(frame):
            raise error

    calling = True
    before = signal.signal(signal.SIGALRM, handler)
    was_on = gc.isenabled()
    gc.disable()
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds, again)
        call()
        return False
    except BaseException as e:
        if e is not error:
            raise
        error.__traceback__ = None  # the traceback would keep the call's objects alive
        return True
    finally:
        calling = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        if was_on:
            gc.enable()


def stop_midway(
    tok: ggtok.Tokenizer,
    prepare: Callable[[int], Callable[[], object]],
    error: BaseException | None = None,
) -> None:
    """Asserts that a signal whose handler raises `error` can stop a call midway.

    `prepare(n)` returns a call to `tok` with n times the work of `prepare(1)`. Progress is measured
    by cache lookups of words, not by a clock. If the signal arrives too late, the next call does
    twice the work; if it arrives too early, the next signal arrives after twice the time.
    """
    words_of_one = _looked_up(tok, prepare(1))
    n, seconds = 1, 0.02
    while n <= 64 and seconds < 60:
        call, raised = prepare(n), list[bool]()
        words = _looked_up(tok, lambda: raised.append(interrupted(call, seconds, error)))  # noqa: B023
        if raised == [True] and 0 < words < 0.9 * n * words_of_one:
            return
        if words:
            n *= 2
        else:
            seconds *= 2
    raise AssertionError("no signal stopped the call midway")


def _looked_up(tok: ggtok.Tokenizer, call: Callable[[], object]) -> int:
    before = tok.cache_info()
    call()
    after = tok.cache_info()
    return after.hits + after.misses - before.hits - before.misses
