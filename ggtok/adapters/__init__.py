"""Tokenizer objects that other libraries accept, and that produce ggtok's ids.

For transformers, tokenizers and tiktoken: :func:`transformers_tokenizer`,
:func:`tokenizers_tokenizer` and :func:`tiktoken_encoding`. For libraries that accept a function or
a small object that counts tokens: :func:`counter`. For llama-cpp-python:
:class:`LlamaCppTokenizer`.

For constrained decoding: :func:`llguidance_tokenizer`, :func:`xgrammar_tokenizer_info` and
:func:`outlines_vocabulary`. These libraries compute which tokens a grammar allows next. They need
each token's piece (its bytes), and the ids that never stand for text, such as the ids that end
generation (:attr:`ggtok.Tokenizer.special_ids`). A grammar that expects text, for example inside a
JSON string, never allows these ids.

Each function imports the library that it needs only when the function is called.
"""

from __future__ import annotations

from ggtok.adapters.counter import Counter, counter
from ggtok.adapters.llamacpp import LlamaCppTokenizer
from ggtok.adapters.llguidance import llguidance_tokenizer
from ggtok.adapters.outlines import outlines_vocabulary
from ggtok.adapters.tiktoken import tiktoken_encoding
from ggtok.adapters.tokenizers import TokenizersTokenizer, tokenizers_tokenizer
from ggtok.adapters.transformers import transformers_tokenizer
from ggtok.adapters.xgrammar import xgrammar_tokenizer_info

__all__ = [
    "Counter",
    "LlamaCppTokenizer",
    "TokenizersTokenizer",
    "counter",
    "llguidance_tokenizer",
    "outlines_vocabulary",
    "tiktoken_encoding",
    "tokenizers_tokenizer",
    "transformers_tokenizer",
    "xgrammar_tokenizer_info",
]
