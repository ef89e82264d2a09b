"""Waits for events that should happen immediately. No test depends on how long a wait takes."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 120.0  # seconds to wait before the test fails
_PAUSE = 0.002  # seconds between checks


def until(happened: Callable[[], object]) -> None:
    """Waits until `happened()` returns a true value."""
    for _ in range(int(LIMIT / _PAUSE)):
        if happened():
            return
        time.sleep(_PAUSE)
    raise TimeoutError(f"the event didn't happen within {LIMIT:.0f} seconds")
