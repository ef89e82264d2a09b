"""The tables of docs/doctor.md: all findings, and which real vocabularies have them.

python -m tests.checks.table           # writes the tables into the page
"""

from __future__ import annotations

import re
from pathlib import Path

import ggtok
from ggtok.inspect.doctor.codes import KINDS, SERIOUS
from tests.support.vocabularies import OTHERS, REAL, real

PAGE = Path(__file__).resolve().parents[2] / "docs" / "doctor.md"
_TABLE = r"(<!-- {}: written by python -m tests\.checks\.table -->\n\n)(.*?)(\n\n)"


def kinds() -> str:
    """The table of all findings."""
    rows = [
        "| code | severity | what it is | what it means | what to do |",
        "|---|---|---|---|---|",
    ]
    for code, kind in KINDS.items():
        means, advice = (re.sub("[<>]", r"\\\g<0>", t) for t in (kind.means, kind.advice))
        rows.append(f"| {code} | {kind.severity} | {kind.title} | {means} | {advice} |")
    return "\n".join(rows)


def row(name: str) -> str:
    """The table row of a real vocabulary: its findings."""
    found = ggtok.doctor(real(name))
    cells = []
    for f in found:
        code = f"**{f.code}**" if f.severity == SERIOUS else f.code
        cells.append(f"{code} ({len(f.ids)})" if len(f.ids) > 1 else code)
    return f"| {name} | {', '.join(cells) or 'nothing'} |"


def rows() -> str:
    head = ["| vocabulary | findings (tokens) |", "|---|---|"]
    return "\n".join([*head, *map(row, (*REAL, *OTHERS))])


def written(which: str) -> str:
    """The table in the page."""
    found = re.search(_TABLE.format(which), PAGE.read_text("utf-8"), re.DOTALL)
    assert found, which
    return found[2]


def main() -> None:
    for which, table in (("findings", kinds()), ("vocabularies", rows())):
        page = PAGE.read_text("utf-8")
        pattern = _TABLE.format(which)
        page = re.sub(pattern, lambda m, t=table: m[1] + t + m[3], page, flags=re.DOTALL)  # type: ignore[misc]
        PAGE.write_text(page, "utf-8")


if __name__ == "__main__":
    main()
