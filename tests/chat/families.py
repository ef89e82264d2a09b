"""The rows of cext/chat/families.c: the texts by which llama-server recognizes families."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "cext" / "chat" / "families.c"
_STRING = r'"(?:[^"\\\n]|\\.)*"'
_TEXTS = rf"TEXTS\(((?:{_STRING}[,\s]*)+)\)"
_ROW = re.compile(rf"\{{({_STRING}),\s*{_TEXTS}")
_ABSENT = re.compile(rf"\.absent = {_TEXTS}")


@dataclass(frozen=True)
class Family:
    name: str
    present: tuple[str, ...]
    absent: tuple[str, ...]
    reasons: bool


def strings(source: str) -> list[str]:
    """Returns the string literals of C source."""
    return [
        literal[1:-1].encode().decode("unicode_escape").encode("latin-1").decode()
        for literal in re.findall(_STRING, source)
    ]


def families() -> list[Family]:
    """Returns the table's rows in order."""
    table = SOURCE.read_text("utf-8").partition("families[] = {")[2].partition("\n};")[0]
    rows = list(_ROW.finditer(table))
    ends = [row.start() for row in rows[1:]] + [len(table)]
    found = []
    for row, end in zip(rows, ends, strict=True):
        rest = table[row.end() : end]
        absent = _ABSENT.search(rest)
        found.append(
            Family(
                strings(row[1])[0],
                tuple(strings(row[2])),
                tuple(strings(absent[1])) if absent else (),
                ".reasons = true" in rest,
            )
        )
    return found
