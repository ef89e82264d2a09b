"""Arrow data as input and output, through the PyCapsule interface. Needs no Arrow library."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError
from ggtok.native import arrays

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ArrowIds"]


class ArrowIds:
    """An Arrow array of ids, as :meth:`ggtok.Tokenizer.encode_batch_arrow` returns it.

    Its type is ``large_list<int32>``, and the element of a null text is null. Arrow libraries
    import it without a copy: ``pyarrow.array(ids)``, ``polars.Series(ids)``,
    ``nanoarrow.Array(ids)``. It is immutable, can be exported any number of times by any
    thread, and stays valid after the tokenizer is freed.
    """

    __slots__ = ("_ids", "_n", "_null_count")

    def __init__(self, ids: object) -> None:
        # Users don't call this. `ids` is a result of encode_batch (cext/python/entry.c).
        self._ids = ids
        self._n, self._null_count = arrays.sizes(ids)

    @property
    def null_count(self) -> int:
        """The number of null texts."""
        return self._null_count

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return (
            f"<ggtok.arrow.ArrowIds large_list<int32> len={self._n} null_count={self._null_count}>"
        )

    def __arrow_c_schema__(self) -> object:
        """Returns the type, in a capsule named "arrow_schema"."""
        return arrays.schema()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """Returns the type and the array, in capsules named "arrow_schema" and "arrow_array".

        Args:
            requested_schema: ignored, as the interface allows, because there is only one type.
        """
        return arrays.schema(), arrays.export(self._ids)


class Texts:
    """The texts of an Arrow column, for one call to encode_batch (cext/python/entry.c).

    Attributes:
        texts: the texts in the form that encode_batch accepts.
        first_null: the index of the first null row, or None.
    """

    __slots__ = ("first_null", "texts")

    def __init__(self, first: object, second: object | None) -> None:
        self.texts, _, self.first_null = arrays.read_capsules(first, second)

    def without_nulls(self) -> object:
        """Returns `texts`; raises InvalidValueError if a row is null."""
        if self.first_null is None:
            return self.texts
        raise InvalidValueError(
            f"texts[{self.first_null}] is null: drop or fill nulls, or call encode_batch_arrow, "
            "which keeps them"
        )


def texts_of_exporter(texts: Any) -> Texts | None:
    """Returns the texts of an object that exports Arrow data.

    Returns None if the export fails because a package is missing (pandas without pyarrow) and the
    object is iterable. The caller can then iterate over the object instead.
    """
    stream = hasattr(texts, "__arrow_c_stream__")
    name = "__arrow_c_stream__" if stream else "__arrow_c_array__"
    try:
        capsules = getattr(texts, name)()
    except ImportError:
        if isinstance(texts, Iterable):
            return None
        raise
    except GGTokError:
        raise
    except Exception as e:
        raise InvalidValueError(f"texts: {name} failed: {e}") from e
    first, second = (capsules, None) if stream else _pair(capsules)
    try:
        return Texts(first, second)
    except GGTokError:
        raise
    except (TypeError, ValueError) as e:  # not a capsule, or a capsule with another name
        raise InvalidTypeError(f"texts: {name} returned no Arrow capsule: {e}") from None


def _pair(capsules: object) -> tuple[object, object]:
    if isinstance(capsules, tuple) and len(capsules) == 2 and capsules[1] is not None:
        return capsules
    raise InvalidTypeError(
        "texts: __arrow_c_array__ must return two capsules, a schema and an array"
    )
