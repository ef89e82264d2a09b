"""Merges recovered from ranks: what tiktoken's files lack.

tiktoken joins the two neighbours whose joint bytes have the lowest rank, the leftmost first.
What happens inside a token's bytes doesn't depend on what is around them as long as nothing
reaches across their ends, so a token always comes from the same two parts: those that are left
last when its own bytes are encoded. One merge a token, in the order of ranks, therefore gives
tiktoken's ids. A token that its own bytes don't come to is only found as a whole word.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping

from ggtok.vocabularies.contents import Pair


def recovered(ranks: Mapping[bytes, int]) -> tuple[list[Pair], list[bytes]]:
    """The merges in the order of ranks, and the tokens of several bytes that none makes."""
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
    """The two parts that a token's bytes come to before they are one, or None.

    Takes n log n steps for n bytes.
    """
    n = len(token)
    if n == 2:
        return (token[:1], token[1:]) if _known(token, ranks) else None
    ends = list(range(1, n + 1))  # of the part that begins there; 0: none does
    begins = list(range(-1, n))  # of the part before the one that begins there
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
            continue  # one of the two has changed
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


def _known(token: bytes, ranks: Mapping[bytes, int]) -> bool:
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
