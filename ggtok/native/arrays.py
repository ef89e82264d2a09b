"""Converts results to NumPy arrays and to Arrow data, and Arrow data to texts."""

from __future__ import annotations

from functools import cache

from ggtok import errors
from ggtok.native.arguments import on_main_thread
from ggtok.native.library import error, ffi, lib
from ggtok.native.native_tokenizer import _Failed

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    # The owner of the memory; the addresses and lengths of the ids and the offsets; the address of
    # the spans, if there are any.
    Result = tuple[object, int, int, int, int, int]

# ---- NumPy arrays over memory that C allocated, without a copy ----


@cache
def _numpy() -> Any:
    """Imports NumPy when first needed, because that takes longer than loading a file."""
    import numpy as np

    return np


class _Memory:
    """`n` numbers at `address`. An array made from this object keeps it and its memory alive."""

    __slots__ = ("__array_interface__", "_owner")

    def __init__(self, owner: object, address: int, n: int, type: str) -> None:
        self._owner = owner
        self.__array_interface__ = {
            "version": 3,
            "data": (address, False),
            "shape": (n,),
            "typestr": _numpy().dtype(type).str,
        }


def id_arrays(result: Result) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
    """Returns the arrays of ids and offsets for a result of encode_batch."""
    owner, ids, n_ids, offsets, n_offsets, _ = result
    asarray = _numpy().asarray
    return (
        asarray(_Memory(owner, ids, n_ids, "i4")),
        asarray(_Memory(owner, offsets, n_offsets, "i8")),
    )


def offsets_of(result: Result) -> list[int]:
    """Returns the offsets for a result of encode_batch, without NumPy."""
    _, _, _, offsets, n_offsets, _ = result
    return list(ffi.unpack(ffi.cast("int64_t *", offsets), n_offsets))


def span_arrays(result: Result) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Returns the arrays of spans (one row per token) and offsets for a result of encode_batch
    with spans."""
    owner, _, n_ids, offsets, n_offsets, spans = result
    asarray = _numpy().asarray
    return (
        asarray(_Memory(owner, spans, 2 * n_ids, "i8")).reshape(-1, 2),
        asarray(_Memory(owner, offsets, n_offsets, "i8")),
    )


# ---- Arrow data, through the functions of cext/python/arrow.c ----

_functions: list[Any] = []
if not lib.ggtok_arrow_bind(id(_functions), id(_Failed)):
    raise errors.OutOfMemoryError("out of memory")  # pragma: no cover
_read, _schema, _export, _sizes = _functions


def read_capsules(first: object, second: object | None) -> tuple[object, int, int | None]:
    """Reads texts from the capsule of a stream, or from the capsules of a schema and an array.

    Returns the texts as encode_batch accepts them, their number, and the index of the first null
    row or None. Consumes the capsules.
    """
    try:
        texts: tuple[object, int, int | None] = _read(first, second, on_main_thread())
        return texts
    except _Failed as e:
        err = ffi.from_buffer("ggtok_error *", e.args[0])
        if err.status == lib.GGTOK_ERR_UNSUPPORTED:
            raise errors.InvalidTypeError(error(err, where="texts").args[0]) from None
        raise error(err, where="texts") from None
    except MemoryError:
        raise errors.OutOfMemoryError("out of memory") from None


def schema() -> object:
    """Returns a new capsule with the schema, which is the same for all arrays of ids."""
    return _schema()


def export(ids: object) -> object:
    """Returns a new capsule with an array that shares the memory of `ids`, a result of
    encode_batch."""
    return _export(ids)


def sizes(ids: object) -> tuple[int, int]:
    """Returns the number of texts and the number of null texts in a result of encode_batch."""
    rows, nulls = _sizes(ids)
    return rows, nulls
