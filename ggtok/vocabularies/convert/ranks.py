"""Recovers merges from ranks, because tiktoken's files don't contain merges.

tiktoken joins the two neighbours whose joint bytes have the lowest rank, leftmost first. The joins
inside a token's bytes don't depend on the surrounding text, unless a join crosses the token's ends.
So a token is always joined from the same two parts: the last two that remain when its own bytes are
encoded. Therefore one merge per token, in the order of ranks, produces tiktoken's ids. A token that
isn't produced when its own bytes are encoded is found only as a whole word.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ggtok.vocabularies.contents import Pair


def recover_merges(ranks: Mapping[bytes, int]) -> tuple[list[Pair], list[bytes]]:
    """Returns the merges in the order of ranks, and the tokens of several bytes that no merge
    produces."""
    merges: list[Pair] = []
    unreachable: list[bytes] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) < 2:
            continue
        pair = last_merge(token, ranks)
        if pair is None:
            unreachable.append(token)
        else:
            merges.append(pair)
    return merges, unreachable


def last_merge(token: bytes, ranks: Mapping[bytes, int]) -> Pair | None:
    """Returns the last two parts that are joined when a token's bytes are encoded, or None. Takes
    O(n log n) time for n bytes."""
    n = len(token)
    if n == 2:
        return (token[:1], token[1:]) if _has_parts(token, ranks) else None
    ends = list(range(1, n + 1))  # ends[i]: the end of the part that starts at i, or 0 if none does
    begins = list(range(-1, n))  # begins[i]: the start of the part that ends at i
    heap: list[tuple[int, int, int]] = []
    for at in range(n - 1):
        rank = ranks.get(token[at : at + 2])
        if rank is not None:
            heap.append((rank, at, at + 2))
    heapq.heapify(heap)
    parts = n
    while heap:
        _, at, end = heapq.heappop(heap)
        middle = ends[at]
        if middle == 0 or middle >= n or ends[middle] != end:
            continue  # one of the two parts has changed in the meantime
        if parts == 2:
            return token[:middle], token[middle:]
        parts -= 1
        ends[at], ends[middle] = end, 0
        if end < n:
            begins[end] = at
            _push(heap, token, ranks, at, ends[end])
        if at > 0:
            _push(heap, token, ranks, begins[at], end)
    return None


def _has_parts(token: bytes, ranks: Mapping[bytes, int]) -> bool:
    return token[:1] in ranks and token[1:] in ranks


def _push(
    heap: list[tuple[int, int, int]],
    token: bytes,
    ranks: Mapping[bytes, int],
    at: int,
    end: int,
) -> None:
    rank = ranks.get(token[at:end])
    if rank is not None:
        heapq.heappush(heap, (rank, at, end))
