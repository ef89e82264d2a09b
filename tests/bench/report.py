"""Writes the results: tables for the terminal and in Markdown, and the JSON file.

ggtok's cells show the best sample and the median. The cells of other tokenizers first show how many
times as fast ggtok is. `*` means that the tokenizer's ids differ from ggtok's.
"""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

from tests.bench.peers import OURS, PEERS
from tests.bench.results import Row
from tests.bench.suite import NOT_OFFERED, OTHER_IDS

_LEGEND = (
    "Cells: how many times as fast (or as small) as that tokenizer ggtok is, then best / "
    "median in the row's unit. *: its ids differ from ggtok's. -: not measured here. "
    "n/a, failed: the notes say why."
)


def _number(value: float) -> str:
    if value >= 100:
        return f"{value:.0f}"
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _cell(row: Row, peer: str) -> str:
    cell = row.cells.get(peer)
    best = row.best(peer)
    if cell is None or best is None:
        if cell is None or not cell.note:
            return "-"
        return "n/a" if cell.note.startswith(NOT_OFFERED) else "failed"
    text = f"{_number(best)} / {_number(row.median(peer))}"
    ratio = row.ratio(peer)
    if peer != OURS and ratio is not None:
        text = f"{_number(ratio)}x  {text}"
    return text + "*" * cell.note.startswith(OTHER_IDS)


def _tables(rows: list[Row]) -> list[tuple[str, list[list[str]]]]:
    """Returns a table for each group and unit: its title, and lines of cells; the first line has
    the headings."""
    tables = []
    for (group, unit), some in groupby(rows, lambda row: (row.group, row.unit)):
        members = list(some)
        names = dict.fromkeys((*PEERS, *(name for row in members for name in row.cells)))
        peers = [p for p in names if any(p in row.cells for row in members)]
        lines = [["vocabulary", "text", "case", "x the best other", *peers]]
        for row in members:
            next_best = row.next_best()
            ahead = f"{_number(next_best[1])}x {next_best[0]}" if next_best else "-"
            head = [row.vocab or "-", row.text or "-", row.case, ahead]
            lines.append(head + [_cell(row, peer) for peer in peers])
        tables.append((f"{group} ({unit})", lines))
    return tables


def _sorted(rows: list[Row]) -> list[Row]:
    order = {key: n for n, key in enumerate(dict.fromkeys((r.group, r.unit) for r in rows))}
    return sorted(rows, key=lambda row: order[row.group, row.unit])


def terminal(document: dict[str, Any], rows: list[Row]) -> str:
    out = []
    for title, lines in _tables(_sorted(rows)):
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        out.append(f"\n== {title}")
        out += [
            "  ".join(text.ljust(width) for text, width in zip(line, widths, strict=True)).rstrip()
            for line in lines
        ]
    return "\n".join([*out, "", _LEGEND, *_notes(document)])


def _notes(document: dict[str, Any]) -> list[str]:
    lines = []
    if missing := document["missing"]:
        lines.append(f"Not installed, so not measured: {', '.join(missing)}.")
    for vocab, notes in document["notes"].items():
        lines += [f"{vocab}: {peer}: {note}" for peer, note in notes.items()]
    return lines


def markdown(document: dict[str, Any], rows: list[Row]) -> str:
    machine, options = document["machine"], document["options"]
    out = [
        "# Benchmark",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['os']}, Python "
        f"{machine['python']}; load average before: {machine.get('load_average_before', '?')}. "
        f"{options['rounds']} rounds; each tokenizer in its own process on one core, in turn.",
        "",
        "Versions: " + ", ".join(f"{name} {v}" for name, v in document["versions"].items()) + ".",
        "",
        "Texts: "
        + ", ".join(f"{c['name']} ({c['bytes']:,} bytes)" for c in document["corpora"])
        + ".",
        "",
        _LEGEND,
    ]
    for title, lines in _tables(_sorted(rows)):
        lines = [[text.replace("|", "\\|") for text in line] for line in lines]
        out += ["", f"## {title}", "", f"| {' | '.join(lines[0])} |"]
        out.append("|" + "---|" * 3 + "---:|" * (len(lines[0]) - 3))
        out += [f"| {' | '.join(line)} |" for line in lines[1:]]
    if notes := _notes(document):
        out += ["", "## Notes", "", *(f"- {note}" for note in notes)]
    return "\n".join(out) + "\n"


def write(folder: Path, document: dict[str, Any], rows: list[Row]) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    full = {**document, "rows": [row.as_dict() for row in rows]}
    (folder / "bench.json").write_text(json.dumps(full, indent=1, ensure_ascii=False) + "\n")
    (folder / "bench.md").write_text(markdown(document, rows))
