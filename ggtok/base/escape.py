"""What comes from outside, for people to read.

Names and texts of files, templates, manifests and servers end up in messages and on
terminals, which obey control sequences (they move the cursor, set the title, answer
back) and reorder text at Unicode's direction marks. Every such text passes through
:func:`shown` where it is put in a message or printed.
"""

from __future__ import annotations


def shown(text: str | bytes, most: int | None = None) -> str:
    r"""`text` with all that is not printable as Python's escapes: ``\x1b``, ``\n``, ``\u202e``.

    Bytes that are not UTF-8, in `bytes` or as the surrogates that stand for them in file
    names, become ``\xff``. Of a text longer than `most` (bytes of `bytes`, code points of
    `str`) only the beginning is shown, then ``...``. Printable text stays as it is,
    backslashes too: the result is for reading, not for reading back.
    """
    if most is not None and len(text) > most:
        return shown(text[:most]) + "..."
    if isinstance(text, bytes):
        text = text.decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else _escaped(c) for c in text)


def number(n: int, noun: str) -> str:
    """ "1 token", "2 tokens"."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def _escaped(c: str) -> str:
    if "\udc80" <= c <= "\udcff":
        return f"\\x{ord(c) - 0xDC00:02x}"
    return ascii(c)[1:-1]
