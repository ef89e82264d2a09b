"""Signals that come while a call is at work."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable
from types import FrameType

import pytest

import ggtok

posix = pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs POSIX timers")


class Interrupted(BaseException):
    """What the handler of a signal raises."""


def interrupted(
    call: Callable[[], object],
    seconds: float,
    error: BaseException | None = None,
    *,
    again: float = 1,
    skip: Callable[[FrameType | None], bool] = lambda frame: False,
) -> bool:
    """Calls; whether the call ended with the error, which the handler of a signal raises.

    The signal comes after so many seconds, and then every `again` seconds, should a destructor
    swallow the error. The handler does nothing where `skip` is true of the frame it interrupts.

    No garbage is collected meanwhile: Python drops what a handler raises while one of
    `gc.callbacks` runs, and hypothesis has one there.
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
        error.__traceback__ = None  # nor does it keep what the call used
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
    """A signal whose handler raises the error stops a call midway, or AssertionError is raised.

    `prepare(n)` makes a call of `tok` that does n times the work of `prepare(1)`. How far it came
    is told by the number of words that were looked up, not by a clock. If the signal came too
    late, the next call has twice the work; if it came too early, the next signal is twice as late.
    """
    words_of_one = _looked_up(tok, prepare(1))
    n, seconds = 1, 0.02
    while n <= 64 and seconds < 2:
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
