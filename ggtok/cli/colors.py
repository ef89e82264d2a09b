"""Text in which every token can be seen: backgrounds that alternate, visible white space."""

from __future__ import annotations

import os
from collections.abc import Iterable

import ggtok
from ggtok.base.escape import shown
from ggtok.cli import writing

# Black on cyan and on yellow, and bold white on magenta: readable on dark and light terminals.
_TOKENS = ("\x1b[30;46m", "\x1b[30;43m")
_SPECIAL = "\x1b[1;97;45m"
_PLAIN = "\x1b[0m"


def wanted(when: str) -> bool:
    """Whether output is to be coloured: `when` is always, never or auto, which means on a
    terminal that can do it, unless NO_COLOR is set (no-color.org)."""
    if when != "auto":
        return when == "always"
    return (
        writing.to_terminal()
        and not os.environ.get("NO_COLOR")
        and os.environ.get("TERM") != "dumb"
    )


def write(tok: ggtok.Tokenizer, batches: Iterable[list[int]]) -> int:
    """Writes the text of ids, each on a background of its own; gives the number of ids."""
    special = tok.special_ids
    pieces: dict[int, list[str]] = {}
    count = 0
    at_start = True
    for ids in batches:
        out = []
        for id in ids:
            lines = pieces.get(id)
            if lines is None:
                lines = pieces[id] = _lines(tok.token_to_piece(id))
            color = _SPECIAL if id in special else _TOKENS[count % 2]
            # No background reaches to the end of a terminal's line.
            out.append("\n".join(f"{color}{line}{_PLAIN}" if line else "" for line in lines))
            if lines != [""]:
                at_start = not lines[-1]
            count += 1
        writing.write("".join(out).encode())
    if not at_start:
        writing.write(b"\n")
    return count


def _lines(piece: bytes) -> list[str]:
    """A piece, with marks for white space, in the lines that it takes on the screen."""
    lines = [
        "→".join(shown(part).replace(" ", "·") for part in line.split(b"\t"))
        for line in piece.split(b"\n")
    ]
    return [f"{line}↵" for line in lines[:-1]] + lines[-1:]
