"""Offline mode, in which no server is contacted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_offline: ContextVar[bool] = ContextVar("ggtok offline", default=False)


@contextmanager
def offline() -> Iterator[None]:
    """Within this context, no server is contacted: only local models are found."""
    token = _offline.set(True)
    try:
        yield
    finally:
        _offline.reset(token)


def offline_reason() -> str | None:
    """Why no server may be contacted, and what to do about it; None: servers are allowed."""
    if _offline.get():
        return "--offline is given: leave it out"
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        return "HF_HUB_OFFLINE is set: unset it"
    return None
