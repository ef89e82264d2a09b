"""The argument ``parse_special``: a bool, or a collection of special tokens' texts or ids."""

from __future__ import annotations

import operator
from collections.abc import Hashable, Iterable

from ggtok import errors
from ggtok.base.escape import shown
from ggtok.native.arguments import text_bytes, truth

TYPE_CHECKING = False  # as in library.py
if TYPE_CHECKING:
    from typing import Any

KEPT = 64  # cached choices; each has an automaton over its tokens
_SPECIAL = 1 | 8 | 16  # TokenAttr.UNKNOWN, CONTROL, USER_DEFINED


def chosen(native: Any, made: dict[Hashable, object], parse_special: object) -> object:
    """The argument for encode's C function: a bool, or a choice object, cached in `made`."""
    if isinstance(parse_special, (str, bytes, bytearray, memoryview)):
        raise errors.InvalidTypeError(
            "parse_special must be True, False, or a collection of special tokens' texts or ids; "
            f"one text is [{_name(parse_special)}]"
        )
    if not isinstance(parse_special, Iterable):
        return truth(parse_special, "parse_special")
    entries = tuple(parse_special)
    try:
        key = frozenset(
            zip(map(type, entries), entries, strict=True)
        )  # with the types, because 1 == True
    except TypeError:  # unhashable: a bytearray, or an invalid entry
        return native.choose(_ids(native, entries))
    choice = made.get(key)
    if choice is None:
        choice = native.choose(_ids(native, entries))
        if len(made) >= KEPT:
            made.clear()
        made[key] = choice
    return choice


def chosen_ids(native: Any, parse_special: object) -> bool | frozenset[int]:
    """The ids of a collection that :func:`chosen` has accepted, or a bool."""
    if not isinstance(parse_special, Iterable):
        return bool(parse_special)
    return frozenset(_ids(native, tuple(parse_special)))


def _ids(native: Any, entries: tuple[object, ...]) -> list[int]:
    ids = {}
    for entry in entries:
        ids[_id(native, entry)] = entry
    wrong = [entry for id, entry in ids.items() if not native.attr(id) & _SPECIAL]
    if wrong:
        raise errors.InvalidValueError(
            f"parse_special: {_name(wrong[0])} isn't a CONTROL or UNKNOWN token; only these can "
            "be chosen (user-defined tokens are always parsed)"
        )
    return sorted(ids)


def _id(native: Any, entry: object) -> int:
    if isinstance(entry, bool):
        raise errors.InvalidTypeError("parse_special: an entry must be a text or an id, not a bool")
    try:
        id = operator.index(entry)  # type: ignore[arg-type]
    except TypeError:
        found = native.find(text_bytes(entry, "parse_special: an entry"))
        if found is None:
            raise errors.InvalidValueError(
                f"parse_special: {_name(entry)} is not a token of this vocabulary"
            ) from None
        return int(found)
    if not 0 <= id < native.n_tokens():
        raise errors.InvalidValueError(
            f"parse_special: {id} is not a token id of this vocabulary "
            f"(0 to {native.n_tokens() - 1})"
        )
    return id


def _name(entry: object) -> str:
    return shown(repr(entry), 80)
