"""Draws docs/speed.svg, the README's chart, from the figures in docs/speed.json.

python -m tests.bench.chart

The figures agree with docs/performance.md (tests/docs/test_figures.py checks this). The chart has a
transparent background, and colors that are legible on both white and black.
"""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

DOCS = Path(__file__).resolve().parents[2] / "docs"
FIGURES, CHART = DOCS / "speed.json", DOCS / "speed.svg"

_LINE, _BAR = 22, 14  # heights of a tokenizer's line and of its bars, in pixels
_NAMES, _PANEL, _NUMBER = 96, 170, 56  # widths of the names, a panel's bars and a number, in pixels
_TOP = 64
_STYLE = """
    text { font: 13px system-ui, sans-serif; fill: #333 }
    .title { font-weight: 600 }
    .ours { font-weight: 600 }
    rect { fill: #8b949e }
    rect.ours { fill: #2f81f7 }
    @media (prefers-color-scheme: dark) { text { fill: #ddd } rect { fill: #6e7681 } }
"""


def draw(figures: dict[str, Any]) -> str:
    """Returns the chart as SVG: a line for each tokenizer, with a bar in each panel. The panels are
    side by side, each with its own scale."""
    panels, rows = figures["panels"], figures["rows"]
    width = _NAMES + len(panels) * (_PANEL + _NUMBER)
    height = _TOP + len(rows) * _LINE
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" role="img">',
        f"  <title>{escape(figures['title'])}</title>",
        f"  <style>{_STYLE}  </style>",
        f'  <text x="0" y="16" class="title">{escape(figures["title"])}</text>',
    ]
    for line, row in enumerate(rows):
        y = _TOP + line * _LINE
        ours = ' class="ours"' if row["name"] == "ggtok" else ""
        out.append(
            f'  <text x="{_NAMES - 10}" y="{y + 12}" text-anchor="end"{ours}>'
            f"{escape(row['name'])}</text>"
        )
        for at, _ in enumerate(panels):
            out += _bar(rows, row, at, y, ours)
    for at, panel in enumerate(panels):
        x = _NAMES + at * (_PANEL + _NUMBER)
        out.append(f'  <text x="{x}" y="{_TOP - 14}">{escape(panel["title"])}</text>')
    return "\n".join([*out, "</svg>", ""])


def _bar(rows: list[dict[str, Any]], row: dict[str, Any], at: int, y: int, ours: str) -> list[str]:
    value = row["values"][at]
    x = _NAMES + at * (_PANEL + _NUMBER)
    if value is None:
        return [f'  <text x="{x}" y="{y + 12}">not measured</text>']
    greatest = max(other["values"][at] or 0 for other in rows)
    long = max(1, round(_PANEL * value / greatest))
    return [
        f'  <rect x="{x}" y="{y}" width="{long}" height="{_BAR}" rx="2"{ours}/>',
        f'  <text x="{x + long + 6}" y="{y + 12}"{ours}>{value:g}</text>',
    ]


if __name__ == "__main__":
    CHART.write_text(draw(json.loads(FIGURES.read_text("utf-8"))), "utf-8")
