"""Trims a chat to a token limit by dropping its oldest turns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ggtok.chat import values
from ggtok.errors import InvalidValueError
from ggtok.native.arguments import index


def trim_chat(
    count_chat: Callable[..., int], messages: Any, budget: Any, options: dict[str, Any]
) -> list[Any]:
    """Implements :meth:`ggtok.Tokenizer.trim_chat`."""
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
        return count_chat(kept(dropped), **options)

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
