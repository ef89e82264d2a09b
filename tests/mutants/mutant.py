"""Mutants, and their random selection from a seed."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """A replacement for some bytes of a source file."""

    start: int
    end: int
    new: bytes
    kind: str
    first_line: int  # the line on which the statement begins
    line: int  # the line of the changed bytes
    at_import: bool = False  # whether the code runs when a Python module is imported


@dataclass(frozen=True)
class Mutant:
    path: str  # relative to the checkout's root
    old: str
    column: int
    change: Change

    @property
    def name(self) -> str:
        new = self.change.new.decode()
        old, new = (" ".join(text.split()) for text in (self.old, new))
        return f"{self.path}:{self.change.line}:{self.column}: {old} -> {new}"

    def apply(self, source: bytes) -> bytes:
        return source[: self.change.start] + self.change.new + source[self.change.end :]


def sample(mutants: Iterable[Mutant], seed: int) -> Iterator[Mutant]:
    """Yields all mutants in random order, alternating between the kinds of changes."""
    kinds = defaultdict(list)
    for mutant in mutants:
        kinds[mutant.change.kind].append(mutant)
    chance = random.Random(seed)
    for kind in sorted(kinds):
        chance.shuffle(kinds[kind])
    while kinds:
        for kind in sorted(kinds):
            yield kinds[kind].pop()
            if not kinds[kind]:
                del kinds[kind]
