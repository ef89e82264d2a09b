"""The probabilities of a short text's segmentations, for each rule of ``Tokenizer.sample``."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from typing import NamedTuple

from ggtok.loading.loaded import TokenAttr
from tests.plain import ugm
from tests.plain.characters import lead_length
from tests.plain.vocabulary import Vocabulary

Symbols = tuple[bytes, ...]
# For a pair of symbols, a number by which pairs are ordered, or None if the pair doesn't merge.
Order = Callable[[bytes, bytes], float | None]
Distribution = dict[Symbols, float]


class _Entry(NamedTuple):
    order: float
    at: int
    left: bytes
    right: bytes


class _State(NamedTuple):
    """Symbols by position, where b"" was merged into its left neighbour, and the queue, sorted."""

    symbols: Symbols
    queue: tuple[_Entry, ...]
    skipped: tuple[_Entry, ...] = ()


def ranks_of(v: Vocabulary) -> Order:
    return lambda left, right: v.ranks.get((left, right))


def scores_of(v: Vocabulary) -> Order:
    def order(left: bytes, right: bytes) -> float | None:
        id = v.find(left + right)
        return None if id is None else -v.score(id)

    return order


def _pair(order: Order, symbols: Symbols, at: int) -> Iterator[_Entry]:
    """Yields the entry for the symbol at `at` and the next one, if they merge."""
    after = next((i for i in range(at + 1, len(symbols)) if symbols[i]), None)
    if after is not None:
        found = order(symbols[at], symbols[after])
        if found is not None:
            yield _Entry(found, at, symbols[at], symbols[after])


def _merged(order: Order, state: _State, top: _Entry) -> _State:
    """Returns the state after the merge `top`, or the state itself if `top` is stale."""
    symbols = list(state.symbols)
    after = next((i for i in range(top.at + 1, len(symbols)) if symbols[i]), None)
    if after is None or (symbols[top.at], symbols[after]) != (top.left, top.right):
        return state
    symbols[top.at], symbols[after] = top.left + top.right, b""
    now = tuple(symbols)
    before = next((i for i in reversed(range(top.at)) if symbols[i]), None)
    new = [] if before is None else [*_pair(order, now, before)]
    new += _pair(order, now, top.at)
    return _State(now, tuple(sorted([*state.queue, *new])))


def merge_probabilities(symbols: Symbols, order: Order, p: float, returns: bool) -> Distribution:
    """Returns the probabilities of all results of merging, if the next merge is skipped with the
    probability `p`. With `returns` (Hugging Face's tokenizers), skipped merges are queued again
    when another is not skipped, even if that one turns out to be stale; without (SentencePiece),
    never, and stale merges are discarded first."""

    @cache
    def after(state: _State) -> Distribution:
        if not state.queue:
            return {tuple(filter(None, state.symbols)): 1.0}
        top, rest = state.queue[0], state.queue[1:]
        if returns:
            queued = tuple(sorted(rest + state.skipped))
            taken = _merged(order, _State(state.symbols, queued), top)
            left = _State(state.symbols, rest, (*state.skipped, top))
        else:
            left = _State(state.symbols, rest)
            taken = _merged(order, left, top)
            if taken is left:
                return after(left)
        found: Counter[Symbols] = Counter()
        for next_state, share in ((left, p), (taken, 1 - p)):
            for result, probability in after(next_state).items():
                found[result] += share * probability  # type: ignore[assignment]
        return dict(found)

    queue = [entry for at in range(len(symbols)) for entry in _pair(order, symbols, at)]
    return after(_State(symbols, tuple(sorted(queue))))


def paths(v: Vocabulary, text: bytes) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yields all paths through a normalized text of a UGM vocabulary as ids, with their scores."""
    tokens = v.keep(ugm._Tokens, lambda: ugm._Tokens(v))
    if not text:
        yield (), 0.0
        return
    size = min(lead_length(text[0]), len(text))
    edges = [(id, len(v.texts[id])) for id in tokens.longest.all(text, 0)]
    rows = [
        (id, n, 0.0 if v.attrs[id] & TokenAttr.USER_DEFINED else v.score(id)) for id, n in edges
    ]
    if not any(n == size for _, n in edges):
        rows.append((v.unknown, size, tokens.unknown))
    for id, n, score in rows:
        for rest, total in paths(v, text[n:]):
            yield (id, *rest), score + total


def path_probabilities(
    v: Vocabulary, text: bytes, alpha: float, nbest: int | None = None
) -> dict[tuple[int, ...], float]:
    """Returns the probabilities of the paths, or only of the best ones."""
    found = sorted(paths(v, text), key=lambda path: -path[1])[:nbest]
    weights = {ids: math.exp(alpha * (score - found[0][1])) for ids, score in found}
    total = sum(weights.values())
    return {ids: weight / total for ids, weight in weights.items()}
