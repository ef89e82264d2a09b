"""A vocabulary for Outlines."""

from __future__ import annotations

from collections.abc import Iterable

from ggtok.adapters.common import blank_special_pieces, ends_of, import_library
from ggtok.errors import InvalidValueError
from ggtok.native.arguments import index
from ggtok.tokenizer import Tokenizer

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import Any, SupportsIndex


def outlines_vocabulary(
    tok: Tokenizer,
    eos_id: SupportsIndex | None = None,
    *,
    also_special: Iterable[SupportsIndex] = (),
) -> Any:
    """Returns an ``outlines_core.Vocabulary`` for this vocabulary; needs ``ggtok[outlines]``.

    Args:
        tok: the tokenizer.
        eos_id: the token that ends generation; Outlines supports only one. The default is
            :attr:`ggtok.Tokenizer.eos_id`. Most chat models end their turn with
            :attr:`ggtok.Tokenizer.eot_id`. Outlines never allows other tokens that end generation.
        also_special: more ids that never stand for text, such as the user-defined ``<think>``.

    Raises:
        MissingExtraError: outlines_core isn't installed.
        VocabError: the vocabulary has no token that ends generation.
        InvalidValueError: ``eos_id`` isn't one of :attr:`ggtok.Tokenizer.eog_ids`.
        TokenIdError: an id of ``also_special`` is outside the vocabulary.
    """
    pieces, ends = blank_special_pieces(tok, also_special), ends_of(tok)
    end = ends[0] if eos_id is None else index(eos_id, "eos_id")
    if end not in ends:
        raise InvalidValueError(
            f"eos_id must be one of the ids that end generation, {sorted(ends)}, but is {end}"
        )
    ids: dict[bytes, list[int]] = {}
    for id, piece in enumerate(pieces):
        if piece:
            ids.setdefault(piece, []).append(id)
    return import_library("outlines_core", "outlines").Vocabulary(end, ids)
