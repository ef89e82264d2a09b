"""Converts a mapping of overrides to ggtok_override structs."""

from __future__ import annotations

from ggtok import errors
from ggtok.native.library import ffi, lib

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any


def overrides_array(values: dict[str, object], keep: list[object]) -> Any:
    """An array of ggtok_override. `keep` keeps its strings alive. No other code has `values`."""

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
