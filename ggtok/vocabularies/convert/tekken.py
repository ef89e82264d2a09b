"""Converts tekken.json of Mistral's models: special tokens, then ranks like tiktoken's."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.confirm import Original
from ggtok.vocabularies.convert.draft import Draft
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.reading import MAX_TOKENS, checked, field, token_id, utf8
from ggtok.vocabularies.convert.special import set_configured
from ggtok.vocabularies.convert.tiktoken import Ranks, add_ranks, finish, original_of
from ggtok.vocabularies.patterns import CHAIN_OF_PRE

# The special tokens of files that don't list them, by id.
_FIRST_SPECIAL = (
    "<unk> <s> </s> [INST] [/INST] [AVAILABLE_TOOLS] [/AVAILABLE_TOOLS] [TOOL_RESULTS] "
    "[/TOOL_RESULTS] [TOOL_CALLS] [IMG] <pad> [IMG_BREAK] [IMG_END] [PREFIX] [MIDDLE] [SUFFIX] "
    "[SYSTEM_PROMPT] [/SYSTEM_PROMPT] [TOOL_CONTENT]"
).split()
_NAMED = {"unk": "<unk>", "bos": "<s>", "eos": "</s>", "pad": "<pad>"}


def draft_of(
    document: dict[str, Any], folder: Folder, pre: str | None
) -> tuple[Draft, str, Original | None]:
    """The vocabulary, the name of its format, and the source for its own package."""
    special, ranks = tokens_of(document)
    n_special = len(special)
    config = field(document, "config", dict, "")
    pattern = structure.normal_form(field(config, "pattern", str, "config")[: 1 << 14])
    name = pre
    if name is None:
        chain = structure.chain_of(structure.Structure((pattern,)))
        name = structure.pre_for(chain, ignore_merges=True, keep_spaces=True).name
    draft = Draft(model="gpt2", pre=name)
    add_ranks(draft, ranks, n_special)
    for id, text in enumerate(special):
        draft.set(id, utf8(text, "special_tokens"), spelling.CONTROL)
    ids = {text: id for id, text in enumerate(special)}
    draft.special_ids = {key: ids[text] for key, text in _NAMED.items() if text in ids}
    draft.flags = {"add_bos": True, "add_eos": False}
    set_configured(draft, folder, ids)
    of_name = CHAIN_OF_PRE.get(name)
    finish(draft, ranks, name, of_name)
    original, differences = original_of(Ranks(ranks), of_name)
    draft.differences += differences
    return draft, "tekken.json", None if original is None else _after(original, n_special)


def tokens_of(document: Mapping[str, Any]) -> tuple[list[str], dict[bytes, int]]:
    """The texts of special tokens, which have the first ids, and the ranks of the others."""
    config = field(document, "config", dict, "")
    n_special = token_id(
        config.get("default_num_special_tokens"), "config.default_num_special_tokens"
    )
    size = token_id(config.get("default_vocab_size"), "config.default_vocab_size")
    return _special(document, n_special), _ranks(document, size - n_special)


def _special(document: Mapping[str, Any], n: int) -> list[str]:
    texts = list(_FIRST_SPECIAL)
    rows = field(document, "special_tokens", list, "", None)
    if rows is not None:
        texts = []
        for i, row in enumerate(rows):
            where = f"special_tokens[{i}]"
            entry = checked(row, dict, where)
            if token_id(entry.get("rank"), where + ".rank") != i:
                raise VocabError(f"{where}.rank: special tokens aren't in order")
            texts.append(field(entry, "token_str", str, where))
    if len(texts) > n:
        raise VocabError(f"special_tokens: {len(texts)} are more than {n}")
    return texts + [f"<SPECIAL_{id}>" for id in range(len(texts), n)]


def _ranks(document: Mapping[str, Any], n: int) -> dict[bytes, int]:
    """The first `n` tokens. A file may have more than the model uses."""
    rows = field(document, "vocab", list, "")
    if not 0 < n <= len(rows):
        raise VocabError(f"config.default_vocab_size: {n} tokens, but vocab has {len(rows)}")
    ranks: dict[bytes, int] = {}
    for i, row in enumerate(rows[:n]):
        where = f"vocab[{i}]"
        entry = checked(row, dict, where)
        if entry.get("rank") != i:
            raise VocabError(f"{where}.rank: is {entry.get('rank')!r}: ranks must be in order")
        try:
            token = base64.b64decode(field(entry, "token_bytes", str, where), validate=True)
        except (binascii.Error, ValueError):
            raise VocabError(f"{where}.token_bytes: is not base64") from None
        if not token or token in ranks:
            raise VocabError(f"{where}.token_bytes: {token!r} is empty or a duplicate")
        ranks[token] = i
    assert len(ranks) <= MAX_TOKENS
    return ranks


def _after(original: Original, first: int) -> Original:
    """The source with ids from `first` on. Its package doesn't parse special tokens in a text."""
    return replace(original, parses_special=False, number=first.__add__)
