"""Finds how many tokens of a prompt an earlier prompt of the same model and key begins with."""

from __future__ import annotations

from array import array
from hashlib import blake2b

from ggtok.prompts import n_common

_PROMPTS = 16  # for each model and key
_BYTES = 64 << 20  # for all


class EarlierPrompts:
    """The latest prompts of each model and key.

    Only the event loop may use this. A prompt with which a later one begins isn't stored any more,
    so a conversation takes one place.

    Args:
        most: the maximum size of all prompts, in bytes.

    Attributes:
        n_tokens, n_kept: the sums over all prompts so far, for the metrics.
        size: the size of the stored prompts, in bytes.
    """

    def __init__(self, most: int = _BYTES) -> None:
        self.n_tokens = 0
        self.n_kept = 0
        self.size = 0
        self._most = most
        self._prompts: dict[bytes, list[array[int]]] = {}  # the least recently used owner first

    def add(self, model: str | None, keys: list[bytes], ids: array[int]) -> int:
        """Stores a prompt, and returns the length in tokens of the longest common prefix with an
        earlier one."""
        owner = _digest([(model or "").encode("utf-8", "surrogatepass"), *keys])
        earlier = self._prompts.pop(owner, [])
        common = [n_common(prompt, ids) for prompt in earlier]
        kept = max(common, default=0)
        self.n_tokens += len(ids)
        self.n_kept += kept
        self._prompts[owner] = [
            *(prompt for prompt, n in zip(earlier, common, strict=True) if n < len(prompt)),
            ids,
        ][-_PROMPTS:]
        self.size += _size(self._prompts[owner]) - _size(earlier)
        while self.size > self._most:
            oldest, prompts = next(iter(self._prompts.items()))
            self.size -= _size([prompts.pop(0)])
            if not prompts:
                del self._prompts[oldest]
        return kept


def _size(prompts: list[array[int]]) -> int:
    return sum(len(ids) * ids.itemsize + _OBJECT for ids in prompts)


_OBJECT = 256  # bytes of an array and, of a single prompt, its place in the dict


def _digest(parts: list[bytes]) -> bytes:
    whole = blake2b(digest_size=16)
    for part in parts:
        whole.update(len(part).to_bytes(8, "little") + part)
    return whole.digest()
