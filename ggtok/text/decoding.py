"""Decodes ids to text."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ggtok import _types as types
from ggtok.errors import ArgumentError, InvalidValueError, TextDecodeError
from ggtok.native.arguments import iterated, truth, truth_or_none

TYPE_CHECKING = False  # as in native/library.py
if TYPE_CHECKING:
    Flags = tuple[bool, bool, bool | None]  # remove_special, unparse_special, clean_spaces


def decode_batch(
    decode: Callable[..., bytes], lists: Iterable[types.Ids], flags: Flags, errors: str
) -> list[str]:
    """`decode`: :meth:`ggtok.Tokenizer.decode_bytes`."""
    remove, unparse, clean = checked(flags)
    texts = []
    for i, ids in enumerate(iterated(lists, "lists must be an iterable of lists of ids")):
        try:
            data = decode(ids, remove_special=remove, unparse_special=unparse, clean_spaces=clean)
        except ArgumentError as e:
            raise type(e)(f"lists[{i}]: {e}") from None
        try:
            texts.append(decoded(data, errors))
        except TextDecodeError as e:
            if hasattr(e, "add_note"):  # Python 3.11
                e.add_note(f"in lists[{i}]")
            raise
    return texts


def checked(flags: Flags) -> Flags:
    remove, unparse, clean = flags
    return (
        truth(remove, "remove_special"),
        truth(unparse, "unparse_special"),
        truth_or_none(clean, "clean_spaces"),
    )


def decoded(data: bytes, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        raise TextDecodeError(*e.args) from None
    except (LookupError, TypeError, ValueError) as e:
        raise InvalidValueError(f"errors: {e}") from None
