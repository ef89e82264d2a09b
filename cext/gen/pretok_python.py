"""Writes ggtok/vocabularies/pre_rows.py: the pre-tokenizers for Python.

The names, their flags and chains are the rows of pretok/names.c; the expressions are those of
pretok_patterns.py.
"""

from __future__ import annotations

import re
from pathlib import Path

from pretok_patterns import PATTERNS

ROOT = Path(__file__).parents[2]
NAMES = ROOT / "cext" / "pretok" / "names.c"
OUTPUT = ROOT / "ggtok" / "vocabularies" / "pre_rows.py"

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
        found[chain_name(name)] = scanners
    return found


def chain_name(macro: str) -> str:
    return macro.removeprefix("CHAIN_").lower()


def quoted(text: str) -> str:
    """Returns the text as an ASCII Python literal in double quotes, as the formatter requires."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if text.isascii() else ascii(text)


def literal(text: str, indent: str) -> list[str]:
    """Returns a long string as literals that fit on a line each."""
    width = 80
    pieces = [text[i : i + width] for i in range(0, len(text), width)]
    return [indent + quoted(piece) for piece in pieces]


def quoted_tuple(words: tuple[str, ...]) -> str:
    return "(" + "".join(f'"{word}", ' for word in words).rstrip() + ")"


def generate() -> str:
    source = NAMES.read_text()
    members = chains(source)
    rows = _ROW.findall(source)
    if source.count("CHAIN_") != len(members) + len(rows):
        raise SystemExit(f"{NAMES.name}: a row or a chain is written in another way")
    lines = [
        '"""The pre-tokenizers of llama.cpp: names, their chains of scanners, and expressions.',
        "",
        "DO NOT EDIT: written by cext/gen/pretok_python.py from cext/pretok/names.c and",
        "cext/gen/pretok_patterns.py.",
        '"""',
        "",
        "# ruff: noqa",
        "# fmt: off",
        "# Values of tokenizer.ggml.pre: their chains, and the flags that they set.",
        "PRE_ROWS: dict[str, tuple[str, frozenset[str]]] = {",
    ]
    for name, _, flags, macro in rows:
        words = [word for word in flags.split(" | ") if word != "0"]
        wanted = f"frozenset({words!r})" if words else "frozenset()"
        lines.append(f'    "{name}": ("{chain_name(macro)}", {wanted}),')
    lines += [
        "}",
        "",
        "# The scanners of each chain: each cuts the pieces of the previous one. Two of them count",
        "# (cext/pretok/counting.c); the others match an expression.",
        "SCANNERS: dict[str, tuple[str, ...]] = {",
    ]
    lines += [f'    "{name}": {quoted_tuple(chain)},' for name, chain in members.items()]
    lines += ["}", "", "EXPRESSIONS: dict[str, str] = {"]
    for pattern in PATTERNS:
        text = literal(pattern.regex, "        ")
        lines += [f'    "{pattern.name}": (', *text, "    ),"]
    return "\n".join([*lines, "}", ""])
