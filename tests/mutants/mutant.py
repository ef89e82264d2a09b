"""What a mutant is, and which mutants a seed selects."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Change:
    """Some bytes of a source replaced by others."""

    start: int
    end: int
    new: bytes
    kind: str
    first_line: int  # of the statement
    line: int  # of the changed bytes
    at_import: bool = False  # Python: outside of any function


@dataclass(frozen=True)
class Mutant:
    path: str  # from the root of the checkout
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
    """All of them in an order that the seed decides; each kind of change has its turn."""
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
