"""Merges a word's symbols by rank, to check merges that aren't in any loaded tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from typing import TypeVar

S = TypeVar("S", str, bytes)


def merges_of(
    ranks: Mapping[tuple[S, S], int], symbols: list[S]
) -> tuple[list[tuple[int, int, S, S]], list[S]]:
    """Returns the merges as (rank, number of the left symbol, left, right), and the remaining
    symbols.

    The pair with the lowest rank is merged first, and of pairs with equal ranks, the leftmost. A
    merged symbol keeps the number of its first part.
    """
    now: list[S | None] = []
    now += symbols
    after = [*range(1, len(symbols)), -1]
    before = [*range(-1, len(symbols) - 1)]
    queue = [
        (rank, i)
        for i in range(len(symbols) - 1)
        if (rank := ranks.get((symbols[i], symbols[i + 1]))) is not None
    ]
    heapify(queue)
    merges = []
    while queue:
        rank, i = heappop(queue)
        j = after[i]
        left, right = now[i], now[j] if j >= 0 else None
        if left is None or right is None or ranks.get((left, right)) != rank:
            continue  # one of the two symbols has been merged in the meantime
        merges.append((rank, i, left, right))
        now[i], now[j] = left + right, None
        after[i] = after[j]
        if after[i] >= 0:
            before[after[i]] = i
        for k in (before[i], i):
            if k >= 0 and after[k] >= 0:
                pair = now[k], now[after[k]]
                if (rank_of_pair := ranks.get(pair)) is not None:  # type: ignore[arg-type]
                    heappush(queue, (rank_of_pair, k))
    return merges, [symbol for symbol in now if symbol is not None]
