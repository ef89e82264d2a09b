"""Real vocabularies, reduced in size."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import ggtok
from ggtok.vocabularies.spelling import NORMAL
from tests.support.vocabularies import real

# A vocabulary with more than LARGE tokens loses the normal tokens with ids from FIRST on.
LARGE, FIRST = 33_000, 20_000


@cache
def beginning(name: str) -> ggtok.Vocabulary:
    """Loads a vocabulary named in REAL or OTHERS. A large vocabulary is reduced to its first normal
    tokens, all tokens of other types, and the merges among these tokens."""
    v = ggtok.vocabulary(real(name))
    if len(v) <= LARGE:
        return v
    kept = [id for id, type in enumerate(v.types) if id < FIRST or type != NORMAL]
    new_id = {id: i for i, id in enumerate(kept)}
    texts = [v.texts[id] for id in kept]
    known = set(texts)
    merges = v.merge_texts
    if merges is not None:
        merges = [(a, b) for a, b in merges if {a, b, a + b} <= known]
    return replace(
        v,
        texts=texts,
        types=[v.types[id] for id in kept],
        scores=None if v.scores is None else [v.scores[id] for id in kept],
        merge_texts=merges,
        special_ids={key: new_id[id] for key, id in v.special_ids.items()},
    )
