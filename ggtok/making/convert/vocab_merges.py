"""``vocab.json`` and ``merges.txt`` (older: ``encoder.json`` and ``vocab.bpe``): byte-level BPE.

Two files say nothing of how text is cut; the class in tokenizer_config.json does. They are read
as the tokenizer.json that Hugging Face would make of them.
"""

from __future__ import annotations

import os
from typing import Any

from ggtok.errors import VocabError, not_found
from ggtok.making.convert.folder import Folder
from ggtok.making.convert.reading import (
    MAX_TOKENS,
    checked,
    field,
    read_object,
    read_text,
    token_id,
)
from ggtok.making.convert.tokenizer_json import Source
from ggtok.making.patterns import CHAIN_OF_PRE

_END = "<|endoftext|>"
MERGES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}
# Classes of transformers whose text isn't cut as GPT-2's: the row that has their expressions.
_CLASSES = {"Qwen2Tokenizer": "qwen2"}


def source_of(path: str, folder: Folder, pre: str | None) -> Source:
    """The tokenizer.json that the files amount to."""
    base, name = os.path.split(path)
    merges = os.path.join(base, MERGES[name])
    if not os.path.isfile(merges):
        raise not_found(f"{path}: {MERGES[name]} isn't beside it")
    vocab = read_object(path)
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added(folder, vocab),
        "normalizer": None,
        "pre_tokenizer": _pre_tokenizer(folder),
        "post_processor": _post_processor(folder),
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": _merges(merges)},
    }
    # What GPT-2's class has without a configuration.
    plain = not folder.tokenizer_config and _END in vocab
    names = dict.fromkeys(("bos", "eos", "unk"), _END) if plain else {}
    return Source(document, folder, pre, special=names)


def _merges(path: str) -> list[str]:
    text = read_text(path)
    if text.count("\n") > MAX_TOKENS:
        raise VocabError(f"{path}: more than {MAX_TOKENS} merges: too large for a vocabulary")
    lines = text.split("\n")
    if lines and lines[0].startswith("#version"):
        lines = lines[1:]
    return [line.removesuffix("\r") for line in lines if line.strip()]


def _class(folder: Folder) -> str:
    return str(folder.tokenizer_config.get("tokenizer_class", "")).removesuffix("Fast")


def _pre_tokenizer(folder: Folder) -> dict[str, Any]:
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    if _class(folder) not in _CLASSES:
        return {**level, "use_regex": True}
    (pattern,) = CHAIN_OF_PRE[_CLASSES[_class(folder)]].published[0]
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, {**level, "use_regex": False}]}


def _post_processor(folder: Folder) -> dict[str, Any] | None:
    if not _class(folder).startswith("Roberta"):
        return None
    return {"type": "RobertaProcessing", "sep": ["</s>", 2], "cls": ["<s>", 0]}


def _added(folder: Folder, vocab: dict[str, Any]) -> list[dict[str, Any]]:
    """added_tokens.json's, then those of the configuration, which say more."""
    rows: dict[int, dict[str, Any]] = {}
    for text, value in folder.added_tokens.items():
        id = token_id(value, f"added_tokens.json: {text!r}")
        rows[id] = {"id": id, "content": text, "special": False}
    decoder = field(folder.tokenizer_config, "added_tokens_decoder", dict, "", {})
    for key, row in decoder.items():
        entry = checked(row, dict, f"added_tokens_decoder.{key}")
        if not key.isdecimal():
            raise VocabError(f"added_tokens_decoder: {key!r} is no token id")
        id = token_id(int(key[:10]), "added_tokens_decoder")
        rows[id] = {"id": id, "content": entry.get("content"), "special": entry.get("special")}
    for name in ("bos", "eos", "unk", "pad"):
        named = folder.tokenizer_config.get(name + "_token")
        named = named.get("content") if isinstance(named, dict) else named
        if isinstance(named, str) and named in vocab:
            id = token_id(vocab[named], f"vocab: {named!r}")
            rows.setdefault(id, {"id": id, "content": named, "special": True})
    if not rows and _END in vocab:
        id = token_id(vocab[_END], f"vocab: {_END!r}")
        rows[id] = {"id": id, "content": _END, "special": True}
    conditions = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    return [{**conditions, **row} for row in rows.values()]
