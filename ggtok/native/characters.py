"""What the library knows of code points (Unicode 15.1.0, as llama.cpp), and its orders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ggtok.native.library import ffi, lib

# unicode/unicode.h's flags: general categories by their first letter ("": unassigned).
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
    """Whether it lies in one of llama.cpp's blocks of Chinese characters."""
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
    """Ids by descending ``keys[id]`` as libstdc++'s std::sort leaves them: equal ones in no
    particular order, but always the same."""
    array = ffi.new("int32_t[]", list(ids))
    lib.ggtok_stl_sort_descending(array, len(array), ffi.new("uint32_t[]", list(keys)))
    return list(array)
