"""The longest token at a place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


class LongestMatch:
    """Texts by their ids; of equal texts the last one counts."""

    def __init__(self, texts: Sequence[bytes], ids: Sequence[int] | None = None) -> None:
        chosen = range(len(texts)) if ids is None else ids
        self._ids = {texts[id]: id for id in chosen if texts[id]}
        # By the first byte, so that one long token doesn't make all others slow.
        self._lengths: dict[int, list[int]] = {}
        for text in self._ids:
            self._lengths.setdefault(text[0], []).append(len(text))
        for first, lengths in self._lengths.items():
            self._lengths[first] = sorted(set(lengths), reverse=True)

    def all(self, text: bytes, at: int) -> Iterator[int]:
        """The ids of all texts that text[at:] begins with, the longest first."""
        for n in self._lengths.get(text[at], ()):
            id = self._ids.get(text[at : at + n]) if at + n <= len(text) else None
            if id is not None:
                yield id

    def find(self, text: bytes, at: int) -> int | None:
        """The longest of them."""
        return next(self.all(text, at), None)
