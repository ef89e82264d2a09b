"""Tokens beside which llama.cpp drops spaces: it goes by the names that a file has.

Names of pre-tokenizers (of any model) stand for lstrip of <mask>, a model's name with phi-3 in it
for rstrip of most special tokens.
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
_UNIGRAM_PRE = "jina-v2-de"  # which says nothing else of a Unigram model
_SPECIAL = (spelling.CONTROL, spelling.USER_DEFINED, spelling.UNKNOWN)


def strips_mask(added: Sequence[Json]) -> bool:
    """Does the source drop spaces before <mask>?"""
    return any(row.get("content") == MASK and row.get("lstrip") is True for row in added)


def name_by_strips(draft: Draft, added: Sequence[Json]) -> None:
    """Gives the vocabulary the names with which llama.cpp does what the source does."""
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
    """Texts of tokens, and "lstrip" or "rstrip", as llama.cpp will have it."""
    chain = CHAIN_OF_PRE.get(draft.pre or "")
    pres = () if chain is None else chain.pres
    strips = {}
    if any(pre.strips_mask for pre in pres if pre.name == draft.pre):
        strips[MASK] = "lstrip"
    if draft.keys.get(_NAME) == _PHI3:
        strips |= dict.fromkeys(_phi3(draft), "rstrip")
    return strips


def obey(document: Json, strips: dict[str, str]) -> None:
    """Added tokens as llama.cpp's are: found as they are written, anywhere, in raw text."""
    plain: dict[str, Any] = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)
    for token in document["added_tokens"]:
        token |= plain
        if token["content"] in strips:
            token[strips[token["content"]]] = True
