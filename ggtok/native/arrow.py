"""Arrow data, through the functions of cext/python/arrow.c."""

from __future__ import annotations

from ggtok import errors
from ggtok.native.arguments import on_main_thread
from ggtok.native.failures import error
from ggtok.native.library import ffi, lib
from ggtok.native.tokenizer import _Failed

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any

_functions: list[Any] = []
if not lib.ggtok_arrow_bind(id(_functions), id(_Failed)):
    raise errors.OutOfMemoryError("out of memory")  # pragma: no cover
_read, _schema, _export, _sizes = _functions


def read(first: object, second: object | None) -> tuple[object, int, int | None]:
    """Reads texts from the capsule of a stream, or from the capsules of a schema and an array.

    Returns the argument for encode_batch, the number of texts, and the index of the first null
    row or None. The capsules are consumed.
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
    """A new capsule with the schema, which is the same for all ids."""
    return _schema()


def export(ids: object) -> object:
    """A new capsule with an array over the memory of `ids`, a result of encode_batch."""
    return _export(ids)


def sizes(ids: object) -> tuple[int, int]:
    """The number of texts, and the number of null texts."""
    rows, nulls = _sizes(ids)
    return rows, nulls
