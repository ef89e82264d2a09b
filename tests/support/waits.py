"""Waiting for what comes at once. No test depends on how soon that is."""

from __future__ import annotations

import time
from collections.abc import Callable

LIMIT = 120.0  # seconds: only a test that fails waits for so long
_PAUSE = 0.002


def until(happened: Callable[[], object]) -> None:
    """Returns once `happened()` is true."""
    for _ in range(int(LIMIT / _PAUSE)):
        if happened():
            return
        time.sleep(_PAUSE)
    raise TimeoutError(f"it did not happen within {LIMIT:.0f} seconds")
