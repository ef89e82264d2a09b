"""Checks arguments, and converts texts and token ids to memory that C can read."""

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
    """A text argument as UTF-8. Bytes-like text may be malformed."""
    if isinstance(text, str):
        try:
            return str.encode(text)
        except UnicodeEncodeError as e:
            raise errors.TextEncodeError(*e.args, name=name) from None
    if type(text) is bytes:
        return text
    return byte_view(text, f"{name} must be str or bytes-like (UTF-8)").tobytes()


def byte_view(data: object, what: str) -> memoryview:
    """The memory of a bytes-like object, as a one-dimensional view.

    Callers copy it. C reads only ``bytes`` itself in place: even if a view is read-only, other
    threads and processes may write to its memory while the GIL is released.
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
        raise errors.InvalidTypeError(f"{what} and C-contiguous")
    if view.ndim == 1:
        return view
    return view.cast("B") if view.nbytes else memoryview(b"")


def int32_array(ids: object, name: str = "ids") -> Any:
    """A copy of token ids: an array of C ints, or their bytes."""
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
            # Not view.tolist(): memoryview supports fewer formats than numpy and ctypes.
            ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[call-overload]
    try:
        return array("i", ids)  # type: ignore[call-overload]
    except (OverflowError, TypeError):
        return array("i", _int32s(ids, name))


def int_list(ids: object, name: str = "ids") -> list[int]:
    """Token ids as a list of ints in the range of int32."""
    numbers: list[int] = memoryview(int32_array(ids, name)).cast("B").cast("i").tolist()
    return numbers


def token_ids(ids: object, n_tokens: int, name: str = "ids") -> list[int]:
    """Token ids as a list, checked against the size of the vocabulary."""
    numbers = int_list(ids, name)
    for i, id in enumerate(numbers):
        if not 0 <= id < n_tokens:
            raise errors.TokenIdError(
                f"{name}[{i}] is {id}: not a token id of this vocabulary of {n_tokens} tokens"
            )
    return numbers


def _int32s(ids: Any, name: str) -> Iterator[int]:
    """The ids one by one. Raises an error that names the invalid one."""
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
    """iter(values), or an InvalidTypeError that begins with `what`."""
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
    """A bool argument, of Python or NumPy."""
    if isinstance(value, bool):
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and not getattr(value, "ndim", 1):
        return bool(value)
    raise errors.InvalidTypeError(f"{name} must be True or False, not {shown(repr(value), 80)}")


def truth_or_none(value: object, name: str) -> bool | None:
    return None if value is None else truth(value, name)


def thread_count(threads: SupportsIndex) -> int:
    """The argument `threads`, checked. 0: one for each processor."""
    n = index(threads, "threads")
    if n < 0:
        raise errors.InvalidValueError(f"threads must not be negative, but is {n}")
    return n


def on_main_thread() -> bool:
    """Whether this is the thread on which Python's signal handlers run."""
    return threading.get_ident() == threading.main_thread().ident
