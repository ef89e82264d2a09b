"""Splits a text into chunks of at most n tokens.

The text is encoded once, one window at a time (TokenEnds). As a first guess, a chunk ends n of the
text's tokens after its start. Then the tokens of the chunk's own text are counted (Measure), and
the end is moved until the chunk fits, but not with one more token.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterable, Iterator

from ggtok import _types as types
from ggtok.base.escape import number
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import index, iterate, text_bytes, truth
from ggtok.native.contexts import Parts
from ggtok.native.library import ADD_SPECIAL
from ggtok.text import Chunk
from ggtok.text.truncate import Measure, is_boundary, whole_end

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import NamedTuple

    import numpy as np
    from numpy.typing import NDArray

    from ggtok.native import Native

    class ChunkOptions(NamedTuple):
        n: int
        overlap: int
        prefix: bytes
        add_special: bool
        separators: list[bytes]

else:  # without importing typing, as in __init__.py
    ChunkOptions = namedtuple(  # noqa: PYI024
        "Options", ("n", "overlap", "prefix", "add_special", "separators")
    )

WINDOW = 1 << 18  # minimum number of bytes to encode at once
NEAR = 1 << 12  # minimum number of bytes to examine after a chunk


def chunks(
    native: Native,
    text: types.Text,
    n: types.SupportsIndex,
    overlap: types.SupportsIndex,
    prefix: types.Text,
    add_special: bool,
    at: Iterable[types.Text] | None,
) -> list[Chunk]:
    n, overlap = index(n, "n"), index(overlap, "overlap")
    if n < 1:
        raise InvalidValueError(f"n must be at least 1, but is {n}")
    if overlap < 0:
        raise InvalidValueError(f"overlap must not be negative, but is {overlap}")
    before, add_special = text_bytes(prefix, "prefix"), truth(add_special, "add_special")
    options = ChunkOptions(n, overlap, before, add_special, _separators(at))
    data, is_str = text_bytes(text), isinstance(text, str)
    parts = Parts(native)
    try:
        found = list(_cut_chunks(parts, data, options))
    except _StuckError as stuck:
        needed = _enough(parts, data, options, stuck)
        raise InvalidValueError(
            f"n is {options.n}, but {stuck.reason}: {needed} would do"
        ) from None
    if not is_str or data.isascii():
        return found
    return list(_in_code_points(data, found))


def _separators(at: Iterable[types.Text] | None) -> list[bytes]:
    if at is None:
        return []
    expected = "at must be a collection of texts"
    if isinstance(at, (str, bytes, bytearray, memoryview)):
        raise InvalidTypeError(f"{expected}, not {type(at).__name__}")
    found = [text_bytes(text, f"at[{i}]") for i, text in enumerate(iterate(at, expected))]
    if b"" in found:
        raise InvalidValueError(f"at[{found.index(b'')}] is empty")
    return found


class _StuckError(Exception):
    """Raised if no further chunk is possible."""

    def __init__(self, reason: str, needed: int) -> None:
        self.reason = reason
        self.needed = needed  # a value for `n` that allows a chunk here


class TokenEnds:
    """The ends of the text's tokens, computed lazily. Callers may only move forward."""

    def __init__(self, parts: Parts, data: bytes) -> None:
        import numpy as np

        self._np = np
        self._parts = parts
        self._data = data
        self._known = 0  # the number of bytes encoded so far
        self._ends: NDArray[np.int64] = np.empty(0, np.int64)

    def _grow(self) -> bool:
        """Encodes the next window; returns False at the end of the text."""
        data, begin = self._data, self._known
        if begin == len(data):
            return False
        # Each window copies the ends, so windows grow with them: copying takes linear time.
        size = max(WINDOW, 2 * len(self._ends))
        while True:
            end = min(begin + size, len(data))
            known = end if end == len(data) else self._parts.safe_cut(data, begin, end)
            if known:
                break
            size *= 2
        ends = self._parts.spans(data, begin, known, begin > 0)[:, 1]
        ends = ends[self._np.diff(ends, prepend=begin) > 0]  # drops duplicates
        self._ends = self._np.concatenate((self._ends, ends))
        self._known = known
        return True

    def drop(self, place: int) -> None:
        """Discards the ends before `place` if there are many."""
        before = int(self._ends.searchsorted(place))
        if before > WINDOW // 4:
            self._ends = self._ends[before:].copy()

    def after(self, place: int, count: int = 1) -> int:
        """Returns the end of the count-th token after `place`; the text's end if there are fewer.

        An end inside a character is moved to the end of the character.
        """
        while True:
            at = int(self._ends.searchsorted(place, "right")) + count - 1
            if at < len(self._ends):
                return whole_end(self._data, int(self._ends[at]))
            if not self._grow():
                return len(self._data)

    def before(self, place: int, count: int) -> int:
        """Returns the end of the count-th token before `place`; 0 if there are fewer.

        `place` must be the end of a token.
        """
        at = int(self._ends.searchsorted(place)) - count
        while at >= 0:
            end = whole_end(self._data, int(self._ends[at]))
            if end < place:
                return end
            at -= 1
        return 0


def _cut_chunks(parts: Parts, data: bytes, options: ChunkOptions) -> Iterator[Chunk]:
    flags = ADD_SPECIAL * options.add_special
    prefix = options.prefix
    room = options.n - parts.count(prefix, 0, len(prefix), flags)
    ends = TokenEnds(parts, data)
    start = last = 0
    while start < len(data):
        ends.drop(start)
        chunk = _ChunkText(parts, data, start, prefix, flags)
        end, n_tokens = _longest(chunk, ends, options, max(room, 1))
        if options.separators and end < len(data):
            end, n_tokens = _at_separator(chunk, end, n_tokens, options)
        if end <= last and last:
            needed = chunk.count(_next(data, last))
            raise _StuckError(_overlap_takes_all(options.overlap), needed)
        yield Chunk(start, end, n_tokens)
        if end == len(data):
            return
        last = end
        if not options.overlap:
            start = end
            continue
        shared = chunk.start_of_last(end, options.overlap)
        if shared <= start:
            needed = max(options.n, room and options.n - room + options.overlap) + 1
            raise _StuckError(_overlap_takes_all(options.overlap), needed)
        start = shared


def _overlap_takes_all(overlap: int) -> str:
    return f"an overlap of {number(overlap, 'token')} takes all of a chunk"


class _ChunkText:
    """The text of a chunk that starts at `start`, encoded on its own after the prefix."""

    def __init__(self, parts: Parts, data: bytes, start: int, prefix: bytes, flags: int) -> None:
        self._parts = parts
        self._flags = flags
        self._whole = data
        self._prefix = prefix
        self.start = start
        self._text = b""  # the prefix and the text after it, extended on demand
        if not prefix:
            self._text, self._shift = data, 0
            self._begin = start
            self._measure = Measure(parts, data, start, flags)
        else:
            self._begin = 0
            self._shift = len(prefix) - start
            self._reach(start + 4096)

    def _reach(self, end: int) -> None:
        """Extends self._text at least to `end`."""
        if self._prefix and end + self._shift > len(self._text):
            if end < len(self._whole):
                end += end - self.start
            self._text = self._prefix + self._whole[self.start : end]
            self._measure = Measure(self._parts, self._text, 0, self._flags)

    def count(self, end: int) -> int:
        self._reach(end)
        return self._measure.count(end + self._shift)

    def fits(self, end: int, n: int) -> int:
        """Returns the number of tokens up to `end`, or 0 if there are more than n."""
        count = self.count(end)
        return count if count <= n else 0

    def token_end_after(self, end: int) -> int:
        """Returns the end of the next token after `end` if encoding starts at the chunk's start.

        Returns 0 if the tokens there equal those of the whole text, or the token's end isn't near.
        """
        self._reach(end + max(end - self.start, NEAR))
        text, begin, at = self._text, self._begin, end + self._shift
        if self._parts.safe_cut(text, begin, at, True):
            return 0  # from here on, the tokens equal those of the whole text
        to = min(at + max(at - begin, NEAR), len(text))
        if to - self._shift < len(self._whole):
            to = self._parts.safe_cut(text, begin, to)
        if to <= at:
            return 0
        for found in self._parts.spans(text, begin, to, False)[:, 1].tolist():
            if found > at:
                return whole_end(text, int(found)) - self._shift
        return 0

    def start_of_last(self, end: int, count: int) -> int:
        """Returns the start of the chunk's last `count` tokens, moved back to a code point
        boundary."""
        self._reach(end)
        text, to = self._text, end + self._shift
        begin = self._begin
        for near in (32 * count + 64, 0):  # first encode from near the end, then from the start
            if near and to - near <= begin:
                continue
            cut = near and self._parts.safe_cut(text, begin, to - near)
            starts = self._parts.spans(text, cut or begin, to, bool(cut))[:, 0]
            if len(starts) >= count:
                at = int(starts[-count])
                while not is_boundary(text, at):
                    at -= 1
                return at - self._shift
        return self.start


def _longest(
    chunk: _ChunkText, ends: TokenEnds, options: ChunkOptions, room: int
) -> tuple[int, int]:
    """Returns the end of the longest chunk, and its number of tokens."""
    n = options.n
    end = ends.after(chunk.start, room)
    count = chunk.count(end)
    while count > n:
        shorter = ends.before(end, count - n)
        if shorter <= chunk.start:
            end, count = _few_characters(chunk, ends.after(chunk.start), n)
            break
        end = shorter
        count = chunk.count(end)
    while end < len(chunk._whole):
        more = chunk.fits(longer := ends.after(end), n)
        if not more:
            longer = chunk.token_end_after(end)
            more = chunk.fits(longer, n) if longer else 0
        if not more:
            break
        end, count = longer, more
    return end, count


def _few_characters(chunk: _ChunkText, end: int, n: int) -> tuple[int, int]:
    """Returns the end and number of tokens of the longest part up to `end` that fits.

    `end` is the end of the text's first token after the chunk's start. Not even that token may fit.
    """
    best = 0, 0
    at = chunk.start
    count = chunk.fits(end, n)
    if count:
        return end, count
    for _ in range(64):
        at = _next(chunk._whole, at)
        if at >= end:
            break
        if count := chunk.fits(at, n):
            best = at, count
    if not best[0]:
        first = _next(chunk._whole, chunk.start)
        raise _StuckError("a character doesn't fit into a chunk", chunk.count(first))
    return best


def _next(data: bytes, at: int) -> int:
    """Returns the next code point boundary after `at`."""
    return whole_end(data, at + 1)


def _at_separator(
    chunk: _ChunkText, end: int, n_tokens: int, options: ChunkOptions
) -> tuple[int, int]:
    """Moves a chunk's end back to the end of a separator in its last quarter, if there is one."""
    data, start = chunk._whole, chunk.start
    length = _code_points(data, start, end)
    for separator in options.separators:
        to = end
        while (at := data.rfind(separator, start, to)) >= 0:
            found = at + len(separator)
            if 4 * (length - _code_points(data, found, end)) <= 3 * length:
                break
            if count := chunk.fits(found, options.n):
                return found, count
            to = found - 1
    return end, n_tokens


def _code_points(data: bytes, begin: int, end: int) -> int:
    return len(data[begin:end].decode("utf-8", "surrogateescape"))


def _in_code_points(data: bytes, found: list[Chunk]) -> Iterator[Chunk]:
    at = chars = 0
    for start, end, n_tokens in found:  # in ascending order of `start`
        chars += _code_points(data, at, start)
        at = start
        yield Chunk(chars, chars + _code_points(data, start, end), n_tokens)


def _enough(parts: Parts, data: bytes, options: ChunkOptions, stuck: _StuckError) -> int:
    """Returns an n that is large enough for the whole text, not necessarily the smallest."""
    flags = ADD_SPECIAL * options.add_special
    n = stuck.needed
    for char in set(data.decode("utf-8", "surrogateescape")):
        text = options.prefix + char.encode("utf-8", "surrogateescape")
        n = max(n, parts.count(text, 0, len(text), flags))
    while options.overlap:
        try:
            for _ in _cut_chunks(parts, data, options._replace(n=n)):
                pass
            break
        except _StuckError as e:
            n = max(e.needed, n + n // 8 + 1)
    return n
