"""SPM: neighbours whose text is a token's merge, the greatest score first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ggtok.explain.bpe import first_symbols, how_found
from ggtok.explain.characters import MARK, Byte, each, span, value, whole
from ggtok.explain.steps import Merge, Token, Word, text_of
from ggtok.explain.vocabulary import Vocabulary


def normalized(v: Vocabulary, text: bytes, prefix: bool) -> Iterator[Byte]:
    """Spaces are U+2581; one is put before text that begins or follows a special token."""
    if prefix and v.flags["add_space_prefix"]:
        yield from whole(MARK, 0, 0)
    for i, b in enumerate(text):
        yield from whole(MARK, i, i + 1) if b == 0x20 else each(bytes([b]), i)


def words(v: Vocabulary, made: list[Byte]) -> Iterator[Word]:
    """All of the text is one word."""
    symbols = first_symbols(v, value(made))
    merges, left = merge(v, symbols)
    tokens = [token for symbol in left for token in tokens_of(v, symbol)]
    shown = [text_of(symbol) for symbol in symbols]
    yield Word(text_of(value(made)), *span(made), tokens, symbols=shown, merges=merges)


class _Pair(NamedTuple):
    left: int
    right: int
    size: int  # bytes of both when it was queued
    score: float


class _Queue:
    """libstdc++'s heap: where a score is NaN, its own moves decide."""

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
        while child < (n - 1) // 2:  # down to a leaf, and the last one up from there
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
    """The merges in their order, the greatest score first and the leftmost of equals; what is
    left. A merged symbol keeps the number of its first part, and the others become empty."""
    now = [*symbols]
    after = [*range(1, len(symbols)), -1]
    before = [*range(-1, len(symbols) - 1)]
    queue = _Queue()

    def ask(left: int, right: int) -> None:
        if left >= 0 and right >= 0:
            text = now[left] + now[right]
            if (id := v.find(text)) is not None:
                queue.push(_Pair(left, right, len(text), v.score(id)))

    for i in range(len(symbols) - 1):
        ask(i, i + 1)
    merges = []
    while queue:
        left, right, size, score = queue.pop()
        if not now[left] or not now[right] or len(now[left]) + len(now[right]) != size:
            continue  # one of them has merged since
        merges.append(Merge(text_of(now[left]), text_of(now[right]), score=score, at=left))
        now[left] += now[right]
        now[right] = b""
        after[left] = after[right]
        if after[left] >= 0:
            before[after[left]] = left
        ask(before[left], left)
        ask(left, after[left])
    return merges, [symbol for symbol in now if symbol]


def tokens_of(v: Vocabulary, symbol: bytes) -> Iterator[Token]:
    """A symbol's token; without one, those of its bytes, or the unknown one for each."""
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
