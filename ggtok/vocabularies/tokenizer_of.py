"""A tokenizer of a vocabulary that is in no file yet."""

from __future__ import annotations

import warnings

from ggtok.errors import VocabWarning
from ggtok.tokenizer import Tokenizer, load
from ggtok.vocabularies.contents import Contents
from ggtok.vocabularies.gguf_writer import gguf_bytes


def tokenizer_of(v: Contents) -> Tokenizer:
    """What loading its GGUF file gives."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", VocabWarning)
        return load(gguf_bytes(v, patterns=True), pre_patterns=v.pre_patterns)
