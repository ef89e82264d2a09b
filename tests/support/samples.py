"""Chooses samples of test cases, the same in each run, or all cases with `pytest --full`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeVar

import pytest

T = TypeVar("T")

# Whether to use all cases, as --full and --sample require. tests/conftest.py sets it before pytest
# imports the tests.
FULL = False
# --thin and --sample-seed, set in the same way.
THIN, SEED = 1, 0


def some(cases: Iterable[T], one_in: int, first: int = 0) -> list[T]:
    """Returns all cases with --full; else every `one_in`-th, starting at `first` % `one_in`."""
    return list(cases) if FULL else list(cases)[first % one_in :: one_in]


def thinned(cases: Iterable[T]) -> list[T]:
    """Returns every N-th case with --thin N, others for each seed; all cases without it. For tries
    within a test; pytest drops cases of parametrized tests itself."""
    return list(cases)[SEED % THIN :: THIN]


def sampled(cases: Iterable[Any], one_in: int) -> list[Any]:
    """Returns the cases of a parametrized test: every `one_in`-th, and the others marked `full`."""
    return [
        pytest.param(case, marks=pytest.mark.full) if i % one_in else case
        for i, case in enumerate(cases)
    ]


def times(n: int, of: int) -> int:
    """Returns the number of random tries: `n`, or `of` with --full."""
    return of if FULL else n
