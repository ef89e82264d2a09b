"""Chooses samples of test cases, the same in each run, or all cases with `pytest --full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

# Whether to use all cases, as --full and --sample require. tests/conftest.py sets it before pytest
# imports the tests.
FULL = False


def some(cases: Iterable[T], one_in: int, first: int = 0) -> list[T]:
    """Returns all cases with --full; else every `one_in`-th, starting at `first` % `one_in`."""
    return list(cases) if FULL else list(cases)[first % one_in :: one_in]


def times(n: int, of: int) -> int:
    """Returns the number of random tries: `n`, or `of` with --full."""
    return of if FULL else n
