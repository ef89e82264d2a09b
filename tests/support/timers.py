"""Calls during which a signal comes."""

from __future__ import annotations

import signal
from collections.abc import Callable


def call_with_timer(
    call: Callable[[], object], seconds: float, again: float = 0, *, of_processor: bool = False
) -> None:
    """Calls, and sets a timer first: where the call's exceptions are caught, so is what a handler
    raises at once. SIGALRM comes after the seconds, or SIGPROF after as much processor time."""
    timer = signal.ITIMER_PROF if of_processor else signal.ITIMER_REAL
    signal.setitimer(timer, seconds, again)
    call()
