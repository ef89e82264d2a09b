"""Decodes ids to text, and looks up tokens by their pieces."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable

from ggtok import _types as types
from ggtok.base.escape import quoted
from ggtok.errors import ArgumentError, InvalidTypeError, InvalidValueError, TextDecodeError
from ggtok.loading.loaded import Loaded
from ggtok.native.arguments import byte_view, is_one_of, iterate, token_ids, truth, truth_or_none

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    Flags = tuple[bool, bool, bool | None]  # remove_special, unparse_special, clean_spaces


# ---- lists of ids ----


def decode_batch(
    decode: Callable[..., bytes], lists: Iterable[types.Ids], flags: Flags, errors: str
) -> list[str]:
    """Decodes each list of ids with `decode`, which is :meth:`ggtok.Tokenizer.decode_bytes`."""
    remove, unparse, clean = check_flags(flags)
    texts = []
    for i, ids in enumerate(iterate(lists, "lists must be an iterable of lists of ids")):
        try:
            data = decode(ids, remove_special=remove, unparse_special=unparse, clean_spaces=clean)
        except ArgumentError as e:
            raise type(e)(f"lists[{i}]: {e}") from None
        try:
            texts.append(decode_bytes(data, errors))
        except TextDecodeError as e:
            if hasattr(e, "add_note"):  # from Python 3.11 on
                e.add_note(f"in lists[{i}]")
            raise
    return texts


def check_flags(flags: Flags) -> Flags:
    remove, unparse, clean = flags
    return (
        truth(remove, "remove_special"),
        truth(unparse, "unparse_special"),
        truth_or_none(clean, "clean_spaces"),
    )


def decode_bytes(data: bytes, errors: str) -> str:
    try:
        return data.decode("utf-8", errors)
    except UnicodeDecodeError as e:
        raise TextDecodeError(*e.args) from None
    except (LookupError, TypeError, ValueError) as e:
        raise InvalidValueError(f"errors: {e}") from None


# ---- pieces: listing them, searching by prefix, token healing ----


def vocab_bytes(loaded: Loaded, special: str) -> list[bytes]:
    if not is_one_of(special, ("blank", "keep")):
        raise InvalidValueError(f"special must be 'blank' or 'keep', not {quoted(special)}")
    pieces = loaded.pieces()
    for id in loaded.special_ids if special == "blank" else ():
        pieces[id] = b""
    return pieces


def with_prefix(loaded: Loaded, prefix: object) -> list[int]:
    if isinstance(prefix, str):
        raise InvalidTypeError("prefix must be bytes, not str: pass prefix.encode()")
    begin = byte_view(prefix, "prefix must be bytes").tobytes()
    pieces, ids = _sort_pieces(loaded)
    # The range ends before the smallest byte string that is greater than all strings with this
    # prefix: the prefix without its trailing FF bytes, and with one added to its last byte.
    stem = begin.rstrip(b"\xff")
    end = bisect_left(pieces, stem[:-1] + bytes([stem[-1] + 1])) if stem else len(ids)
    return sorted(ids[bisect_left(pieces, begin) : end])


def heal(loaded: Loaded, ids: types.Ids) -> tuple[list[int], bytes]:
    kept = token_ids(ids, loaded.n_tokens)
    if not kept or kept[-1] in loaded.special_ids:
        return kept, b""
    piece = loaded.piece(kept[-1], 0, True)
    if not piece or not _begins_longer(loaded, piece):
        return kept, b""
    return kept[:-1], piece


def _sort_pieces(loaded: Loaded) -> tuple[list[bytes], list[int]]:
    """Returns the non-empty pieces in sorted order, and the id of each."""
    found: tuple[list[bytes], list[int]] | None = loaded.memo.get("pieces")
    if found is None:
        pieces = vocab_bytes(loaded, "blank")
        ids = sorted(filter(pieces.__getitem__, range(len(pieces))), key=pieces.__getitem__)
        found = loaded.memo["pieces"] = [pieces[id] for id in ids], ids
    return found


def _begins_longer(loaded: Loaded, piece: bytes) -> bool:
    """Whether a longer piece begins with this one."""
    pieces, _ = _sort_pieces(loaded)
    # Skips equal pieces: the smallest longer piece would be this piece followed by NUL.
    at = bisect_left(pieces, piece + b"\0")
    return at < len(pieces) and pieces[at].startswith(piece)
