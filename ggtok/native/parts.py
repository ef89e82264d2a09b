"""Encodes parts of a text: counts, ids and spans of their tokens."""

from __future__ import annotations

from ggtok.native.library import NOT_FIRST_BLOCK, SPANS, TAIL, ffi

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from ggtok.native.tokenizer import Native


class Parts:
    """A borrowed context that encodes parts of texts. Offsets are in bytes."""

    def __init__(self, native: Native) -> None:
        self._native = native
        self._loan: object = native.take()  # freeing this object returns the context
        self._last: tuple[bytes, Any, int] = b"", None, 0

    def _call(self, function: Callable[..., Any], text: bytes, begin: int, n: int, f: int) -> Any:
        if self._last[0] is not text or self._last[1] is None:
            view = ffi.from_buffer("char[]", text)
            self._last = text, view, int(ffi.cast("uintptr_t", view))
        try:
            return function(self._loan, self._last[2] + begin, n, f)
        except Exception as e:
            self._native.reraise(e)

    def safe_cut(self, text: bytes, begin: int, end: int, tail: bool = False) -> int:
        """The last position in text[begin:end] that no token crosses, or 0: ggtok_safe_cut."""
        flags = TAIL if tail else 0
        n: int = self._call(self._native.safe_cut, text, begin, end - begin, flags)
        return begin + n if n else 0

    def _encode(self, text: bytes, begin: int, end: int, flags: int) -> bytes:
        found: bytes = self._call(self._native.encode_part, text, begin, end - begin, flags)
        return found

    def count(self, text: bytes, begin: int, end: int, flags: int) -> int:
        """The number of tokens of text[begin:end]."""
        return len(self._encode(text, begin, end, flags)) // 4

    def ids(self, text: bytes, begin: int, end: int, flags: int) -> NDArray[np.int32]:
        """The tokens of text[begin:end]."""
        import numpy as np

        return np.frombuffer(self._encode(text, begin, end, flags), np.int32)

    def spans(self, text: bytes, begin: int, end: int, continues: bool) -> NDArray[np.int64]:
        """The start and end of each token of text[begin:end], without added tokens: (n, 2)."""
        import numpy as np

        flags = SPANS | (NOT_FIRST_BLOCK if continues else 0)
        found = np.frombuffer(self._encode(text, begin, end, flags), np.int64)
        spans: NDArray[np.int64] = found.reshape(-1, 2) + begin
        return spans
