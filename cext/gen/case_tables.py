"""Writes jinja/python/case_tables.inc: Python's case maps beyond ASCII, to 1-3 code points each.

The tables are those of the Python that runs this script: str.lower, str.upper, str.title and
str.casefold of single characters (title: only where it differs from upper; casefold: only where it
differs from lower), and the ranges of characters that have no other case but for which
str.islower or str.isupper is true. The committed tables are CPython 3.11's (Unicode 14.0.0); with
another Unicode version, the script does nothing.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

OUTPUT = Path(__file__).parents[1] / "jinja" / "python" / "case_tables.inc"
VERSION = "14.0.0"


def rows(kind: str) -> list[tuple[int, str]]:
    found = []
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        if kind == "lower":
            changed = char.lower()
        elif kind == "upper":
            changed = char.upper()
        elif kind == "fold":
            changed = char.casefold()
            if changed != char.lower():
                found.append((code, changed))
            continue
        else:
            changed = char.title() if char.title() != char.upper() else char
            if char.title() != char.upper() and char.title() == char:
                found.append((code, changed))
        if changed != char:
            found.append((code, changed))
    return found


def ranges(kind: str) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for code in range(0x80, sys.maxunicode + 1):
        char = chr(code)
        holds = char.islower() if kind == "lower" else char.isupper()
        if not holds or char.lower() != char or char.upper() != char:
            continue
        if found and found[-1][1] == code - 1:
            found[-1] = (found[-1][0], code)
        else:
            found.append((code, code))
    return found


def wrapped(items: list[str]) -> str:
    text, line = "", "   "
    for item in items:
        if len(line) + len(item) > 100:
            text += line + "\n"
            line = "   "
        line += item
    return f"{text}{line}\n}};\n"


def generate() -> str | None:
    if unicodedata.unidata_version != VERSION:
        found = unicodedata.unidata_version
        print(f"{OUTPUT.name}: needs a Python with Unicode {VERSION}; this one has {found}")
        return None
    text = f"/* DO NOT EDIT: made by cext/gen/case_tables.py, Unicode {VERSION}. */\n"
    for kind in ("lower", "upper", "title", "fold"):
        found = rows(kind)
        if any(len(to) > 3 for _, to in found):
            raise SystemExit("a map to more than three code points")
        text += f"\nstatic const case_row {kind}_rows[] = {{\n"
        points = [(code, ", ".join(f"0x{ord(c):X}" for c in to)) for code, to in found]
        text += wrapped([f" {{0x{code:X}, {{{to}}}}}," for code, to in points])
    for kind in ("lower", "upper"):
        text += f"\nstatic const case_range {kind}_alone[] = {{\n"
        text += wrapped([f" {{0x{first:X}, 0x{last:X}}}," for first, last in ranges(kind)])
    return text
