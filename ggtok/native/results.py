"""NumPy arrays over memory of C, without a copy."""

from __future__ import annotations

from functools import cache

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any

    from ggtok import _types as types

    # The owner of the memory, and the address and length of each of two arrays in it.
    Result = tuple[object, int, int, int, int]


@cache
def _numpy() -> Any:
    """NumPy, imported with the first array, because the import takes longer than loading a file."""
    import numpy as np

    return np


class _Memory:
    """`n` numbers at `address`. An array made from this keeps it, and so the memory, alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: object, address: int, n: int, type: str) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (n,),
            "typestr": _numpy().dtype(type).str,
        }


def id_arrays(
    result: Result,
) -> tuple[types.Int32Array, types.Int64Array]:
    """The ids and the offsets of a result of encode_batch."""
    owner, ids, n_ids, offsets, n_offsets = result
    asarray = _numpy().asarray
    return (
        asarray(_Memory(owner, ids, n_ids, "i4")),
        asarray(_Memory(owner, offsets, n_offsets, "i8")),
    )


def span_arrays(
    result: Result,
) -> tuple[types.Int64Array, types.Int64Array]:
    """The spans (one row per token) and the offsets of a result of encode_batch with spans."""
    owner, spans, n_ids, offsets, n_offsets = result
    asarray = _numpy().asarray
    return (
        asarray(_Memory(owner, spans, 2 * n_ids, "i8")).reshape(-1, 2),
        asarray(_Memory(owner, offsets, n_offsets, "i8")),
    )
