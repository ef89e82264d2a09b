"""A naive trainer that counts all pairs again for each merge.

Words are sequences of symbols, which are numbered in the order of their ids. The most frequent
pair, counting overlapping occurrences, is replaced from left to right; the rule decides between
equally frequent pairs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]
Words = Mapping[tuple[int, ...], int]


def count_pairs(words: Words) -> Counter[Pair]:
    pairs: Counter[Pair] = Counter()
    for word, count in words.items():
        for pair in pairwise(word):
            pairs[pair] += count
    return pairs


def replace(word: Sequence[int], pair: Pair, made: int) -> tuple[int, ...]:
    out: list[int] = []
    i = 0
    while i < len(word):
        if tuple(word[i : i + 2]) == pair:
            out.append(made)
            i += 2
        else:
            out.append(word[i])
            i += 1
    return tuple(out)


def train(
    words: Words,
    texts: list[bytes],
    size: int,
    *,
    min_count: int = 1,
    before: Callable[[Pair, list[bytes]], object] = lambda pair, texts: pair,
    may_join: Callable[[bytes, bytes], bool] = lambda left, right: True,
    number: Mapping[bytes, int] | None = None,
) -> list[tuple[bytes, bytes, int]]:
    """Returns merges and their counts until there are `size` texts, including the initial symbols.

    `before` is the sort key for equally frequent pairs; `may_join` decides which pairs can merge;
    `number` contains the numbers of texts that are already symbols.
    """
    known = dict(number or {})
    texts = list(texts)
    merges = []
    words = dict(words)
    while len(texts) < size:
        pairs = {
            pair: count
            for pair, count in count_pairs(words).items()
            if count >= min_count and may_join(texts[pair[0]], texts[pair[1]])
        }
        if not pairs:
            break
        pair = min(pairs, key=lambda p: (-pairs[p], before(p, texts)))
        left, right = (texts[symbol] for symbol in pair)
        merges.append((left, right, pairs[pair]))
        made = known.get(left + right, len(texts))
        if made == len(texts):
            texts.append(left + right)
        merged: Counter[tuple[int, ...]] = Counter()
        for word, count in words.items():
            merged[replace(word, pair, made)] += count
        words = merged
    return merges
