"""Encodes a conversation whose first messages already have ids.

An agent appends a model's answers to the conversation. If the whole text were encoded again, it
might get other ids than the model generated, and the model's cached state would be lost. So the
known ids are kept, and only the text that the template writes after them is encoded.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggtok.chat import encode
from ggtok.chat.prompt import Prompt
from ggtok.errors import InvalidTypeError, InvalidValueError, TemplateError, TokenIdError
from ggtok.loading.loaded import TokenAttr
from ggtok.native import ADD_SPECIAL, CONTINUATION
from ggtok.native.arguments import index, int32_array

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded

_SHOWN = 40  # characters shown before and after a difference
_SPACES = " \t\n\v\f\r"  # as in C's isspace


def check(loaded: Loaded, known: object, n_messages: int) -> tuple[int, list[int]]:
    if not isinstance(known, (tuple, list)) or len(known) != 2:
        kind = type(known).__name__
        raise InvalidTypeError(f"known must be (number of messages, their ids), not {kind}")
    n = index(known[0], "known: the number of messages")
    if not 0 <= n <= n_messages:
        raise InvalidValueError(
            f"known: the number of known messages is {n}, but there are {n_messages} messages"
        )
    array = int32_array(known[1])
    ids = list(memoryview(array).cast("B").cast("i"))
    for i, id in enumerate(ids):
        if not 0 <= id < loaded.n_tokens:
            raise TokenIdError(f"known: ids[{i}] is {id}: not a token id of this vocabulary")
    return n, ids


def following(
    loaded: Loaded,
    ids: list[int],
    beginning: Prompt,
    prompt: Prompt,
    trusted: bool,
    user_defined: str,
) -> list[int]:
    """The ids after the known ones, which stand for the text of `beginning`."""
    if not prompt.text.startswith(beginning.text):
        raise TemplateError(_difference(beginning.text, prompt.text))
    flags = encode.FLAGS[user_defined] & ~ADD_SPECIAL | CONTINUATION
    said_end = beginning.end_of_conversation()
    tail = beginning.rest(said_end)
    added, last, end = _closing(loaded, ids, tail, flags)
    rest = prompt.rest(said_end + end)
    if last is not None and loaded.native.attr(last) & TokenAttr.RSTRIP:
        rest = rest.rest(len(rest.text) - len(rest.text.lstrip(_SPACES)))
    return added + loaded.native.encode_ranges(rest.text, flags, encode.ranges(rest, trusted))


def _closing(
    loaded: Loaded, ids: list[int], tail: Prompt, flags: int
) -> tuple[list[int], int | None, int]:
    """How the last known message is closed.

    Returns the ids to add, the id of the closing token (None: there is none), and the position
    after it, in characters of `tail`.

    A template may write several control tokens after a message. If `ids` end with one of them,
    the message is already closed by it. Otherwise the first of them that ends generation closes
    the message, or else the last one.
    """
    found, parts = loaded.native.encode_parts(tail.text, flags, list(tail.ranges))
    data = tail.text.encode()
    closing = [
        (found[first], len(data[: pos + n].decode()))
        for pos, n, first, _, special in parts
        if special and found[first] in loaded.special_ids
    ]
    for id, end in reversed(closing):
        if ids[-1:] == [id]:
            return [], id, end
    ends = [row for row in closing if row[0] in loaded.eog_ids] or closing[-1:]
    if not ends:
        return [], None, 0
    id, end = ends[0]
    return [id], id, end


def _difference(beginning: str, prompt: str) -> str:
    pairs = enumerate(zip(beginning, prompt, strict=False))
    at = next((i for i, (a, b) in pairs if a != b), min(len(beginning), len(prompt)))
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return (
        "known: the template writes the first messages differently if others follow: "
        f"{beginning[begin:end]!r} without them, {prompt[begin:end]!r} with them, first "
        f"different at character {at}; encode the whole conversation, without known="
    )
