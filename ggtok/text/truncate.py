"""Truncates a text to at most n tokens.

Only the part of the text with its first (or last) tokens is encoded. Up to a position that no token
crosses, whatever follows (ggtok_safe_cut), the tokens of this part are those of the whole text.

The tokens of a truncated text are counted before the text is returned. So if a result has too many
tokens, the count is wrong: that of Parts.count or, with side="right", that of Measure.count, which
relies on ggtok_safe_cut.
"""

from __future__ import annotations

from ggtok import _types as types
from ggtok.base.escape import number, quoted
from ggtok.errors import InvalidValueError
from ggtok.native.arguments import byte_view, index, is_one_of, text_bytes, truth
from ggtok.native.contexts import Parts
from ggtok.native.library import ADD_SPECIAL, NOT_FIRST_BLOCK, NOT_LAST_BLOCK

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any

    from ggtok.native import Native

USUAL = 6  # a generous estimate of characters per token
LEAST = 256  # minimum number of characters to encode in the first attempt


def truncate(
    native: Native, text: Any, n: types.SupportsIndex, side: str, add_special: bool
) -> Any:
    n = index(n, "n")
    if not is_one_of(side, ("left", "right")):
        raise InvalidValueError(f"side must be 'right' or 'left', not {quoted(side)}")
    if not isinstance(text, (str, bytes)):
        text = byte_view(text, "text must be str or bytes-like (UTF-8)")
    add_special = truth(add_special, "add_special")
    parts = Parts(native)
    flags = ADD_SPECIAL * add_special
    added = _count_added(parts, n, flags)
    size = LEAST + USUAL * min(n, len(text))
    cut = _from_left if side == "right" else _from_right
    while True:
        whole = size >= len(text)
        found = cut(parts, text, size, whole, n, added, flags)
        if found is not None:
            return found
        size *= 2


def beginning(native: Native, head: bytes, n: int, add_special: bool) -> bytes | None:
    """Returns the result of :func:`truncate` for a text that begins with `head` and is longer.

    Returns None if the result depends on the rest of the text.
    """
    parts = Parts(native)
    flags = ADD_SPECIAL * add_special
    added = _count_added(parts, n, flags)
    if n == added and _has_tokens(parts, head, native.vocab_type):
        return b""
    found: bytes | None = _from_left(parts, head, len(head), False, n, added, flags)
    return found


def _has_tokens(parts: Parts, head: bytes, type: str) -> bool:
    """Whether every text that begins with `head` has at least one token.

    Encoding `head` can't answer this, because `head` may be a long word without a position that no
    token crosses. But the answer is yes if one of its ASCII characters alone encodes to a token:
    for a symbol that isn't a token, BPE emits the tokens of its single characters, and other
    models emit an unknown token. Only UGM's rules may remove a longer text completely.
    """
    if type == "UGM":
        return False
    letters = sorted({byte for byte in head[:LEAST] if byte < 0x80})
    return any(parts.count(bytes([byte]), 0, 1, 0) for byte in letters)


def _count_added(parts: Parts, n: int, flags: int) -> int:
    """Returns the number of tokens that are added to any text."""
    added = parts.count(b"", 0, 0, flags)
    if n < added:
        raise InvalidValueError(
            f"n is {n}, but {number(added, 'token')} {'is' if added == 1 else 'are'} added to any "
            f"text: {added} would do for an empty result"
        )
    return added


def _from_left(
    parts: Parts, text: Any, size: int, whole: bool, n: int, added: int, flags: int
) -> Any:
    """Truncates a text given its first `size` characters; returns None if these are too few."""
    head = _utf8(text[:size])
    known = len(head) if whole else parts.safe_cut(head, 0, len(head))
    spans = parts.spans(head, 0, known, False)
    if len(spans) <= n - added:
        return _as_given(text, head) if whole else None
    measure = Measure(parts, head, 0, flags)
    for end in _descending(spans[: n - added, 1]):
        if is_boundary(head, end) and measure.count(end) <= n:
            return _as_given(text, head[:end])
    return _as_given(text, b"")


def _from_right(
    parts: Parts, text: Any, size: int, whole: bool, n: int, added: int, flags: int
) -> Any:
    tail = _utf8(text if whole else text[-size:])
    begin = 0
    if not whole:
        while begin < 4 and begin < len(tail) and not is_boundary(tail, begin, True):
            begin += 1  # skip the rest of a split character
        tail = tail[begin:]
        begin = parts.safe_cut(tail, 0, len(tail) // 2, True)
        if not begin:
            return None
    spans = parts.spans(tail, begin, len(tail), not whole)
    if len(spans) <= n - added:
        return _as_given(text, tail) if whole else None
    for start in _descending(-spans[len(spans) - (n - added) :, 0][::-1]):
        if is_boundary(tail, -start) and parts.count(tail, -start, len(tail), flags) <= n:
            return _as_given(text, tail[-start:])
    return _as_given(text, b"")


def _descending(ends: Any) -> Any:
    """Yields ascending numbers in reverse order, without duplicates."""
    before = None
    for end in reversed(ends.tolist()):
        if end != before:
            yield end
        before = end


def _utf8(text: Any) -> bytes:
    return text_bytes(text)


def _as_given(text: Any, part: bytes) -> Any:
    return part.decode() if isinstance(text, str) else part


def is_boundary(data: bytes, at: int, strict: bool = False) -> bool:
    """Whether position `at` is not inside a well-formed character."""
    if at >= len(data) or not 0x80 <= data[at] < 0xC0:
        return True
    if strict:
        return False
    for lead in range(at - 1, max(at - 4, -1), -1):
        if 0x80 <= data[lead] < 0xC0:
            continue
        size = 2 if data[lead] < 0xE0 else 3 if data[lead] < 0xF0 else 4
        if data[lead] < 0xC0 or lead + size <= at:
            return True
        try:
            data[lead : lead + size].decode()
        except UnicodeDecodeError:
            return True
        return False
    return True


def whole_end(data: bytes, at: int) -> int:
    """Moves position `at` to the end of the character that contains it, unless at a boundary."""
    while not is_boundary(data, at):
        at += 1
    return at


class Measure:
    """Counts the tokens of texts that start at the same position and end near each other.

    Tokens before a position that no token crosses, whatever follows, are counted only once.
    """

    NEAR = 256  # bytes; the initial distance of `cut` from the end

    def __init__(self, parts: Parts, data: bytes, begin: int, flags: int) -> None:
        self._parts = parts
        self._data = data
        self._begin = begin
        self._flags = flags
        self.cut = begin  # a position that no token crosses
        self._before = 0  # the number of tokens before `cut`
        self._from = begin  # the smallest end for which `cut` can be used
        self._near = self.NEAR

    def count(self, end: int) -> int:
        if end < self._from or end - self._from > 4 * self._near:
            self._move(end)
        if self.cut == self._begin:
            return self._parts.count(self._data, self._begin, end, self._flags)
        rest = self._flags | NOT_FIRST_BLOCK
        return self._before + self._parts.count(self._data, self.cut, end, rest)

    def _move(self, end: int) -> None:
        """Chooses a new `cut` near `end`."""
        if end < self._from:
            self._near *= 2
        self._from = max(self._begin, end - self._near)
        cut = self._parts.safe_cut(self._data, self._begin, self._from)
        if self._from == self._begin or not cut:
            self.cut, self._before, self._from = self._begin, 0, self._begin
            self._near = max(self._near, end - self._begin)
            return
        known = self.cut if self._begin < self.cut <= cut else self._begin
        flags = self._flags | NOT_LAST_BLOCK | (NOT_FIRST_BLOCK if known > self._begin else 0)
        before = self._before if known > self._begin else 0
        self._before = before + self._parts.count(self._data, known, cut, flags)
        self.cut = cut
