"""SPM: merges adjacent symbols whose joined text is a token, highest score first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ggtok.explain.steps import Merge, Token, Word, text_of
from tests.plain.bpe import first_symbols, how_found
from tests.plain.characters import MARK, Byte, each, span, value, whole
from tests.plain.vocabulary import Vocabulary


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Replaces spaces by U+2581. Inserts a U+2581 before the text if `prefix` is true and the
    vocabulary adds a space prefix."""
    if prefix and v.flags["add_space_prefix"]:
        yield from whole(MARK, 0, 0)
    for i, b in enumerate(text):
        yield from whole(MARK, i, i + 1) if b == 0x20 else each(bytes([b]), i)


def words(v: Vocabulary, norm: list[Byte]) -> Iterator[Word]:
    """Yields one word: the whole text."""
    symbols = first_symbols(value(norm))
    merges, left = merge(v, symbols)
    tokens = [token for symbol in left for token in tokens_of(v, symbol)]
    shown = [text_of(symbol) for symbol in symbols]
    yield Word(text_of(value(norm)), *span(norm), tokens, symbols=shown, merges=merges)


class _Pair(NamedTuple):
    left: int
    right: int
    size: int  # total bytes of the two symbols when the pair was queued
    score: float


class _Queue:
    """A heap with exactly libstdc++'s operations, which decide the order if a score is NaN."""

    def __init__(self) -> None:
        self._heap: list[_Pair] = []

    def __bool__(self) -> bool:
        return bool(self._heap)

    @staticmethod
    def _after(x: _Pair, y: _Pair) -> bool:
        return x.score < y.score or (x.score == y.score and x.left > y.left)

    def push(self, pair: _Pair) -> None:
        self._heap.append(pair)
        self._up(len(self._heap) - 1, pair)

    def _up(self, hole: int, pair: _Pair) -> None:
        heap = self._heap
        while hole and self._after(heap[(hole - 1) // 2], pair):
            heap[hole] = heap[(hole - 1) // 2]
            hole = (hole - 1) // 2
        heap[hole] = pair

    def pop(self) -> _Pair:
        heap = self._heap
        top, last = heap[0], heap.pop()
        n, hole, child = len(heap), 0, 0
        if not n:
            return top
        while child < (n - 1) // 2:  # sift the hole down to a leaf, then the last pair up
            child = 2 * (child + 1)
            if self._after(heap[child], heap[child - 1]):
                child -= 1
            heap[hole] = heap[child]
            hole = child
        if n % 2 == 0 and child == (n - 2) // 2:
            heap[hole] = heap[2 * child + 1]
            hole = 2 * child + 1
        self._up(hole, last)
        return top


def merge(v: Vocabulary, symbols: list[bytes]) -> tuple[list[Merge], list[bytes]]:
    """Returns the merges in order, and the remaining symbols.

    The pair with the highest score is merged first; ties go to the leftmost pair. A merged symbol
    keeps the index of its left part.
    """
    now = [*symbols]
    after = [*range(1, len(symbols)), -1]
    before = [*range(-1, len(symbols) - 1)]
    queue = _Queue()

    def enqueue(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            text = now[left] + now[right]
            if (id := v.find(text)) is not None:
                queue.push(_Pair(left, right, len(text), v.score(id)))

    for i in range(len(symbols) - 1):
        enqueue(i, i + 1)
    merges = []
    while queue:
        left, right, size, score = queue.pop()
        if not now[left] or not now[right] or len(now[left]) + len(now[right]) != size:
            continue  # one of the two symbols was merged in the meantime
        merges.append(Merge(text_of(now[left]), text_of(now[right]), score=score, at=left))
        now[left] += now[right]
        now[right] = b""
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        enqueue(before[left], left)
        enqueue(left, after[left])
    return merges, [symbol for symbol in now if symbol]


def tokens_of(v: Vocabulary, symbol: bytes) -> Iterator[Token]:
    """Yields a symbol's token or, if it has none, a byte token or the unknown token for each
    byte."""
    if (id := v.find(symbol)) is not None:
        yield v.token(id, how_found(symbol), score=v.score(id))
        return
    for byte in symbol:
        found = v.byte_token(byte)
        if found is None and byte:
            found = v.find(bytes([byte]))
        if found is not None:
            yield v.token(found, "byte", why="no token has this text")
        elif v.unknown >= 0:
            yield v.token(v.unknown, "unknown", why=f"there is no token for the byte {byte:02X}")
