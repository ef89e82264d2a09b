"""Explanations of texts (:meth:`Tokenizer.explain`) and merge trees, from the C library's trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ggtok.errors import InvalidValueError, VocabError
from ggtok.explain.steps import (
    Explanation,
    Fragment,
    LatticeStep,
    Merge,
    MergeTree,
    Rule,
    Token,
    Word,
    text_of,
)
from ggtok.loading.loaded import Loaded
from ggtok.native.arguments import text_bytes, truth

if TYPE_CHECKING:
    from ggtok._types import ParseSpecial

LONGEST = 16 * 1024  # bytes of the longest text that can be explained: GGTOK_TRACE_BYTES
Json = dict[str, Any]


def _steps(loaded: Loaded, function: Callable[..., bytes], *args: object) -> Json:
    try:
        steps: Json = json.loads(function(*args))
    except Exception as e:
        loaded.reraise(e)
    return steps


def explain(
    loaded: Loaded, text: object, add_special: bool, parse_special: ParseSpecial
) -> Explanation:
    data = text_bytes(text)
    if len(data) > LONGEST:
        raise InvalidValueError(
            f"the text has {len(data):,} bytes, and at most {LONGEST:,} can be explained: pass "
            "only the part in question"
        )
    add_special = truth(add_special, "add_special")
    found = _steps(loaded, loaded.trace, data, add_special, loaded.parsed(parse_special), False)
    return Explanation(
        found["ids"],
        text_of(data),
        loaded.vocab_type,
        loaded.model,
        loaded.pre,
        [_token(token) for token in found["before"]],
        [_token(token) for token in found["after"]],
        [_fragment(fragment) for fragment in found["fragments"]],
    )


def _fragment(found: Json) -> Fragment:
    special = found["special"]
    return Fragment(
        found["text"],
        found["begin"],
        found["end"],
        None if special is None else _token(special),
        found["normalized"],
        found["notes"],
        [_word(word) for word in found["words"]],
    )


def _word(found: Json) -> Word:
    return Word(
        found["text"],
        found["begin"],
        found["end"],
        [_token(token) for token in found["tokens"]],
        [Rule(**rule) for rule in found["rules"]],
        found["symbols"],
        [_merge(merge) for merge in found["merges"]],
        [LatticeStep(**(step | _scores(step))) for step in found["lattice"]],
    )


def _token(found: Json) -> Token:
    return Token(found["id"], found["text"], found["how"], **_scores(found), why=found["why"])


def _merge(found: Json) -> Merge:
    score = None if found["score"] is None else float(found["score"])
    return Merge(found["left"], found["right"], found["rank"], score, found["at"])


def _scores(found: Mapping[str, Any]) -> dict[str, float | None]:
    """Returns the scores as floats; in `found`, non-finite ones are strings."""
    return {
        name: None if found[name] is None else float(found[name]) for name in ("score", "total")
    }


def merge_tree(loaded: Loaded, id: int) -> MergeTree:
    text = loaded.text(id)  # raises an error for an invalid id
    check_merges(loaded)
    if len(text) > LONGEST:
        raise InvalidValueError(
            f"token {id} has {len(text):,} bytes, and at most {LONGEST:,} can be explained"
        )
    found = _steps(loaded, loaded.trace_token, id)
    notes = found["notes"]
    if found["words"]:
        pieces = " | ".join(map(repr, found["words"]))
        notes.append(f"on its own, it is split by the pre-tokenizer: {pieces}")
    return MergeTree(
        id=id,
        text=found["text"],
        reached=found["reached"],
        whole_word=found["whole_word"],
        symbols=found["symbols"],
        merges=[_merge(merge) for merge in found["merges"]],
        tokens=[_token(token) for token in found["tokens"]],
        pairs=[_merge(pair) for pair in found["pairs"]],
        notes=notes,
    )


def check_merges(loaded: Loaded) -> None:
    """Raises VocabError unless the vocabulary's type has merges."""
    if loaded.vocab_type not in ("BPE", "SPM"):
        raise VocabError(f"a {loaded.vocab_type} vocabulary has no merges, only BPE and SPM have")
