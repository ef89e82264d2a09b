"""A tokenizer for transformers."""

from __future__ import annotations

from ggtok.adapters.common import check_tokenizer, import_library
from ggtok.adapters.huggingface import Core
from ggtok.adapters.transformers_fast import fast_tokenizer
from ggtok.native.arguments import truth
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any


def transformers_tokenizer(tok: Tokenizer, *, fast: bool = False) -> Any:
    """Returns a ``transformers.PreTrainedTokenizerBase`` with ggtok's ids; needs transformers 5.

    It works for every type of vocabulary, and accepts the arguments of ``PreTrainedTokenizerFast``:
    padding, truncation with ``stride`` and overflow, pairs, tensors, offsets and masks. Like
    transformers, it parses the texts of control tokens (``split_special_tokens=True`` turns
    that off). Chats are rendered by transformers itself. ``is_fast`` is true, because offsets
    and words of tokens are known. ``backend_tokenizer`` is a result of
    :func:`tokenizers_tokenizer`.

    It can be pickled if `tok` can. ``save_pretrained`` writes a folder for ``AutoTokenizer``
    if the vocabulary can be exported exactly. Tokens that the vocabulary lacks can't be added.

    Args:
        tok: the tokenizer.
        fast: create a ``PreTrainedTokenizerFast`` from the exported tokenizer.json instead. It
            doesn't use ggtok, and takes longer to create.

    Raises:
        MissingExtraError: transformers isn't installed.
        VocabError: ``fast`` is true, but tokenizers couldn't produce ggtok's ids; the message
            says for which texts.
    """
    check_tokenizer(tok)
    if truth(fast, "fast"):
        return fast_tokenizer(tok)
    import_library("transformers", "transformers")
    from ggtok.adapters.transformers_class import GGUFTokenizer

    return GGUFTokenizer.of(Core(tok))
