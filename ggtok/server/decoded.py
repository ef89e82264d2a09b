"""Bounds the size of decoded texts before they are decoded. A few bytes of ids can decode to a
thousand times as many bytes of text: some vocabularies have tokens of hundreds of spaces."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from ggtok import Tokenizer
from ggtok.server.endpoints import Call
from ggtok.server.limits import LARGE
from ggtok.server.refusals import NotAlone, NotReady, Refusal

MOST = 32 << 20  # bytes of text; Python decodes and writes longer texts too long under the GIL
_LENGTHS = "lengths of pieces"  # the key in the `memo` of a loaded vocabulary


def check_decoded_size(
    call: Call, tok: Tokenizer, lists: Iterable[list[int]], copies: int = 1
) -> None:
    """Raises an exception unless these lists of ids, all in the vocabulary, can be decoded now.

    Args:
        copies: how often the answer contains the text.

    Raises:
        Refusal: the text is too long.
        NotReady, NotAlone: the text must be decoded on a thread, or while no other large answer is
            in progress.
    """
    lengths = _piece_lengths(call, tok)
    size = 0
    for ids in lists:
        size += int(lengths[np.fromiter(ids, np.int32, len(ids))].sum())
    if size * copies > MOST:
        raise Refusal(
            f"the text of these ids has {size} bytes, and may have at most {MOST // copies}: send "
            "fewer ids",
            status=413,
        )
    if size > LARGE and not call.alone:
        raise NotAlone


def _piece_lengths(call: Call, tok: Tokenizer) -> Any:
    """Returns an array of the numbers of bytes that the tokens decode to."""
    memo = tok._loaded.memo
    if _LENGTHS not in memo:
        if not call.wait:
            raise NotReady  # this takes a tenth of a second for a large vocabulary
        pieces: list[bytes] = tok._loaded.pieces()
        memo[_LENGTHS] = np.fromiter(map(len, pieces), np.int64, len(pieces))
    return memo[_LENGTHS]
