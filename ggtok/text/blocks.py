"""Encodes a text of any length in bounded memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ggtok.native import ADD_SPECIAL, NOT_FIRST_BLOCK, NOT_LAST_BLOCK, PARSE_SPECIAL, text_bytes
from ggtok.native.contexts import Blocks

TYPE_CHECKING = False  # as in native.py
if TYPE_CHECKING:
    from typing import Any

    import numpy as np
    from numpy.typing import NDArray

    from ggtok._types import Text
    from ggtok.native import Native

BLOCK = 1 << 20  # bytes


def encode_blocks(
    native: Native,
    blocks: Iterable[Text],
    *,
    add_special: bool = True,
    parse_special: bool = False,
    block_bytes: int = BLOCK,
) -> Iterator[NDArray[np.int32]]:
    """The ids of one text that arrives in blocks, in parts, as soon as they are final.

    The parts, joined, are ``Tokenizer.encode_array`` of all blocks joined: a part ends where
    ``ggtok_safe_cut`` (ggtok.h) proves that no token crosses. The buffer holds about
    `block_bytes` bytes, and doubles whenever it has no such position. Blocks may end anywhere;
    bytes-like blocks may end inside a character. There is always at least one part, which may
    be empty.

    Errors are those of ``encode``; parts yielded before an error are valid. Not thread-safe.
    """
    import numpy as np

    def part(n: int, flags: int) -> NDArray[np.int32]:
        ids: NDArray[np.int32] = np.frombuffer(encoder.encode(text, n, flags), np.int32)
        return ids

    encoder = Blocks(native)
    flags = add_special * ADD_SPECIAL | parse_special * PARSE_SPECIAL
    text = bytearray()
    enough = block_bytes
    for piece in _pieces(blocks):
        text += piece
        if len(text) < enough:
            continue
        n = encoder.safe_cut(text, flags)
        if not n:
            enough = 2 * len(text)
            continue
        yield part(n, flags | NOT_LAST_BLOCK)
        flags |= NOT_FIRST_BLOCK
        del text[:n]
        enough = max(block_bytes, 2 * len(text))
    yield part(len(text), flags)


def _pieces(blocks: Iterable[Text]) -> Iterator[Any]:
    """The text as UTF-8, in pieces of at most BLOCK bytes."""
    for block in blocks:
        data = text_bytes(block)
        for at in range(0, len(data), BLOCK):
            yield data[at : at + BLOCK]
