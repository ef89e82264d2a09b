"""Splits text into words by the user's regular expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import accumulate

from ggtok import errors


def by_patterns(patterns: Sequence[str]) -> Callable[[bytes], list[int]]:
    """A function that returns the end offsets, in bytes, of the words of a UTF-8 text.

    The first pattern splits the text, the second splits each resulting piece, and so on. Each
    match is a piece, and so is the text between two matches. Empty matches are ignored. A
    pattern is matched against each piece separately, as if it were the whole text.
    """
    import regex

    compiled = []
    for i, pattern in enumerate(patterns):
        if not isinstance(pattern, str):
            raise errors.InvalidTypeError(
                f"pre_patterns[{i}] must be str, not {type(pattern).__name__}"
            )
        try:
            compiled.append(regex.compile(pattern))
        except regex.error as e:
            raise errors.InvalidValueError(f"pre_patterns[{i}]: {e}") from None

    def split(data: bytes) -> list[int]:
        pieces = [data.decode("utf-8", "surrogatepass")]
        for pattern in compiled:
            pieces = [word for piece in pieces for word in _cut(pattern, piece)]
        if len(data) == sum(map(len, pieces)):  # ASCII only
            return list(accumulate(map(len, pieces)))
        return list(accumulate(len(p.encode("utf-8", "surrogatepass")) for p in pieces))

    def _cut(pattern: regex.Pattern[str], piece: str) -> list[str]:
        words = []
        end = 0
        for match in pattern.finditer(piece):
            start, stop = match.span()
            if start == stop:
                continue
            if start > end:
                words.append(piece[end:start])
            words.append(piece[start:stop])
            end = stop
        if end < len(piece):
            words.append(piece[end:])
        return words

    return split
