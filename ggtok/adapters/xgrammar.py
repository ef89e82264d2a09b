"""A vocabulary for xgrammar."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.adapters.common import blank_special_pieces, ends_of, import_library
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex


def xgrammar_tokenizer_info(tok: Tokenizer, *, also_special: Iterable[SupportsIndex] = ()) -> Any:
    """Returns an ``xgrammar.TokenizerInfo`` for this vocabulary; needs ``ggtok[xgrammar]``.

    Special tokens get empty pieces, so xgrammar never allows them as text. Tokens that end
    generation become its stop tokens. xgrammar imports torch and transformers.

    Args:
        tok: the tokenizer.
        also_special: more ids that never stand for text, such as the user-defined ``<think>``.

    Raises:
        MissingExtraError: xgrammar, or a package that it needs, isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        TokenIdError: an id of ``also_special`` is outside the vocabulary.
    """
    pieces, ends = blank_special_pieces(tok, also_special), ends_of(tok)
    xgrammar = import_library("xgrammar", "xgrammar")
    return xgrammar.TokenizerInfo(
        pieces, xgrammar.VocabType.RAW, vocab_size=len(pieces), stop_token_ids=ends
    )
