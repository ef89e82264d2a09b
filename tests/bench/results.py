"""The results of measurements, as rows of cells."""

from __future__ import annotations

import statistics
from dataclasses import asdict, dataclass, field
from typing import Any

from tests.bench.peers import OURS, PEERS

SPEED = "MB/s"  # MB of UTF-8; 1 MB is a million bytes
TIMES = "x"
_MORE_IS_BETTER = (SPEED, TIMES)
# The peers that count as competitors in the summary; of the chat renderers, only transformers.
_RIVALS = frozenset((*PEERS, "transformers")) - {OURS}


@dataclass
class Cell:
    """A tokenizer's samples, one per round, or a note that says why there are none."""

    samples: list[float] = field(default_factory=list)
    note: str = ""


@dataclass
class Row:
    group: str
    vocab: str
    text: str
    case: str
    unit: str
    cells: dict[str, Cell] = field(default_factory=dict)

    def best(self, peer: str) -> float | None:
        samples = self.cells[peer].samples if peer in self.cells else []
        if not samples:
            return None
        return max(samples) if self.unit in _MORE_IS_BETTER else min(samples)

    def median(self, peer: str) -> float:
        return statistics.median(self.cells[peer].samples)

    def ratio(self, peer: str) -> float | None:
        """Returns how many times as fast (or small) ggtok is, by the best samples of both."""
        ours, theirs = self.best(OURS), self.best(peer)
        if not ours or not theirs:
            return None
        return ours / theirs if self.unit in _MORE_IS_BETTER else theirs / ours

    def next_best(self) -> tuple[str, float] | None:
        """Returns the best other tokenizer that has equal ids, and ggtok's ratio to it."""
        others = [
            (ratio, name)
            for name, cell in self.cells.items()
            if name in _RIVALS and not cell.note and (ratio := self.ratio(name)) is not None
        ]
        if not others:
            return None
        ratio, name = min(others)
        return name, ratio

    def as_dict(self) -> dict[str, Any]:
        row = asdict(self)
        for name, cell in row["cells"].items():
            if cell["samples"]:
                cell |= {
                    "best": self.best(name),
                    "median": self.median(name),
                    "ggtok_ratio": self.ratio(name),
                }
        return row
