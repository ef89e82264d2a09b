"""The C functions that the plain implementation uses: character tables, and llama.cpp's sort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ggtok.native.arguments import _special_ids
from ggtok.native.library import ffi, lib

_HAN = 1 << 9  # the flag for Chinese characters in unicode/unicode.h


def is_han(c: int) -> bool:
    """Whether the code point is in a block that llama.cpp treats as Chinese characters."""
    return bool(lib.ggtok_unicode_flags(c) & _HAN)


def sorted_descending(ids: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Sorts ids by descending ``keys[id]``, in the exact order of libstdc++'s std::sort.

    The order of equal keys is deterministic, but has no simple rule.
    """
    array = ffi.new("int32_t[]", list(ids))
    lib.ggtok_stl_sort_descending(array, len(array), ffi.new("uint32_t[]", list(keys)))
    return list(array)


def chosen_ids(native: Any, parse_special: object) -> bool | frozenset[int]:
    """Converts a valid `parse_special` argument to a bool or a set of ids."""
    if not isinstance(parse_special, Iterable):
        return bool(parse_special)
    return frozenset(_special_ids(native, tuple(parse_special)))
