"""Borrowed C contexts, which encode parts of texts."""

from __future__ import annotations

from collections.abc import Callable

from ggtok.native.library import NOT_FIRST_BLOCK, SPANS, TAIL, ffi

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from ggtok.native.native_tokenizer import Native


class _Context:
    """A C context that is borrowed while this object exists."""

    def __init__(self, native: Native) -> None:
        self._native = native
        try:
            self._loan = native.take()  # freeing this object returns the context
        except Exception as e:
            native.reraise(e)

    def _call(self, function: Callable[..., Any], address: int, n: int, flags: int) -> Any:
        try:
            return function(self._loan, address, n, flags)
        except Exception as e:
            self._native.reraise(e)


class Blocks(_Context):
    """Encodes one long text that arrives in blocks, for one thread."""

    def safe_cut(self, text: bytearray, flags: int) -> int:
        """Returns the number of leading bytes that can be encoded separately, whatever follows."""
        with ffi.from_buffer(text) as view:  # prevents a resize during the call
            n: int = self._call(self._native.safe_cut, _address(view), len(text), flags)
            return n

    def encode(self, text: bytearray, n: int, flags: int) -> bytes:
        """Returns the ids of the first n bytes, as the bytes of an int32 array."""
        with ffi.from_buffer(text) as view:
            ids: bytes = self._call(self._native.encode_part, _address(view), n, flags)
            return ids


class Parts(_Context):
    """Encodes parts of texts. Offsets are in bytes."""

    _last: tuple[bytes, Any, int] = b"", None, 0  # the last text, its buffer, and its address

    def _at(self, text: bytes, begin: int) -> int:
        if self._last[0] is not text or self._last[1] is None:
            view = ffi.from_buffer("char[]", text)
            self._last = text, view, _address(view)
        return self._last[2] + begin

    def safe_cut(self, text: bytes, begin: int, end: int, tail: bool = False) -> int:
        """Returns the last position in text[begin:end] that no token crosses, or 0 if none is found
        (ggtok_safe_cut). If `tail`, this holds whatever text precedes `begin`."""
        flags = TAIL if tail else 0
        n: int = self._call(self._native.safe_cut, self._at(text, begin), end - begin, flags)
        return begin + n if n else 0

    def _encode(self, text: bytes, begin: int, end: int, flags: int) -> bytes:
        found: bytes = self._call(
            self._native.encode_part, self._at(text, begin), end - begin, flags
        )
        return found

    def count(self, text: bytes, begin: int, end: int, flags: int) -> int:
        """Returns the number of tokens of text[begin:end]."""
        return len(self._encode(text, begin, end, flags)) // 4

    def ids(self, text: bytes, begin: int, end: int, flags: int) -> NDArray[np.int32]:
        """Returns the ids of text[begin:end]."""
        import numpy as np

        return np.frombuffer(self._encode(text, begin, end, flags), np.int32)

    def spans(self, text: bytes, begin: int, end: int, continues: bool) -> NDArray[np.int64]:
        """Returns the start and end of each token of text[begin:end], without added tokens, in an
        array of shape (n, 2)."""
        import numpy as np

        flags = SPANS | (NOT_FIRST_BLOCK if continues else 0)
        found = np.frombuffer(self._encode(text, begin, end, flags), np.int64)
        spans: NDArray[np.int64] = found.reshape(-1, 2) + begin
        return spans


def _address(view: Any) -> int:
    return int(ffi.cast("uintptr_t", view))
