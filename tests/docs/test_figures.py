"""The figures in the README and in its chart agree with docs/performance.md."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET

from tests.bench.chart import CHART, FIGURES, draw
from tests.docs.pages import ROOT

PERFORMANCE = (ROOT / "docs" / "performance.md").read_text("utf-8")
README = (ROOT / "README.md").read_text("utf-8")


def row(name: str) -> dict[str, str]:
    """Returns a row of a table in docs/performance.md: its cells by column name. The names don't
    include version numbers."""
    lines = PERFORMANCE.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith(f"| {name} |"))
    head = max(n for n in range(at) if lines[n].startswith("|---"))
    names = [cell.split()[0] if cell.strip() else "" for cell in lines[head - 1].split("|")[2:-1]]
    cells = [cell.strip() for cell in lines[at].split("|")[2:-1]]
    return dict(zip(names, cells, strict=True))


def test_the_chart_shows_measured_figures() -> None:
    figures = json.loads(FIGURES.read_text("utf-8"))
    for at, panel in enumerate(figures["panels"]):
        shown = {
            each["name"]: "-" if each["values"][at] is None else f"{each['values'][at]:,}"
            for each in figures["rows"]
        }
        assert shown == row(panel["row"]), panel


def test_the_chart_is_drawn_from_its_figures() -> None:
    """The chart is up to date. (python -m tests.bench.chart draws it.)"""
    drawn = draw(json.loads(FIGURES.read_text("utf-8")))
    assert drawn == CHART.read_text("utf-8")
    assert ET.fromstring(drawn).tag.endswith("svg")
    assert "prefers-color-scheme: dark" in drawn


def test_the_readme_shows_measured_figures() -> None:
    text = " ".join(README.split())
    cached = row("cached: English prose")["ggtok"]
    new = row("new: prose")["ggtok"]
    assert f"{cached} MB/s for cached English prose and {new} MB/s for new" in text
    started = row("import, load, encode, exit, ms")["ggtok"]
    memory = round(float(row("memory after load, MB")["ggtok"]))
    assert f"{started} ms for a process that imports ggtok" in text
    assert f"{memory} MB of memory after loading" in text
    short, middle, long = (row(f"job: {size}")["ggtok"] for size in ("60 bytes", "1 MB", "64 MB"))
    assert f"ggtok {short} for 60 bytes, {middle} for 1 MB and {long} for 64 MB" in text
