"""A PreTrainedTokenizerFast for an exported vocabulary."""

from __future__ import annotations

import tempfile

from ggtok.adapters.common import import_library
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any


def fast_tokenizer(tok: Tokenizer) -> Any:
    """Exports the vocabulary to a ``PreTrainedTokenizerFast``."""
    transformers = import_library("transformers", "transformers")
    from ggtok.vocabularies.of_tokenizer import vocabulary_of

    with tempfile.TemporaryDirectory(prefix="ggtok-") as folder:
        vocabulary_of(tok).save_pretrained(folder)
        fast = transformers.PreTrainedTokenizerFast.from_pretrained(folder)
    fast.name_or_path = ""
    fast.init_kwargs.pop("name_or_path", None)
    return fast
