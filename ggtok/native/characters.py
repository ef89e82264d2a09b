"""The C library's properties of code points (Unicode 15.1.0, as in llama.cpp) and its sort."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ggtok.native.library import ffi, lib

# Flags of unicode/unicode.h: general categories by first letter ("": unassigned).
_CATEGORIES = ((1, "N"), (2, "L"), (3, "Z"), (4, "M"), (5, "P"), (6, "S"), (7, "C"))
_WHITE_SPACE, _HAN = 1 << 8, 1 << 9


def category(c: int) -> str:
    """The first letter of the general category; ``""`` if unassigned."""
    return _category(lib.ggtok_unicode_flags(c))


@cache
def _category(flags: int) -> str:
    return next((letter for bit, letter in _CATEGORIES if flags >> bit & 1), "")


def is_white_space(c: int) -> bool:
    return bool(lib.ggtok_unicode_flags(c) & _WHITE_SPACE)


def is_han(c: int) -> bool:
    """Whether it is in one of the blocks that llama.cpp treats as Chinese characters."""
    return bool(lib.ggtok_unicode_flags(c) & _HAN)


def lower(c: int) -> int:
    """The simple lower case: one code point."""
    lowered: int = lib.ggtok_unicode_to_lower(c)
    return lowered


def first_of_nfd(c: int) -> int:
    """The first code point of the canonical decomposition."""
    first: int = lib.ggtok_unicode_nfd_first(c)
    return first


def sorted_descending(ids: Sequence[int], keys: Sequence[int]) -> list[int]:
    """Ids sorted by descending ``keys[id]``, in the exact order of libstdc++'s std::sort.

    The order of equal keys is deterministic, but has no simple rule.
    """
    array = ffi.new("int32_t[]", list(ids))
    lib.ggtok_stl_sort_descending(array, len(array), ffi.new("uint32_t[]", list(keys)))
    return list(array)
