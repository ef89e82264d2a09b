"""``ggtok.trim_chat``, the function of :meth:`Tokenizer.trim_chat`."""

from __future__ import annotations

from typing import Any

from ggtok import _types as types
from ggtok.errors import InvalidTypeError
from ggtok.tokenizer import Tokenizer


def trim_chat(
    tok: Tokenizer, messages: types.Messages, budget: types.SupportsIndex, **options: Any
) -> list[Any]:
    """Drop the oldest turns of a chat: :meth:`Tokenizer.trim_chat`."""
    if not isinstance(tok, Tokenizer):
        raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")
    return tok.trim_chat(messages, budget, **options)
