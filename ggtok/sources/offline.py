"""Whether servers may be asked."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_given: ContextVar[bool] = ContextVar("ggtok offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Within it, no server is asked: only what is on this machine is found."""
    token = _given.set(True)
    try:
        yield
    finally:
        _given.reset(token)


def offline_reason() -> str | None:
    """Why no server may be asked, and what to do about it; None: it may."""
    if _given.get():
        return "--offline is given: leave it out"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set: unset it"
    return None
