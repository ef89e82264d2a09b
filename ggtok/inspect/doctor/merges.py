"""Finds merges that can't apply, and merges whose result is no token.

A merge of A and B applies in some word if and only if it is the last merge when AB is merged alone.
Proof: while the merges of a word build AB, none of them crosses its ends. So the merges inside
occur in the same order as without the rest of the word.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import inf

from ggtok.base.escape import number, shown
from ggtok.explain.bpe import merges_of
from ggtok.inspect.doctor.codes import Finding, finding
from ggtok.inspect.doctor.file import GGML, File, characters
from ggtok.vocabularies.read import pair

Ranks = Mapping[tuple[str, str], int]


def check(file: File) -> Iterator[Finding]:
    merges = file.values.get(GGML + "merges")
    if file.tok.vocab_type != "BPE" or not merges:
        return
    malformed = [merge for merge in merges if pair(merge) is None]
    if malformed:
        yield finding("GGT501", _listed([characters(merge) for merge in malformed]))
    ranks = file.ranks
    repeated = len(merges) - len(malformed) - len(ranks)
    if repeated:
        yield finding("GGT502", number(repeated, "merge"))
    idle = idle_merges(ranks)
    if idle:
        yield finding("GGT503", _listed([" ".join(parts) for parts in idle]))
    texts = set(map(characters, file.texts))
    no_token = [parts for parts in ranks if "".join(parts) not in texts and parts not in idle]
    if no_token:
        yield finding("GGT504", _listed([" ".join(parts) for parts in no_token]))


def _listed(merges: list[str]) -> str:
    first = ", ".join(f"'{shown(merge, 60)}'" for merge in merges[:5])
    return f"{number(len(merges), 'merge')}: {first}{', ...' if len(merges) > 5 else ''}"


def idle_merges(ranks: Ranks) -> dict[tuple[str, str], None]:
    """The merges that never apply.

    Lists made from tiktoken's ranks or SentencePiece's scores have every split of each token, and
    most of these never apply. For such lists, the result has only merges with a part that no merge
    makes.
    """
    results = {left + right for left, right in ranks}
    if len(ranks) > 1.1 * len(results):
        return _without_parts(ranks)
    made, is_ordered = _made(ranks)
    if is_ordered:
        return {parts: None for parts in ranks if made.get("".join(parts)) != parts}
    return {parts: None for parts in ranks if not _is_last(parts, ranks)}


def _is_last(parts: tuple[str, str], ranks: Ranks) -> bool:
    merges, rest = merges_of(ranks, list("".join(parts)))
    return len(rest) == 1 and merges[-1][2:] == parts


def _by_length(ranks: Ranks) -> list[tuple[str, str]]:
    return sorted(ranks, key=lambda parts: len(parts[0]) + len(parts[1]))


def _without_parts(ranks: Ranks) -> dict[tuple[str, str], None]:
    made: set[str] = set()
    idle: dict[tuple[str, str], None] = {}
    for parts in _by_length(ranks):
        if all(len(part) == 1 or part in made for part in parts):
            made.add("".join(parts))
        else:
            idle[parts] = None
    return idle


def _made(ranks: Ranks) -> tuple[dict[str, tuple[str, str]], bool]:
    """The last merge of each text that merges make, and whether the result is valid.

    It is valid if each merge that applies comes after the merges that make its parts, as in
    trained lists. Then the merges of a word occur in the order of their ranks. So the symbol left
    of the boundary between A and B is a suffix of A, until a merge makes it a part of a longer
    suffix; likewise on the right. A merge across the boundary prevents that of A and B if it
    occurs before its symbols are merged into longer ones. Of equal ranks, the leftmost occurs
    first.
    """
    made: dict[str, tuple[str, str]] = {}
    for parts in _by_length(ranks):
        left, right = parts
        a, b = made.get(left), made.get(right)
        if (a is None and len(left) != 1) or (b is None and len(right) != 1):
            continue
        rank_a, rank_b = (-1 if x is None else ranks[x] for x in (a, b))
        if ranks[parts] < max(rank_a, rank_b):
            return {}, False
        until_a: float = inf
        until_b: float = inf
        while a is not None or b is not None:
            if a is not None and rank_a > rank_b:
                left, until_a = a[1], rank_a
                a = made.get(left)
                rank_a = -1 if a is None else ranks[a]
            else:
                assert b is not None
                right, until_b = b[0], rank_b
                b = made.get(right)
                rank_b = -1 if b is None else ranks[b]
            across = ranks.get((left, right), inf)
            if across < until_a and across <= until_b:
                break
        else:
            made["".join(parts)] = parts
    return made, True
