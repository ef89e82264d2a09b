"""Computes the ids of prompts with their positions, for masks and for known ids.

C encodes all other prompts (cext/chat/encode.c).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggtok.base.escape import quoted
from ggtok.chat.prompt import C_SPACES, Prompt, Ranges, n_shared
from ggtok.errors import InvalidTypeError, InvalidValueError, TemplateError, VocabError
from ggtok.loading.loaded import TokenAttr
from ggtok.native import ADD_SPECIAL, CONTINUATION, PARSE_SPECIAL, PLAIN_USER_DEFINED
from ggtok.native.arguments import index, is_one_of, token_ids, truth

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

PARSE = ADD_SPECIAL | PARSE_SPECIAL
_FLAGS = {"parse": PARSE, "plain": PARSE | PLAIN_USER_DEFINED}
_CONTINUATION_BYTES = bytes(range(0x80, 0xC0))
_SHOWN = 40  # characters that a message shows before and after a difference


def flags_of(trusted: bool, user_defined: str) -> int:
    """Checks both arguments, and returns ggtok_encode's flags for `user_defined`."""
    if trusted is not False:
        truth(trusted, "trusted")
    if not is_one_of(user_defined, _FLAGS):
        raise InvalidValueError(
            f'user_defined must be "parse" or "plain", not {quoted(user_defined)}'
        )
    return _FLAGS[user_defined]


def ids_and_parts(
    loaded: Loaded, prompt: Prompt, trusted: bool, flags: int
) -> tuple[list[int], list[Part]]:
    """Returns the ids and parts of a prompt, without its media.

    As in llama.cpp's mtmd_tokenize, each text between markers is encoded separately, without BOS
    and EOS. These are then added once, before and after all ids.
    """
    if not prompt.media:
        return loaded.encode_parts(prompt.text, flags, parsed_ranges(prompt, trusted))
    adds = bool(flags & ADD_SPECIAL)
    ids = _added_ids(loaded, "bos") if adds else []
    parts: list[Part] = []
    flags &= ~ADD_SPECIAL
    for at, text in prompt.around_media():
        if at:
            flags &= ~CONTINUATION  # the text follows a marker
        found, pieces = loaded.encode_parts(text.text, flags, parsed_ranges(text, trusted))
        first = len(ids)
        parts += [(at + pos, n, first + k, n_ids, s) for pos, n, k, n_ids, s in pieces]
        ids += found
    return ids + _added_ids(loaded, "eos") if adds else ids, parts


def _added_ids(loaded: Loaded, name: str) -> list[int]:
    """Returns the id of BOS or EOS in a list, which is empty if the vocabulary doesn't add it."""
    if not loaded.flags[f"add_{name}"]:
        return []
    if (id := loaded.special(name)) is None:
        raise VocabError(f"the vocabulary adds {name.upper()} to texts, but has no such token")
    return [id]


# ---- masks ----


class MaskError(InvalidValueError):
    """The vocabulary doesn't show which of a text's tokens are the assistant's."""


def parsed_ranges(prompt: Prompt, trusted: bool) -> Ranges:
    """Returns the ranges in which control tokens are parsed."""
    if trusted:
        return ((0, len(prompt.text.encode())),) if prompt.text else ()
    return prompt.ranges


def mask_of(
    loaded: Loaded, data: bytes, ids: list[int], parts: list[Part], ranges: Ranges
) -> list[bool]:
    """Returns for each id whether any of its bytes is in a range.

    If a part is inside one range, or outside all ranges, so are all of its ids. Otherwise the
    tokens' pieces must be the part's bytes, possibly after SPM's space prefix.
    """
    mask = [False] * len(ids)
    k = 0
    for pos, n, first, n_ids, special in parts:
        end = pos + n
        while k < len(ranges) and ranges[k][1] <= pos:
            k += 1
        if k == len(ranges) or ranges[k][0] >= end:
            continue
        if special or (ranges[k][0] <= pos and end <= ranges[k][1]):
            mask[first : first + n_ids] = [True] * n_ids
            continue
        pieces = [loaded.piece(id, 0, True) for id in ids[first : first + n_ids]]
        shown, raw = b"".join(pieces), data[pos:end]
        if shown not in (raw, b" " + raw):
            raise MaskError(
                f"return_assistant_mask: the pieces of {loaded.vocab_type} tokens don't spell "
                "the text that they encode, so their positions in it are unknown"
            )
        at = end - len(shown)
        j = k
        for i, piece in enumerate(pieces, first):
            while j < len(ranges) and ranges[j][1] <= at:
                j += 1
            at += len(piece)
            mask[i] = bool(piece) and j < len(ranges) and ranges[j][0] < at
    return mask


# ---- known ids ----

# An agent appends a model's answers to the conversation. If the whole text were encoded again, the
# ids might differ from those that the model generated, and the model's cached state would be lost.
# So the known ids are kept, and only the text that the template writes after them is encoded.


def check_known(loaded: Loaded, known: object, n_messages: int) -> tuple[int, list[int]]:
    if not isinstance(known, (tuple, list)) or len(known) != 2:
        kind = type(known).__name__
        raise InvalidTypeError(f"known must be (number of messages, their ids), not {kind}")
    n = index(known[0], "known: the number of messages")
    if not 0 <= n <= n_messages:
        raise InvalidValueError(
            f"known: the number of known messages is {n}, but there are {n_messages} messages"
        )
    return n, token_ids(known[1], loaded.n_tokens, "known: ids")


def after_known(
    loaded: Loaded, ids: list[int], beginning: Prompt, prompt: Prompt, trusted: bool, flags: int
) -> list[int]:
    """Returns the ids that follow the known `ids`, whose text is `beginning`."""
    if not prompt.text.startswith(beginning.text):
        raise TemplateError(_difference(beginning.text, prompt.text))
    flags = flags & ~ADD_SPECIAL | CONTINUATION
    said_end = beginning.end_of_conversation()
    tail = beginning.rest(said_end)
    added, last, end = _closing(loaded, ids, tail, flags)
    if last is None and ids and loaded.attr(ids[-1]) & TokenAttr.CONTROL:
        last = ids[-1]  # a control token that the template doesn't write, such as a generated EOS
    rest = prompt.rest(said_end + end)
    if last is not None and loaded.attr(last) & TokenAttr.RSTRIP:
        rest = rest.rest(len(rest.text) - len(rest.text.lstrip(C_SPACES)))
    if last is not None or beginning.cut(said_end).ends_with_media():
        flags &= ~CONTINUATION  # text after a special token or a marker gets a space prefix
    return added + ids_and_parts(loaded, rest, trusted, flags)[0]


def _closing(
    loaded: Loaded, ids: list[int], tail: Prompt, flags: int
) -> tuple[list[int], int | None, int]:
    """Finds the token that closes the last known message.

    Returns the ids to add, the closing token's id (or None), and the position after it, in
    characters of `tail`.

    A template may write several control tokens after a message. If `ids` end with one of them,
    that token already closes the message. Otherwise the first of them that ends generation closes
    the message; if none ends generation, the last of them does.
    """
    found, parts = loaded.encode_parts(tail.text, flags, list(tail.ranges))
    data = tail.text.encode()
    closing = []
    begin = end = 0  # the position after a token, in bytes and in characters
    for pos, n, first, _, special in parts:
        if special and found[first] in loaded.special_ids:
            # Not decoded, because a hostile vocabulary's token may end inside a character.
            end += len(data[begin : pos + n].translate(None, _CONTINUATION_BYTES))
            begin = pos + n
            closing.append((found[first], end))
    for id, end in reversed(closing):
        if ids[-1:] == [id]:
            return [], id, end
    ends = [row for row in closing if row[0] in loaded.eog_ids] or closing[-1:]
    if not ends:
        return [], None, 0
    id, end = ends[0]
    return [id], id, end


def _difference(beginning: str, prompt: str) -> str:
    at = n_shared(beginning, prompt)
    begin, end = max(0, at - _SHOWN), at + _SHOWN
    return (
        "known: the template writes the first messages differently if others follow: "
        f"{beginning[begin:end]!r} without them, {prompt[begin:end]!r} with them, first "
        f"different at character {at}; encode the whole conversation, without known="
    )
