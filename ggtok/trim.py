"""Trims a chat to a token limit by dropping its oldest turns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ggtok import _types as types
from ggtok.chat import values
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import index
from ggtok.tokenizer import Tokenizer


def trim_chat(
    tok: Tokenizer, messages: types.Messages, budget: types.SupportsIndex, **options: Any
) -> list[Any]:
    """Drop the oldest turns of a chat until the prompt has at most `budget` tokens.

    A turn is a user's message and everything up to the user's next message: answers, tool calls
    and their results. Whole turns are dropped, oldest first, and as few as possible. The messages
    before the first turn, such as a system message, and the last turn are always kept.

    The size of the prompt is what :meth:`Tokenizer.count_chat` returns. It includes the text that
    the template writes around messages, and the beginning of the answer. Leave room for the answer
    itself.

    Args:
        tok: the tokenizer.
        messages: as for :meth:`Tokenizer.count_chat`.
        budget: the maximum number of tokens in the prompt.
        **options: as for :meth:`Tokenizer.count_chat`, except ``known``, because the known
            messages might be dropped.

    Returns:
        A new list with the messages that are kept.

    Raises:
        InvalidValueError: the messages that are always kept have more tokens than `budget`; the
            error message has their number.
        TemplateError, InvalidTypeError, InvalidValueError: as for :meth:`Tokenizer.count_chat`.
    """
    if not isinstance(tok, Tokenizer):
        raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")
    if options.get("known") is not None:
        raise InvalidValueError("trim_chat doesn't take known=: the known messages may be dropped")
    if isinstance(options.get("tools"), Iterator):  # the prompt is counted several times
        options["tools"] = list(options["tools"])
    budget = index(budget, "budget")
    listed = values.sequence(messages, "messages", "mappings")
    turns = [i for i, message in enumerate(listed) if _is_user(message)]

    def kept(dropped: int) -> list[Any]:
        return [*listed[: turns[0]], *listed[turns[dropped] :]] if dropped else listed

    def count(dropped: int) -> int:
        return tok.count_chat(kept(dropped), **options)

    if count(0) <= budget:
        return listed
    if options.get("image_tokens") is None:
        options["image_tokens"] = 0  # the same counts, without repeating the warning
    # Invariant: dropping `most` turns is enough; dropping fewer than `least` is not.
    least, most = 1, max(0, len(turns) - 1)
    n = count(most)
    if n > budget:
        raise InvalidValueError(
            f"the last turn and the messages before the first turn, which are always kept, have "
            f"{n} tokens: more than the budget of {budget}"
        )
    while least < most:
        middle = (least + most) // 2
        if count(middle) <= budget:
            most = middle
        else:
            least = middle + 1
    return kept(most)


def _is_user(message: Any) -> bool:
    fields = values.mapping(message)
    role = None if fields is None else fields.get("role")
    return isinstance(role, str) and role == "user"
