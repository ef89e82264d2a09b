"""Reads the vocabulary of a loaded tokenizer, changed by the options that were passed to load()."""

from __future__ import annotations

from dataclasses import replace

from ggtok.errors import VocabError
from ggtok.tokenizer import Tokenizer
from ggtok.vocabularies.gguf_writer import FLAG_KEYS, SPECIAL_KEYS
from ggtok.vocabularies.read import vocabulary
from ggtok.vocabularies.vocabulary import Vocabulary

_GGML = "tokenizer.ggml."


def vocabulary_of(tok: Tokenizer) -> Vocabulary:
    """Reads the vocabulary again from the tokenizer's source.

    Raises:
        VocabError: the tokenizer was loaded from memory other than bytes, or with an override
            that a vocabulary can't contain.
        FileError, GGUFError: as for :func:`ggtok.load`.
    """
    loaded = tok._loaded
    if loaded.pickled is None:
        raise VocabError(
            "this tokenizer was loaded from memory other than bytes, so its vocabulary can't be "
            "read again: load it from a path or from bytes"
        )
    stored = vocabulary(loaded.pickled)
    flags, special_ids = dict(stored.flags), dict(stored.special_ids)
    flag_names = {_GGML + key: name for name, key in FLAG_KEYS.items()}
    special_names = {f"{_GGML}{key}_token_id": name for name, key in SPECIAL_KEYS.items()}
    for key, value in (loaded.overrides or {}).items():
        if key in flag_names and isinstance(value, bool):
            flags[flag_names[key]] = value
        elif key in special_names and isinstance(value, int):
            special_ids[special_names[key]] = value
        elif key.startswith("tokenizer."):
            raise VocabError(f"the override of {key} can't be written")
    return replace(
        stored,
        pre=loaded.pre_option or stored.pre,
        pre_patterns=loaded.patterns,
        flags=flags,
        special_ids=special_ids,
    )
