"""Arguments of Python's calls: texts and token ids as memory that C reads."""

from __future__ import annotations

import operator
import threading
from array import array
from collections.abc import Iterable, Iterator

from ggtok import errors
from ggtok.base.escape import shown

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, TypeVar

    T = TypeVar("T")


def text_bytes(text: object, name: str = "text") -> bytes:
    """A text argument as UTF-8, possibly malformed if it is bytes-like."""
    if isinstance(text, str):
        try:
            return str.encode(text)
        except UnicodeEncodeError as e:
            raise errors.TextEncodeError(*e.args, name=name) from None
    if type(text) is bytes:
        return text
    return byte_view(text, f"{name} must be str or bytes-like (UTF-8)").tobytes()


def byte_view(data: object, what: str) -> memoryview:
    """A bytes-like object's memory, in one dimension.

    Only exactly ``bytes`` is read in place; of all else C reads a copy. A view may be
    read-only, and other threads and processes may still write to its memory, since the GIL is
    released.
    """
    try:
        view = memoryview(data)  # type: ignore[arg-type]
    except TypeError:
        raise errors.InvalidTypeError(f"{what}, not {type(data).__name__}") from None
    except (BufferError, ValueError) as e:
        raise errors.InvalidTypeError(f"{what}: {e}") from None
    if view.itemsize != 1 or view.format[-1:] not in ("B", "b", "c"):
        raise errors.InvalidTypeError(
            f"{what}, not {type(data).__name__} whose items aren't bytes "
            f"(buffer format {view.format!r})"
        )
    if not view.c_contiguous:
        raise errors.InvalidTypeError(f"{what} in one piece (C-contiguous)")
    if view.ndim == 1:
        return view
    return view.cast("B") if view.nbytes else memoryview(b"")


def int32_array(ids: object, name: str = "ids") -> Any:
    """Token ids in new memory: an array of C ints, or bytes of them."""
    if isinstance(ids, (list, tuple)):
        pass
    elif isinstance(ids, (str, bytes, bytearray)):
        raise errors.InvalidTypeError(f"{name} must be integers, not {type(ids).__name__}")
    else:
        try:
            view = memoryview(ids)  # type: ignore[arg-type]
        except ValueError as e:  # a released one
            raise errors.InvalidValueError(f"{name}: {e}") from None
        except TypeError:
            try:
                ids = list(ids)  # type: ignore[call-overload]
            except TypeError:
                raise errors.InvalidTypeError(
                    f"{name} must be an iterable of integers, not {type(ids).__name__}"
                ) from None
        else:
            if view.ndim != 1:
                raise errors.InvalidValueError(f"{name} must have one dimension, not {view.ndim}")
            if view.format == "i" and view.c_contiguous:
                return view.tobytes()  # see byte_view
            # No view.tolist(): memoryview knows fewer formats than numpy and ctypes.
            ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[call-overload]
    try:
        return array("i", ids)  # type: ignore[call-overload]
    except (OverflowError, TypeError):
        return array("i", _int32s(ids, name))


def int_list(ids: object, name: str = "ids") -> list[int]:
    """Token ids as a list of ints, each an int32."""
    numbers: list[int] = memoryview(int32_array(ids, name)).cast("B").cast("i").tolist()
    return numbers


def token_ids(ids: object, n_tokens: int, name: str = "ids") -> list[int]:
    """Token ids of a vocabulary of so many tokens."""
    numbers = int_list(ids, name)
    for i, id in enumerate(numbers):
        if not 0 <= id < n_tokens:
            raise errors.TokenIdError(
                f"{name}[{i}] is {id}: not a token id of this vocabulary of {n_tokens} tokens"
            )
    return numbers


def _int32s(ids: Any, name: str) -> Iterator[int]:
    """The ids one by one, to find which one isn't an id."""
    for i, id in enumerate(ids):
        try:
            number = operator.index(id)
        except TypeError:
            raise errors.InvalidTypeError(
                f"{name}[{i}] must be an integer, not {type(id).__name__}"
            ) from None
        if not 0 <= number < 2**31:
            raise errors.TokenIdError(f"{name}[{i}] is {number}: not a token id of any vocabulary")
        yield number


def iterated(values: Iterable[T], what: str) -> Iterator[T]:
    """iter(values), or an error that says `what` is wanted."""
    try:
        return iter(values)
    except TypeError:
        raise errors.InvalidTypeError(f"{what}, not {type(values).__name__}") from None


def index(value: SupportsIndex, what: str) -> int:
    try:
        return operator.index(value)
    except TypeError:
        raise errors.InvalidTypeError(
            f"{what} must be an integer, not {type(value).__name__}"
        ) from None


def truth(value: object, name: str) -> bool:
    """A bool argument: Python's or NumPy's."""
    if isinstance(value, bool):
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and not getattr(value, "ndim", 1):
        return bool(value)
    raise errors.InvalidTypeError(f"{name} must be True or False, not {shown(repr(value), 80)}")


def truth_or_none(value: object, name: str) -> bool | None:
    return None if value is None else truth(value, name)


def thread_count(threads: SupportsIndex) -> int:
    """How many threads the caller wants; 0: as many as there are processors."""
    n = index(threads, "threads")
    if n < 0:
        raise errors.InvalidValueError(f"threads must not be negative, but is {n}")
    return n


def on_main_thread() -> bool:
    """Whether this is the thread on which Python's signal handlers run."""
    return threading.get_ident() == threading.main_thread().ident
