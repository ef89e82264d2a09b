"""Encodes one long text in parts, with one context."""

from __future__ import annotations

from collections.abc import Callable

from ggtok.native.library import ffi

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any, NoReturn


class Blocks:
    """A borrowed context, for ggtok_safe_cut and ggtok_encode."""

    def __init__(
        self,
        loan: object,  # the context; freeing this object returns it
        encode: Callable[[object, int, int, int], bytes],
        safe_cut: Callable[[object, int, int, int], int],
        reraise: Callable[[Exception], NoReturn],
    ) -> None:
        self._loan, self._encode, self._safe_cut = loan, encode, safe_cut
        self._reraise = reraise

    def safe_cut(self, text: bytearray, flags: int) -> int:
        """The number of leading bytes that can be encoded separately, whatever follows."""
        n: int = self._call(self._safe_cut, text, len(text), flags)
        return n

    def encode(self, text: bytearray, n: int, flags: int) -> bytes:
        """The ids of the first n bytes, as int32s."""
        ids: bytes = self._call(self._encode, text, n, flags)
        return ids

    def _call(self, function: Callable[..., Any], text: bytearray, n: int, flags: int) -> Any:
        with ffi.from_buffer(text) as view:  # prevents a resize during the call
            try:
                return function(self._loan, int(ffi.cast("uintptr_t", view)), n, flags)
            except Exception as e:
                self._reraise(e)
