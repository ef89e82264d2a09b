"""Reads the vocabulary of a GGUF file, so that it can be written again."""

from __future__ import annotations

import os
import warnings
from typing import Any

from ggtok import _types as types
from ggtok.errors import VocabError, VocabWarning
from ggtok.loading.gguf_reader import Reader, first_bytes
from ggtok.vocabularies.contents import Pair
from ggtok.vocabularies.gguf_writer import FLAG_KEYS, SPECIAL_KEYS
from ggtok.vocabularies.spelling import NORMAL
from ggtok.vocabularies.vocabulary import Vocabulary

_GGML = "tokenizer.ggml."
_TEMPLATE = "tokenizer.chat_template"


def vocabulary(source: str | os.PathLike[str] | types.Buffer | types.BinaryIO) -> Vocabulary:
    """Read the vocabulary of a GGUF file, for example to write it in another format.

    Texts and merges are as in llama.cpp: they end at a NUL, an empty text becomes
    ``[EMPTY_id]``, and merges without two parts, which have no effect, are dropped.

    Args:
        source: as for :func:`ggtok.load`.

    Raises:
        VocabError: the file has no vocabulary.
        FileError, GGUFError: as for :func:`ggtok.load`.
    """
    data, inputs = _checked(source)
    metadata = Reader(data).metadata()
    model = metadata.pop(_GGML + "model")
    texts = metadata.pop(_GGML + "tokens", None)
    if texts is None:
        raise VocabError(f"there are no tokens in a vocabulary of model '{model.decode()}'")
    merges = metadata.pop(_GGML + "merges", None)
    pre = metadata.pop(_GGML + "pre", None)
    types = metadata.pop(_GGML + "token_type", None)
    scores = metadata.pop(_GGML + "scores", None)
    specials = {name: f"{_GGML}{key}_token_id" for name, key in SPECIAL_KEYS.items()}
    flags = {name: _GGML + key for name, key in FLAG_KEYS.items()}
    template = metadata.pop(_TEMPLATE, None)
    metadata.pop("tokenizer.chat_templates", None)
    named = {
        key[len(_TEMPLATE) + 1 :]: metadata.pop(key).decode("utf-8", "surrogateescape")
        for key in list(metadata)
        if key.startswith(_TEMPLATE + ".")
    }
    return Vocabulary(
        model=model.decode(),
        pre=None if pre is None else pre.decode(),
        texts=[text.split(b"\0")[0] or b"[EMPTY_%d]" % id for id, text in enumerate(texts)],
        types=[NORMAL] * len(texts) if types is None else list(types[: len(texts)]),
        scores=None if scores is None else list(scores[: len(texts)]),
        merge_texts=None if merges is None else [*filter(None, map(pair, merges))],
        special_ids={
            name: id
            for name, key in specials.items()
            if (id := metadata.pop(key, None)) is not None and 0 <= id < len(texts)
        },
        flags={
            name: on for name, key in flags.items() if (on := metadata.pop(key, None)) is not None
        },
        chat_template=None if template is None else template.decode("utf-8", "surrogateescape"),
        chat_templates=named,
        architecture=metadata.get("general.architecture", b"llama").decode(),
        keys={key: _value(value) for key, value in metadata.items() if _is_kept(key)},
        inputs=inputs,
    )


def pair(merge: bytes) -> Pair | None:
    """The parts of a merge, split as in llama.cpp; None: it has no two parts."""
    merge = merge.split(b"\0")[0]
    at = merge.find(b" ", 1)
    return (merge[:at], merge[at + 1 :]) if at > 0 else None


def _is_kept(key: str) -> bool:
    """Whether tokens depend on the key. (llama.cpp has special rules for some models' names.)"""
    return key == "general.name" or key.startswith("tokenizer.")


def _value(value: Any) -> object:
    """The value for Vocabulary.keys, in which bytes stand for an array of bytes."""
    if isinstance(value, bytearray):
        return bytes(value)
    return value.decode("utf-8", "surrogateescape") if isinstance(value, bytes) else value


def _checked(source: Any) -> tuple[bytes, tuple[str, ...]]:
    """The bytes of the metadata, after a check that ggtok can load it, and the file's paths."""
    from ggtok.loading.loaded import metadata
    from ggtok.sources.files import first_shard
    from ggtok.tokenizer import load

    is_path = isinstance(source, (str, os.PathLike))
    data = source if is_path else metadata(source)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        tok = load(data)
    if not is_path:
        return bytes(data), ()
    name, found = os.fsdecode(os.fspath(source)), tok._loaded.found
    path = os.path.abspath(name) if found is None else found.path
    inputs = () if path is None else (path, first_shard(path))
    return first_bytes(name, tok._native.metadata_bytes()), inputs
