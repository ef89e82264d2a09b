"""Escapes untrusted text for messages and terminals.

Names and texts from files, templates, manifests and servers end up in messages. Terminals obey
control sequences in them (which move the cursor, set the title or send replies) and reorder text
at Unicode's direction marks. Pass every such text through :func:`shown` before it is printed or
put into a message.
"""

from __future__ import annotations

import reprlib


def printable(text: str | bytes, most: int | None = None) -> str:
    r"""Replaces unprintable characters with Python's escapes: ``\x1b``, ``\n``, ``\u202e``.

    Bytes that aren't UTF-8 (in `bytes`, or in file names as surrogates) become ``\xff``. A text
    longer than `most` (bytes or code points, by its type) is cut off and ends with ``...``.
    Printable text, including backslashes, is unchanged, so the result can't be parsed back.
    """
    if most is not None and len(text) > most:
        return printable(text[:most]) + "..."
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escape_character(c) for c in text)


def quoted(value: object) -> str:
    """Returns a value for a message. The result is short, and a value that can't be printed, such
    as a number of thousands of digits, gives its type."""
    try:
        return printable(_REPR.repr(value), 80)
    except Exception:
        return f"a value of type {type(value).__name__}"


_REPR = reprlib.Repr()
_REPR.maxstring = _REPR.maxother = _REPR.maxlong = 60


def number(n: int, noun: str) -> str:
    """Returns a number with its noun: "1 token", "2 tokens"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def one_line(error: Exception) -> str:
    """Returns an error's message as one line of at most 500 characters; if it has none, the name
    of its class."""
    return printable(" ".join(str(error).split()), 500) or type(error).__name__


def _escape_character(c: str) -> str:
    if "\udc80" <= c <= "\udcff":
        return f"\\x{ord(c) - 0xDC00:02x}"
    return ascii(c)[1:-1]
