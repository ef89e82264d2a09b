"""Encodes prompts, parsing control tokens only in the template's own text; makes masks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ggtok.chat.prompt import Prompt, Ranges
from ggtok.errors import InvalidValueError
from ggtok.native import ADD_SPECIAL, PARSE_SPECIAL, PLAIN_USER_DEFINED
from ggtok.native.arguments import truth

if TYPE_CHECKING:
    from ggtok.loading.loaded import Loaded
    from ggtok.native import Part

_PARSE = ADD_SPECIAL | PARSE_SPECIAL
FLAGS = {"parse": _PARSE, "plain": _PARSE | PLAIN_USER_DEFINED}
_CHOICES = tuple(FLAGS)  # a tuple, so that `in` works for unhashable values


def check(trusted: bool, user_defined: str) -> None:
    truth(trusted, "trusted")
    if user_defined not in _CHOICES:
        raise InvalidValueError(f'user_defined must be "parse" or "plain", not {user_defined!r}')


def ids(loaded: Loaded, prompt: Prompt, trusted: bool, user_defined: str) -> list[int]:
    parsed = ranges(prompt, trusted)
    return loaded.native.encode_ranges(prompt.text, FLAGS[user_defined], parsed)


def ids_and_mask(
    loaded: Loaded, prompt: Prompt, trusted: bool, user_defined: str
) -> tuple[list[int], list[bool]]:
    """The ids, and for each whether any of its bytes is in a {% generation %} block."""
    parsed = list(ranges(prompt, trusted))
    ids, parts = loaded.native.encode_parts(prompt.text, FLAGS[user_defined], parsed)
    return ids, _mask(loaded, prompt.text.encode(), ids, parts, prompt.generated)


def ranges(prompt: Prompt, trusted: bool) -> Ranges:
    """The ranges in which control tokens are parsed."""
    if trusted:
        return ((0, len(prompt.text.encode())),) if prompt.text else ()
    return prompt.ranges


def _mask(
    loaded: Loaded, data: bytes, ids: list[int], parts: list[Part], ranges: Ranges
) -> list[bool]:
    """For each id, whether any of its bytes is in a range.

    If a part is inside one range, or outside all, the same holds for all of its ids. Otherwise
    the tokens' pieces must be the bytes of the part, possibly after SPM's space prefix.
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
        pieces = [loaded.native.piece(id, 0, True) for id in ids[first : first + n_ids]]
        shown, raw = b"".join(pieces), data[pos:end]
        if shown not in (raw, b" " + raw):
            raise InvalidValueError(
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
