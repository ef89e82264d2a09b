"""Characters as llama.cpp reads them, and bytes that know where they come from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

MARK = "\u2581".encode()
REPLACEMENT = "\ufffd".encode()


class Byte(NamedTuple):
    """One byte of normalized text."""

    value: int
    begin: int  # of its source
    end: int
    word: bool = False  # a WPM word begins with it


def characters(text: bytes, highest: int = 0x10FFFF) -> Iterator[tuple[int, int, int | None]]:
    """Begin, end and code point of each; None: a bad byte."""
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
            if c > highest:
                c = None
        if c is None:
            n = 1
        yield at, at + n, c
        at += n


def lead_length(lead: int) -> int:
    """How long a character is, going by its first byte."""
    return 1 if lead < 0xC0 else 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4


def utf8(c: int | None) -> bytes:
    """Its shortest form; of a bad byte U+FFFD."""
    if c is None:
        return REPLACEMENT
    if c > 0x10FFFF:
        return bytes([0xF0 | c >> 18, *(0x80 | c >> s & 0x3F for s in (12, 6, 0))])
    return chr(c).encode("utf-8", "surrogatepass")


def whole(value: bytes, begin: int, end: int) -> Iterator[Byte]:
    """Each byte comes from all of the source."""
    return (Byte(b, begin, end) for b in value)


def each(value: bytes, begin: int) -> Iterator[Byte]:
    """Each byte comes from its own."""
    return (Byte(b, begin + i, begin + i + 1) for i, b in enumerate(value))


def became(text: bytes, begin: int, end: int, value: bytes) -> Iterator[Byte]:
    """What text[begin:end] became: its own bytes, if they are the same."""
    return each(value, begin) if value == text[begin:end] else whole(value, begin, end)


def value(made: Iterable[Byte]) -> bytes:
    return bytes(b.value for b in made)


def span(made: list[Byte]) -> tuple[int, int]:
    """Where bytes come from; there is at least one."""
    return made[0].begin, made[-1].end


def retraced(made: Iterable[Byte], of: list[Byte]) -> list[Byte]:
    """What was made of bytes that were made themselves, with the source of those."""
    return [
        Byte(b.value, of[min(b.begin, len(of) - 1)].begin, of[max(b.end, 1) - 1].end) for b in made
    ]
