"""Chooses samples of test cases, the same in each run, or all cases with `pytest --full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

FULL = False  # whether --full is given; tests/conftest.py sets it before tests are imported


def some(cases: Iterable[T], one_in: int, first: int = 0) -> list[T]:
    """Returns every `one_in`-th case, starting with number `first` (modulo `one_in`)."""
    return list(cases) if FULL else list(cases)[first % one_in :: one_in]


def times(n: int, of: int) -> int:
    """Returns the number of random tries: `n`, or `of` with --full."""
    return of if FULL else n
