"""Draws statistics, with matplotlib."""

from __future__ import annotations

import io
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ggtok.base import files
from ggtok.base.escape import printable
from ggtok.errors import InvalidValueError, MissingExtraError

if TYPE_CHECKING:
    from ggtok.text.stats import Stats

_FORMATS = (".svg", ".png", ".pdf")
_PICTURE = files.FileFormat("a picture", lambda _: True)
_MOST_BARS = 30  # maximum number of scripts or files in a panel
_LONGEST = 20  # tokens of at least this many bytes share a bar


def plot(found: Mapping[str, Stats], out: str) -> None:
    """Draws bytes per token by script and by text, and token lengths, with a colour for each
    model, and writes the picture to a file."""
    if not out.lower().endswith(_FORMATS):
        raise InvalidValueError(
            f"{out}: the name of a picture ends with {', '.join(_FORMATS[:-1])} or .pdf"
        )
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError:
        raise MissingExtraError("a plot needs matplotlib: pip install 'ggtok[plot]'") from None
    panels = _panels(found)
    height = 1.2 + sum(0.8 + 0.24 * len(rows) * max(1, len(found) * 0.6) for _, rows, _ in panels)
    # Keeps text in an SVG as text, and makes the ids in it the same in every run.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "ggtok"}):
        figure = Figure(figsize=(8, height), layout="constrained")
        sizes = [max(1, len(rows)) for _, rows, _ in panels]
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=sizes)[:, 0]
        for axis, (title, rows, label) in zip(axes, panels, strict=True):
            _bars(axis, title, rows, label, list(found))
        if len(found) > 1:
            figure.legend(*axes[0].get_legend_handles_labels(), loc="outside lower center")
        data = io.BytesIO()
        format = out.lower()[-3:]
        figure.savefig(data, format=format, metadata={"Date": None} if format == "svg" else None)
    texts = [name for stats in found.values() for name in stats.texts]
    files.write(out, data.getvalue(), _PICTURE, inputs=texts, force=True)


Rows = dict[str, list[float]]


def _panels(found: Mapping[str, Stats]) -> list[tuple[str, Rows, str]]:
    """Returns each panel's title, rows of values (one for each model), and axis label."""
    first, *_ = found.values()
    panels = []
    scripts = {name: None for stats in found.values() for name in stats.scripts}
    if first.total.tokens:
        by_script: Rows = {
            name: [
                stats.scripts[name].bytes_per_token if name in stats.scripts else 0.0
                for stats in found.values()
            ]
            for name in sorted(
                scripts, key=lambda name: -first.scripts[name].bytes if name in first.scripts else 0
            )[:_MOST_BARS]
        }
        by_script["total"] = [stats.total.bytes_per_token for stats in found.values()]
        panels.append(("Bytes per token by script", by_script, "bytes per token"))
    if len(first.texts) > 1:
        by_text: Rows = {
            os.path.basename(name): [s.texts[name].bytes_per_token for s in found.values()]
            for name in list(first.texts)[:_MOST_BARS]
        }
        panels.append(("Bytes per token by text", by_text, "bytes per token"))
    if first.total.tokens:
        panels.append(
            (
                "Lengths of the text's tokens",
                _lengths([s.lengths for s in found.values()]),
                "% of tokens",
            )
        )
    vocabulary = _lengths([s.vocabulary_lengths for s in found.values()])
    panels.append(("Lengths of the vocabulary's tokens", vocabulary, "% of tokens"))
    return panels


def _lengths(counts: list[dict[int, int]]) -> Rows:
    rows: Rows = {}
    for n in range(1, _LONGEST + 1):
        name = f"{n} bytes or more" if n == _LONGEST else "1 byte" if n == 1 else f"{n} bytes"
        values = []
        for lengths in counts:
            total = sum(lengths.values()) or 1
            last = sum(count for k, count in lengths.items() if k >= n)
            values.append(100 * (last if n == _LONGEST else lengths.get(n, 0)) / total)
        rows[name] = values
    return rows


def _bars(axis: Any, title: str, rows: Rows, label: str, names: list[str]) -> None:
    n = len(names)
    size = 0.8 / n
    for i, name in enumerate(names):
        at = [row - 0.4 + size * (i + 0.5) for row in range(len(rows))]
        values = [values[i] for values in rows.values()]
        axis.barh(
            at, values, height=size, label=printable(os.path.basename(name)).replace("$", r"\$")
        )
    # An unescaped $ would start a formula.
    labels = [printable(name).replace("$", r"\$") for name in rows]
    axis.set_yticks(range(len(rows)), labels=labels)
    axis.invert_yaxis()
    axis.set_title(title, loc="left")
    axis.set_xlabel(label)
    axis.margins(y=0.01)
