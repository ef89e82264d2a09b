"""How much the tests try: a sample, the same in each run, or all with GGTOK_TEST_ALL=1."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

T = TypeVar("T")

ALL = os.environ.get("GGTOK_TEST_ALL") == "1"


def some(cases: Iterable[T], one_in: int, first: int = 0) -> list[T]:
    """One in so many of the cases, from the `first` on (modulo `one_in`)."""
    return list(cases) if ALL else list(cases)[first % one_in :: one_in]


def times(n: int, of: int) -> int:
    """How often something random is tried: n times, all of which are `of`."""
    return of if ALL else n
