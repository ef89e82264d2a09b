"""Writes tests/plain/chains.py: the pre-tokenizers for the tests' plain tokenizer.

    python cext/gen/pretok_python.py [--check]

The names, their flags and chains are the rows of pretok/names.c; the expressions are those of
pretok_patterns.py. --check compares instead of writing and fails on a difference.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from pretok_patterns import PATTERNS
from unicode_tables import main

ROOT = Path(__file__).parents[2]
NAMES = ROOT / "cext" / "pretok" / "names.c"
OUTPUT = ROOT / "tests" / "plain" / "chains.py"

_CHAIN = re.compile(r"^#define (CHAIN_\w+)\s+\\?\s*\{(.*?)\},", re.MULTILINE | re.DOTALL)
_ROW = re.compile(r'^    \{"([^"]+)", "(\w+)", ([\w |]+), (CHAIN_\w+)\},$', re.MULTILINE)
_COUNTING = ("groups_right", "groups_left")  # scanners in pretok/counting.c


def chains(source: str) -> dict[str, tuple[str, ...]]:
    """Returns for each CHAIN_ macro its first member: the scanners as in llama.cpp."""
    known = {pattern.name for pattern in PATTERNS} | set(_COUNTING)
    found = {}
    for name, members in _CHAIN.findall(source):
        scanners = tuple(
            member.strip(" \\\n&").removeprefix("ggtok_pretok_") for member in members.split(",")
        )
        if unknown := set(scanners) - known:
            raise SystemExit(f"{name}: no expression for {', '.join(unknown)}")
        found[name] = scanners
    return found


def quoted(text: str) -> str:
    """Returns the text as an ASCII Python literal in double quotes, as the formatter requires."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if text.isascii() else ascii(text)


def literal(text: str, indent: str) -> list[str]:
    """Returns a long string as literals that fit on a line each."""
    width = 80
    pieces = [text[i : i + width] for i in range(0, len(text), width)]
    return [indent + quoted(piece) for piece in pieces]


def generate() -> str:
    source = NAMES.read_text()
    members = chains(source)
    rows = _ROW.findall(source)
    if source.count("CHAIN_") != len(members) + len(rows):
        raise SystemExit(f"{NAMES.name}: a row or a chain is written in another way")
    lines = [
        '"""The pre-tokenizers: names, the flags that they set, and their expressions.',
        "",
        "DO NOT EDIT: written by cext/gen/pretok_python.py from cext/pretok/names.c and",
        "cext/gen/pretok_patterns.py.",
        '"""',
        "",
        "# ruff: noqa",
        "# fmt: off",
        "# Name: the chain of scanners, each of which cuts the pieces of the previous one; flags.",
        "PRE: dict[str, tuple[tuple[str, ...], frozenset[str]]] = {",
    ]
    for name, _, flags, chain in rows:
        words = [word for word in flags.split(" | ") if word != "0"]
        scanners = "".join(f'"{scanner}", ' for scanner in members[chain])
        wanted = f"frozenset({words!r})" if words else "frozenset()"
        lines.append(f'    "{name}": (({scanners.rstrip()}), {wanted}),')
    lines += ["}", "", "EXPRESSIONS = {"]
    for pattern in PATTERNS:
        text = literal(pattern.regex, "        ")
        lines += [f'    "{pattern.name}": (', *text, "    ),"]
    return "\n".join([*lines, "}", ""])


if __name__ == "__main__":
    sys.exit(main(OUTPUT, generate()))
