"""Plots the encoding speeds as bars, with matplotlib."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path
from typing import Any

from tests.bench.peers import OURS, PEERS
from tests.bench.results import SPEED, Row

_PANELS = 12  # the maximum number of panels; a chart with more would be illegible


def plot(folder: Path, document: dict[str, Any], rows: list[Row]) -> bool:
    """Writes bench.svg and bench.png if matplotlib is installed and there are results to show."""
    if not importlib.util.find_spec("matplotlib"):
        return False
    panels: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        if row.unit == SPEED and row.group in ("encode", "models", "threads"):
            panels.setdefault((row.group, row.case), []).append(row)
    if not panels:
        return False
    matplotlib = importlib.import_module("matplotlib")
    matplotlib.use("Agg")
    pyplot = importlib.import_module("matplotlib.pyplot")

    shown = sorted(panels.items(), key=lambda panel: -len(panel[1]))[:_PANELS]
    height = sum(1.2 + 0.55 * len(members) for _, members in shown)
    figure, axes = pyplot.subplots(
        len(shown),
        1,
        figsize=(10, height),
        squeeze=False,
        layout="constrained",
        height_ratios=[1.2 + 0.55 * len(members) for _, members in shown],
    )
    peers = [p for p in PEERS if any(row.best(p) for _, rs in shown for row in rs)]
    colors = dict(zip(peers, pyplot.get_cmap("tab10").colors, strict=False))
    for axis, ((group, case), members) in zip(axes[:, 0], shown, strict=True):
        _bars(axis, members, peers, colors)
        axis.set_title(f"{group}: {case}", loc="left", fontsize=10)
    axes[-1, 0].set_xlabel("MB/s of UTF-8, best of the rounds (logarithmic)")
    handles = [pyplot.Rectangle((0, 0), 1, 1, color=colors[peer]) for peer in peers]
    labels = [f"{peer} {document['versions'].get(peer, '')}".strip() for peer in peers]
    figure.legend(handles, labels, loc="outside upper center", ncols=4, fontsize=8)
    for kind in ("svg", "png"):
        figure.savefig(folder / f"bench.{kind}", dpi=110)
    pyplot.close(figure)
    return True


def _bars(axis: Any, members: list[Row], peers: list[str], colors: dict[str, Any]) -> None:
    thick = 0.85 / len(peers)
    for n, peer in enumerate(peers):
        at, speeds = [], []
        for line, row in enumerate(members):
            speed = row.best(peer)
            if speed:
                at.append(line + n * thick)
                speeds.append(speed)
        bars = axis.barh(at, speeds, thick, color=colors[peer])
        if peer == OURS:
            axis.bar_label(bars, fmt="%.0f", fontsize=6, padding=2)
    axis.set_xscale("log")
    axis.set_xlim(left=0.3)
    axis.set_yticks([line + 0.42 for line in range(len(members))])
    axis.set_yticklabels([f"{row.vocab}, {row.text}" for row in members], fontsize=8)
    axis.invert_yaxis()
    axis.grid(axis="x", alpha=0.3)
