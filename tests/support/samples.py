"""How much the tests try: a sample, the same in each run, or everything with `pytest --full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

FULL = False  # `pytest --full`: set by tests/conftest.py before any test is imported


def some(cases: Iterable[T], one_in: int, first: int = 0) -> list[T]:
    """One in so many of the cases, from the `first` on (modulo `one_in`)."""
    return list(cases) if FULL else list(cases)[first % one_in :: one_in]


def times(n: int, of: int) -> int:
    """How often something random is tried: n times, all of which are `of`."""
    return of if FULL else n
