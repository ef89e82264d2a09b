"""Chats cut to a number of tokens, turn by turn."""

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
    """The messages without their oldest turns, so that the prompt has at most `budget` tokens.

    A turn is a message of the user's and all that follows up to the next one: answers, calls of
    tools and their results. Turns are dropped whole, the oldest first, and no more than needed:
    with one turn more the prompt would not fit. What comes before the first turn, such as a
    system message, always stays, and so does the last turn.

    The prompt is counted, as :meth:`Tokenizer.count_chat` does, with what the template writes
    around messages and the beginning of the answer. Leave room for the answer itself.

    Args:
        tok: the tokenizer.
        messages: as for :meth:`Tokenizer.count_chat`.
        budget: how many tokens the prompt may have.
        **options: as for :meth:`Tokenizer.count_chat`, but for ``known``, whose messages might
            be dropped.

    Returns:
        A new list of the same messages.

    Raises:
        InvalidValueError: what always stays has more tokens than `budget`; the message says how
            many.
        TemplateError, InvalidTypeError, InvalidValueError: as for :meth:`Tokenizer.count_chat`.
    """
    if not isinstance(tok, Tokenizer):
        raise InvalidTypeError(f"tok must be a ggtok.Tokenizer, not {type(tok).__name__}")
    if options.get("known") is not None:
        raise InvalidValueError("trim_chat doesn't take known=: the known messages may be dropped")
    if isinstance(options.get("tools"), Iterator):  # the prompt is counted several times
        options["tools"] = list(options["tools"])
    budget = index(budget, "budget")
    given = values.sequence(messages, "messages", "mappings")
    turns = [i for i, message in enumerate(given) if _is_user(message)]

    def kept(dropped: int) -> list[Any]:
        return [*given[: turns[0]], *given[turns[dropped] :]] if dropped else given

    def count(dropped: int) -> int:
        return tok.count_chat(kept(dropped), **options)

    if count(0) <= budget:
        return given
    # Dropping `most` turns is enough, and dropping fewer than `least` is not.
    least, most = 1, max(0, len(turns) - 1)
    n = count(most)
    if n > budget:
        raise InvalidValueError(
            f"the last turn and what comes before the first one, which always stay, have {n} "
            f"tokens: more than the budget of {budget}"
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
    return fields is not None and fields.get("role") == "user"
