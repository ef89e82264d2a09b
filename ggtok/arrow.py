"""Arrow data in and out, by its PyCapsule interface: no Arrow library is needed."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError
from ggtok.native import arrow

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    from typing import Any

__all__ = ["ArrowIds"]


class ArrowIds:
    """What :meth:`ggtok.Tokenizer.encode_batch_arrow` gives: an Arrow array of ids.

    Its type is ``large_list<int32>``; the ids of a null are null. Whatever takes Arrow data
    takes it without a copy: ``pyarrow.array(ids)``, ``polars.Series(ids)``,
    ``nanoarrow.Array(ids)``. It never changes, may be exported any number of times, by any
    thread, and outlives the tokenizer.
    """

    __slots__ = ("_ids", "_n", "_null_count")

    def __init__(self, ids: object) -> None:
        # Private: what encode_batch of entry.c gives.
        self._ids = ids
        self._n, self._null_count = arrow.sizes(ids)

    @property
    def null_count(self) -> int:
        """How many of the texts are null."""
        return self._null_count

    def __len__(self) -> int:
        return self._n

    def __repr__(self) -> str:
        return (
            f"<ggtok.arrow.ArrowIds large_list<int32> len={self._n} null_count={self._null_count}>"
        )

    def __arrow_c_schema__(self) -> object:
        """The type: a capsule "arrow_schema"."""
        return arrow.schema()

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]:
        """The type and the array: capsules "arrow_schema" and "arrow_array".

        Args:
            requested_schema: ignored, as the interface allows: there is one type.
        """
        return arrow.schema(), arrow.export(self._ids)


class Texts:
    """The texts of an Arrow column, for one call of the C function that encodes them.

    texts: what encode_batch of entry.c takes; first_null: the first row that is null, or None.
    """

    __slots__ = ("first_null", "texts")

    def __init__(self, first: object, second: object | None) -> None:
        self.texts, _, self.first_null = arrow.read(first, second)

    def without_nulls(self) -> object:
        """`texts`, or an error that names a null."""
        if self.first_null is None:
            return self.texts
        raise InvalidValueError(
            f"texts[{self.first_null}] is null: drop or fill nulls, or call encode_batch_arrow, "
            "which keeps them"
        )


def exported(texts: Any) -> Texts | None:
    """The texts of what exports Arrow data, or None.

    Something that is iterable and lacks the package that would export it (pandas without
    pyarrow) is left to be iterated.
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
    except (TypeError, ValueError) as e:  # no such capsule, or of another name
        raise InvalidTypeError(f"texts: {name} gave no capsule of Arrow data: {e}") from None


def _pair(capsules: object) -> tuple[object, object]:
    if isinstance(capsules, tuple) and len(capsules) == 2 and capsules[1] is not None:
        return capsules
    raise InvalidTypeError("texts: __arrow_c_array__ must give two capsules, a schema and an array")
