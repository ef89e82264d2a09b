"""Decodes characters as llama.cpp does, and tracks the source of each normalized byte."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MARK = "\u2581".encode()
REPLACEMENT = "\ufffd".encode()


class Byte(NamedTuple):
    """One byte of normalized text, and the span of its source."""

    value: int
    begin: int
    end: int
    word: bool = False  # whether this byte starts a word in WPM


def characters(
    text: bytes, highest: int = 0x10FFFF, overlong: bool = True
) -> Iterator[tuple[int, int, int | None]]:
    """Yields start, end and code point of each character; the code point of a bad byte is None.
    `overlong` says whether overlong forms are characters."""
    at = 0
    while at < len(text):
        lead = text[at]
        n = lead_length(lead)
        rest = text[at + 1 : at + n]
        c: int | None = lead if lead < 0x80 else None
        good = len(rest) == n - 1 and all(b & 0xC0 == 0x80 for b in rest)
        if n > 1 and lead < 0xF8 and good:
            c = lead & (0x7F >> n)
            for b in rest:
                c = c << 6 | b & 0x3F
            if c > highest or (not overlong and len(utf8(c)) != n):
                c = None
        if c is None:
            n = 1
        yield at, at + n, c
        at += n


def lead_length(lead: int) -> int:
    """Returns the length of a character, according to its first byte."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def utf8(c: int | None) -> bytes:
    """Encodes a code point in its shortest form, or None (a bad byte) as U+FFFD."""
    if c is None:
        return REPLACEMENT
    if c > 0x10FFFF:
        return bytes([0xF0 | c >> 18, *(0x80 | c >> s & 0x3F for s in (12, 6, 0))])
    return chr(c).encode("utf-8", "surrogatepass")


def whole(value: bytes, begin: int, end: int) -> Iterator[Byte]:
    """Returns bytes that all come from the same source [begin, end)."""
    return (Byte(b, begin, end) for b in value)


def each(value: bytes, begin: int) -> Iterator[Byte]:
    """Returns bytes, each of which comes from one source byte, starting at `begin`."""
    return (Byte(b, begin + i, begin + i + 1) for i, b in enumerate(value))


def converted(text: bytes, begin: int, end: int, value: bytes) -> Iterator[Byte]:
    """Returns the bytes of `value`, the normalized form of text[begin:end]. If normalization
    changed nothing, each byte comes from one source byte, otherwise from the whole range."""
    return each(value, begin) if value == text[begin:end] else whole(value, begin, end)


def value(norm: Iterable[Byte]) -> bytes:
    return bytes(b.value for b in norm)


def span(norm: list[Byte]) -> tuple[int, int]:
    """Returns the span of the text from which these bytes come. There must be at least one."""
    return norm[0].begin, norm[-1].end


def composed(norm: Iterable[Byte], source: list[Byte]) -> list[Byte]:
    """Composes two normalizations. The source of each byte in `norm` is a range of `source`;
    it is replaced by the range of the text from which these bytes come."""
    return [
        Byte(b.value, source[min(b.begin, len(source) - 1)].begin, source[max(b.end, 1) - 1].end)
        for b in norm
    ]
