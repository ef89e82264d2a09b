"""Sets the names by which llama.cpp decides to drop spaces next to special tokens.

Some names of pre-tokenizers (for any model) mean lstrip of <mask>. A model's name that contains
phi-3 means rstrip of most special tokens.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.differences import Json
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.patterns import CHAIN_OF_PRE, MASK

_NAME = "general.name"
_PHI3 = "Phi-3"
_PHI3_NEEDS = {"</s>", "<unk>", "<s>", "<|endoftext|>"}
_UNIGRAM_PRE = "jina-v2-de"  # has no other effect on a Unigram model
_SPECIAL = (spelling.CONTROL, spelling.USER_DEFINED, spelling.UNKNOWN)


def strips_mask(added: Sequence[Json]) -> bool:
    """Whether the source drops spaces before <mask>."""
    return any(row.get("content") == MASK and row.get("lstrip") is True for row in added)


def name_by_strips(draft: Draft, added: Sequence[Json]) -> None:
    """Sets the names with which llama.cpp drops the same spaces as the source."""
    if draft.model == "t5" and strips_mask(added):
        draft.pre = _UNIGRAM_PRE
        draft.notes.append(f"pre is {draft.pre!r}, with which llama.cpp drops spaces before {MASK}")
    wanted = {row["content"] for row in added if row.get("rstrip") is True}
    if draft.model == "llama" and wanted and wanted == _phi3(draft):
        draft.keys[_NAME] = _PHI3
        draft.notes.append(
            f"the model's name is {_PHI3!r}, with which llama.cpp drops spaces after special tokens"
        )


def _phi3(draft: Draft) -> set[str]:
    texts = {id: text.decode("utf-8", "replace") for id, text in draft.texts.items()}
    if not set(texts.values()) >= _PHI3_NEEDS:
        return set()
    special = {texts[id] for id, kind in draft.types.items() if kind in _SPECIAL}
    return (special - _PHI3_NEEDS) | {"</s>"}


def strips_of(draft: Draft) -> dict[str, str]:
    """The texts of tokens that llama.cpp will strip, with "lstrip" or "rstrip"."""
    chain = CHAIN_OF_PRE.get(draft.pre or "")
    pres = () if chain is None else chain.pres
    strips = {}
    if any(pre.strips_mask for pre in pres if pre.name == draft.pre):
        strips[MASK] = "lstrip"
    if draft.keys.get(_NAME) == _PHI3:
        strips |= dict.fromkeys(_phi3(draft), "rstrip")
    return strips


def obey(document: Json, strips: dict[str, str]) -> None:
    """Changes added tokens to llama.cpp's rules: matched literally, anywhere, in raw text."""
    plain: dict[str, Any] = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    for token in document["added_tokens"]:
        token |= plain
        if token["content"] in strips:
            token[strips[token["content"]]] = True
