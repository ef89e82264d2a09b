"""A vocabulary as a tiktoken encoding."""

from __future__ import annotations

from ggtok.adapters.common import check_tokenizer, import_library
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any


def tiktoken_encoding(tok: Tokenizer) -> Any:
    """Returns a ``tiktoken.Encoding`` for this vocabulary; needs tiktoken.

    Its ``encode_ordinary`` returns the ids of ``tok.encode(text, add_special=False)``, and its
    ``encode`` with ``allowed_special="all"`` those with ``parse_special=True``. tiktoken never adds
    BOS or EOS. Its special tokens are the vocabulary's control and user-defined tokens.

    Raises:
        MissingExtraError: tiktoken isn't installed.
        VocabError: tiktoken couldn't produce the same ids: the vocabulary isn't byte-level BPE,
            its ids aren't in the order of its merges, its pre-tokenizer applies several
            expressions, one after the other, or user-defined tokens are found in all texts.
    """
    from ggtok.vocabularies.export.to_tiktoken import encoding_arguments
    from ggtok.vocabularies.of_tokenizer import vocabulary_of

    arguments = encoding_arguments(vocabulary_of(check_tokenizer(tok)))
    return import_library("tiktoken", "tiktoken").Encoding(**arguments)
