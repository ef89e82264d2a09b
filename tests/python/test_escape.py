"""Untrusted text can't control the terminal that shows it."""

from __future__ import annotations

import pytest

from ggtok.base.escape import printable

# The text, and how it is shown.
ROWS: dict[str, tuple[str | bytes, str]] = {
    "plain": ("models/größe 模型.gguf", "models/größe 模型.gguf"),
    "plain bytes": ("größe".encode(), "größe"),
    "nothing": ("", ""),
    "clear the screen": ("a\x1b[2Jb", "a\\x1b[2Jb"),
    "set the title": (b"\x1b]0;x\x07", "\\x1b]0;x\\x07"),
    "C1 control": ("\x9b2J", "\\x9b2J"),
    "lines": ("a\r\nb\tc", "a\\r\\nb\\tc"),
    "line separator": ("a\u2028b", "a\\u2028b"),
    "right to left": ("fugg\u202efile", "fugg\\u202efile"),
    "tag characters": ("a\U000e0041", "a\\U000e0041"),
    "no UTF-8": (b"a\xff\xc3", "a\\xff\\xc3"),
    "no UTF-8 in a file's name": ("a\udcff", "a\\xff"),
    "lone surrogate": ("a\ud800", "a\\ud800"),
    "backslash": ("C:\\new", "C:\\new"),
}


@pytest.mark.parametrize("row", ROWS)
def test_untrusted_text_is_escaped(row: str) -> None:
    text, expected = ROWS[row]
    assert printable(text) == expected
    assert printable(text, most=len(text)) == expected


def test_a_long_text_is_cut() -> None:
    assert printable("\x1b" + "é" * 10, most=3) == "\\x1béé..."
    assert printable("é".encode() * 10, most=4) == "éé..."
