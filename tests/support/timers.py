"""Calls during which a signal comes."""

from __future__ import annotations

import gc
import signal
from collections.abc import Callable


def call_with_timer(
    call: Callable[[], object], seconds: float, again: float = 0, *, of_processor: bool = False
) -> None:
    """Calls, and sets a timer first: where the call's exceptions are caught, so is what a handler
    raises at once. SIGALRM comes after the seconds, or SIGPROF after as much processor time.

    No garbage is collected meanwhile: Python drops what a handler raises while one of
    `gc.callbacks` runs, and hypothesis has one there.
    """
    timer = signal.ITIMER_PROF if of_processor else signal.ITIMER_REAL
    was_on = gc.isenabled()
    gc.disable()
    try:
        signal.setitimer(timer, seconds, again)
        call()
    finally:
        if was_on:
            gc.enable()
