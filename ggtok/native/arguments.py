"""Checks arguments, and converts them to memory that C can read."""

from __future__ import annotations

import operator
import threading
from array import array
from collections.abc import Container, Hashable, Iterable, Iterator

from ggtok import errors
from ggtok.base.escape import quoted
from ggtok.native.library import ffi, lib

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex, TypeVar

    T = TypeVar("T")


def text_bytes(text: object, name: str = "text") -> bytes:
    """Returns a text argument as UTF-8, which may be malformed if the text is bytes-like."""
    if isinstance(text, str):
        try:
            return str.encode(text)
        except UnicodeEncodeError as e:
            raise errors.TextEncodeError(*e.args, name=name) from None
    if type(text) is bytes:
        return text
    return byte_view(text, f"{name} must be str or bytes-like (UTF-8)").tobytes()


def byte_view(data: object, what: str) -> memoryview:
    """Returns a one-dimensional view of a bytes-like object's memory.

    Callers must copy the memory before they call C, which reads only ``bytes`` objects in place:
    even if a view is read-only, other threads and processes may write to its memory while the GIL
    is released.
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
    """Returns a copy of token ids, as an array of C ints or as the bytes of such an array."""
    if isinstance(ids, (list, tuple)):
        pass
    elif isinstance(ids, (str, bytes, bytearray)):
        raise errors.InvalidTypeError(f"{name} must be integers, not {type(ids).__name__}")
    else:
        try:
            view = memoryview(ids)  # type: ignore[arg-type]
        except ValueError as e:  # a released memoryview
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
                return view.tobytes()  # a copy: see byte_view
            # Not view.tolist(): memoryview supports fewer formats than numpy and ctypes.
            ids = ids.tolist() if hasattr(ids, "tolist") else list(ids)  # type: ignore[call-overload]
    try:
        return array("i", ids)  # type: ignore[call-overload]
    except (OverflowError, TypeError):
        return array("i", _int32s(ids, name))


def int_list(ids: object, name: str = "ids") -> list[int]:
    """Returns token ids as a list of ints in the range of int32."""
    numbers: list[int] = memoryview(int32_array(ids, name)).cast("B").cast("i").tolist()
    return numbers


def token_ids(ids: object, n_tokens: int, name: str = "ids") -> list[int]:
    """Returns token ids as a list; raises an error if one is outside the vocabulary."""
    numbers = int_list(ids, name)
    for i, id in enumerate(numbers):
        if not 0 <= id < n_tokens:
            raise errors.TokenIdError(
                f"{name}[{i}] is {id}: not a token id of this vocabulary of {n_tokens} tokens"
            )
    return numbers


def _int32s(ids: Any, name: str) -> Iterator[int]:
    """Yields the ids one by one. For an invalid one, raises an error that names it."""
    for i, id in enumerate(ids):
        try:
            number = operator.index(id)
        except TypeError:
            raise errors.InvalidTypeError(
                f"{name}[{i}] must be an integer, not {type(id).__name__}"
            ) from None
        if not 0 <= number < 2**31:
            raise errors.TokenIdError(
                f"{name}[{i}] is {quoted(number)}: not a token id of any vocabulary"
            )
        yield number


def iterate(values: Iterable[T], what: str) -> Iterator[T]:
    """Returns iter(values), or raises an InvalidTypeError whose message begins with `what`."""
    try:
        if isinstance(values, memoryview):
            len(values)  # raises ValueError if it was released
        return iter(values)
    except TypeError:
        raise errors.InvalidTypeError(f"{what}, not {type(values).__name__}") from None
    except ValueError as e:
        raise errors.InvalidValueError(f"{what}: {e}") from None


def index(value: SupportsIndex, what: str) -> int:
    try:
        n = operator.index(value)
    except TypeError:
        raise errors.InvalidTypeError(
            f"{what} must be an integer, not {type(value).__name__}"
        ) from None
    if n.bit_length() > _MOST_BITS:  # messages couldn't quote a number of thousands of digits
        raise errors.InvalidValueError(f"{what} must have at most {_MOST_BITS} bits")
    return n


_MOST_BITS = 128


def is_one_of(value: object, choices: Container[str]) -> bool:
    """Whether an argument is one of these texts. (Arrays don't support ``in``.)"""
    return isinstance(value, str) and value in choices


def truth(value: object, name: str) -> bool:
    """Returns the value of an argument that must be a bool of Python or NumPy."""
    if isinstance(value, bool):
        return value
    if getattr(getattr(value, "dtype", None), "kind", "") == "b" and not getattr(value, "ndim", 1):
        return bool(value)
    raise errors.InvalidTypeError(f"{name} must be True or False, not {quoted(value)}")


def truth_or_none(value: object, name: str) -> bool | None:
    return None if value is None else truth(value, name)


def thread_count(threads: SupportsIndex) -> int:
    """Checks and returns the argument `threads`; 0 means one thread for each processor."""
    n = index(threads, "threads")
    if n < 0:
        raise errors.InvalidValueError(f"threads must not be negative, but is {n}")
    return n


def on_main_thread() -> bool:
    """Whether this is the thread on which Python's signal handlers run."""
    return threading.get_ident() == threading.main_thread().ident


# ---- the argument `overrides` of ggtok.load ----


def overrides_array(values: dict[str, object], keep: list[object]) -> Any:
    """Returns an array of ggtok_override, whose strings `keep` keeps alive. `values` must be a copy
    that no other code can change."""

    def string(text: str, what: str) -> Any:
        try:
            data = str.encode(text, "utf-8", "surrogateescape")
        except UnicodeEncodeError:
            raise errors.InvalidValueError(
                f"overrides: {what} contains a lone surrogate, which has no UTF-8 form: {text!r}"
            ) from None
        if b"\0" in data:
            raise errors.InvalidValueError(f"overrides: {what} contains a NUL character")
        keep.append(ffi.new("char[]", data))
        return keep[-1]

    array = ffi.new("ggtok_override[]", len(values))
    keep.append(array)
    for override, (key, value) in zip(array, values.items(), strict=True):
        if not isinstance(key, str):
            raise errors.InvalidTypeError(f"overrides: a key must be str, not {key!r}")
        override.key = string(key, "a key")
        if isinstance(value, bool):
            override.type, override.boolean = lib.GGTOK_OVERRIDE_BOOL, value
        elif isinstance(value, int):
            if not -(2**63) <= value < 2**63:
                raise errors.InvalidValueError(f"overrides[{key!r}]: {value} exceeds 64 bits")
            override.type, override.i64 = lib.GGTOK_OVERRIDE_INT, value
        elif isinstance(value, float):
            override.type, override.f64 = lib.GGTOK_OVERRIDE_FLOAT, value
        elif isinstance(value, str):
            override.type = lib.GGTOK_OVERRIDE_STR
            override.str = string(value, f"the value of {key!r}")
        else:
            raise errors.InvalidTypeError(
                f"overrides[{key!r}] must be int, float, bool or str, not {type(value).__name__}"
            )
    return array


# ---- parse_special ----


KEPT = 64  # maximum number of cached choice objects, each with an automaton for its tokens
_SPECIAL = 1 | 8 | 16  # bits of TokenAttr: UNKNOWN, CONTROL, USER_DEFINED


def chosen(native: Any, choices: dict[Hashable, object], parse_special: object) -> object:
    """Converts `parse_special` to what entry.c's encode accepts: a bool, or a choice object, which
    is cached in `choices`."""
    if isinstance(parse_special, (str, bytes, bytearray, memoryview)):
        raise errors.InvalidTypeError(
            "parse_special must be True, False, or a collection of special tokens' texts or ids; "
            f"one text is [{_name(parse_special)}]"
        )
    if not isinstance(parse_special, Iterable):
        return truth(parse_special, "parse_special")
    entries = tuple(parse_special)
    try:
        key = frozenset(
            zip(map(type, entries), entries, strict=True)
        )  # with the types, because 1 == True
    except (TypeError, ValueError):  # unhashable: a bytearray, a memoryview, an invalid entry
        return native.choose(_special_ids(native, entries))
    choice = choices.get(key)
    if choice is None:
        choice = native.choose(_special_ids(native, entries))
        if len(choices) >= KEPT:
            choices.clear()
        choices[key] = choice
    return choice


def _special_ids(native: Any, entries: tuple[object, ...]) -> list[int]:
    ids = {}
    for entry in entries:
        ids[_id(native, entry)] = entry
    wrong = [entry for id, entry in ids.items() if not native.attr(id) & _SPECIAL]
    if wrong:
        raise errors.InvalidValueError(
            f"parse_special: {_name(wrong[0])} isn't a CONTROL or UNKNOWN token; only these can "
            "be chosen (user-defined tokens are always parsed)"
        )
    return sorted(ids)


def _id(native: Any, entry: object) -> int:
    if isinstance(entry, bool):
        raise errors.InvalidTypeError("parse_special: an entry must be a text or an id, not a bool")
    try:
        id = operator.index(entry)  # type: ignore[arg-type]
    except TypeError:
        found = native.find(text_bytes(entry, "parse_special: an entry"))
        if found is None:
            raise errors.InvalidValueError(
                f"parse_special: {_name(entry)} is not a token of this vocabulary"
            ) from None
        return int(found)
    if not 0 <= id < native.n_tokens:
        raise errors.InvalidValueError(
            f"parse_special: {quoted(id)} is not a token id of this vocabulary "
            f"(0 to {native.n_tokens - 1})"
        )
    return id


def _name(entry: object) -> str:
    return quoted(entry)
