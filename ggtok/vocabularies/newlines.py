"""Runs of newlines in Gemma 4's vocabularies, which llama.cpp looks up before it merges."""

from __future__ import annotations

from collections.abc import Collection, Iterable


def unmerged_run(texts: Collection[str], merges: Iterable[tuple[str, str]]) -> str | None:
    """The shortest token of newlines that merges make no token of, or None."""
    runs = sorted(len(text) for text in texts if len(text) > 1 and not text.strip("\n"))
    ranks: dict[tuple[int, int], int] = {}
    for rank, (left, right) in enumerate(merges):
        if not (left + right).strip("\n"):
            ranks.setdefault((len(left), len(right)), rank)
    return next(("\n" * n for n in runs if _merged(n, ranks) != [n]), None)


def _merged(n: int, ranks: dict[tuple[int, int], int]) -> list[int]:
    """The lengths that n newlines come to."""
    parts = [1] * n
    while True:
        joint = [
            (ranks[pair], i)
            for i in range(len(parts) - 1)
            if (pair := (parts[i], parts[i + 1])) in ranks
        ]
        if not joint:
            return parts
        _, i = min(joint)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
