"""Objects that no argument accepts."""

from __future__ import annotations

import io
import os
from typing import Any

import numpy as np


class SurrogatePath(os.PathLike[str]):
    def __fspath__(self) -> str:
        return "\ud800"


class NoPath(os.PathLike[str]):
    def __fspath__(self) -> str:
        return 7  # type: ignore[return-value]


def wrong_values() -> list[object]:
    released = memoryview(b"abc")
    released.release()
    nested: list[Any] = []
    for _ in range(3000):
        nested = [nested]
    return [
        *(None, True, 7, -1, 10**5000, -(10**5000), 1.5, float("nan"), "\ud800", "a\0b", b"\xff"),
        *("", b"", [], ["\ud800"], [10**5000], [[10**5000]], [None], {}, {"a": 1}, {1: 2}),
        *(np.array([1, 2]), np.array(["a", "b"]), np.array([1.5]), np.array(object())),
        *(released, [released], object(), object, len, SurrogatePath(), NoPath()),
        *(io.BytesIO(b""), io.StringIO("x"), nested, range(3), Exception(), ..., "x" * 1000),
    ]
