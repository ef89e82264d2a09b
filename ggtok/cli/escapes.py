"""The escapes that llama.cpp's tools replace in a prompt."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"'": b"'", b'"': b'"', b"\\": b"\\"}
# A backslash and what it is about. strtol, which llama.cpp reads \x with, lets
# white space or a sign stand for the first digit.
_FIRST, _DIGIT = rb"[0-9A-Fa-f \t-\r+-]", rb"[0-9A-Fa-f]"
_ESCAPE = re.compile(rb"\\(?:x([0-9A-Fa-f]{2}|[ \t-\r+-]%b)|(.))" % _DIGIT, re.DOTALL)
# The same, or the beginning of one that the text ends in.
_ESCAPE_OR_END = re.compile(rb"(\\(?:x%b?)?\Z)|%b" % (_FIRST, _ESCAPE.pattern), re.DOTALL)


def replace(text: bytes) -> bytes:
    r"""Replaces ``\n \r \t \' \" \\ \xHH`` as llama.cpp's tools do; others stay."""
    return _ESCAPE.sub(lambda match: _replacement(match[0], *match.groups()), text)


def replace_in_blocks(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """:func:`replace` for a text that comes in parts."""
    unfinished = b""

    def replacement(match: re.Match[bytes]) -> bytes:
        nonlocal unfinished
        end, digits, letter = match.groups()
        if end is None:
            return _replacement(match[0], digits, letter)
        unfinished = end
        return b""

    for block in blocks:
        text, unfinished = unfinished + block, b""
        yield _ESCAPE_OR_END.sub(replacement, text)
    yield replace(unfinished)


def _replacement(escape: bytes, digits: bytes | None, letter: bytes | None) -> bytes:
    if digits is not None:
        return bytes([int(digits, 16) & 0xFF])
    return _LETTERS.get(letter or b"", escape)
