"""Encodes tokens in many contexts, to find out which tokens text can produce."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, product

from ggtok.inspect.doctor.file import is_utf8
from ggtok.tokenizer import Tokenizer

# Texts before and after a token: nothing, white space, digits, punctuation, and letters of scripts
# with and without spaces and cases.
_BEFORE = (
    *("", "a", " ", "\n", "1", ".", "é", " a", "\t", "'", "\r\n", "-", "A", "(", "x", "z", "th"),
    *("s", "3", "12", " 1", "0", "q", "*", "#", "中", "的", "一", "あ", "한", "Ж", "\u0627"),
)
_AFTER = ("", "a", " ", "\n", "1", ".", "的", " x", "x\n")
_BLOCK = 20_000  # texts per call of encode
_COMPLETIONS = 100, 1000  # texts for a token with parts of characters: first few, then more


class Seen:
    """The tokens that the texts encoded so far have produced."""

    def __init__(self, tok: Tokenizer) -> None:
        import numpy as np

        self._tok = tok
        self._seen = np.zeros(tok.n_tokens, bool)

    def left(self, ids: Sequence[int]) -> list[int]:
        """The ids that no text has produced."""
        return [id for id in ids if not self._seen[id]]

    def encode(self, texts: Iterator[bytes], *, continuation: bool = False) -> None:
        while block := list(islice(texts, _BLOCK)):
            ids = self._tok.encode_batch_arrays(
                block, add_special=False, continuation=continuation
            )[0]
            self._seen[ids[ids >= 0]] = True

    def alone(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        self.encode(pieces[id] for id in ids)
        if self._tok.vocab_type in ("BPE", "SPM"):  # again without a space prefix
            self.encode((pieces[id] for id in ids), continuation=True)

    def around(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        """Encodes tokens of whole characters in many contexts, until each has been produced."""
        whole = [id for id in ids if is_utf8(pieces[id])]
        for before in _BEFORE:
            self.encode(
                before.encode() + pieces[id] + after.encode()
                for id in self.left(whole)
                for after in _AFTER
            )

    def completed(self, pieces: Sequence[bytes], ids: Sequence[int]) -> None:
        """Encodes tokens that begin or end inside a character, with bytes that complete it."""
        for most in _COMPLETIONS:
            for id in self.left(ids):
                self.encode(islice(_completions(pieces[id]), most))


def _completions(piece: bytes) -> Iterator[bytes]:
    """UTF-8 texts that contain the piece, which itself isn't UTF-8."""
    inside = len(piece) - len(piece.lstrip(_CONTINUATION))  # the end of a split character
    before = _heads(inside) if inside else [b""]
    before.sort(key=lambda head: head[:1] not in piece)  # first heads of the piece's script
    after = _tails(piece)
    if inside > 3 or (before == [b""] and after == [b""]):
        return
    for round in range(len(after)):
        for i, head in enumerate(before):
            # Heads come in runs of 64. Shift the tails in each run, to vary the combinations.
            text = head + piece + after[(i + i // 64 + round) % len(after)]
            if is_utf8(text):
                yield text
                yield b" " + text


_CONTINUATION = bytes(range(0x80, 0xC0))


def _heads(n: int) -> list[bytes]:
    """Beginnings of characters that lack n bytes."""
    heads = [bytes([lead]) for lead in range(0xC2, 0xF5) if _length(lead) == n + 1]
    if n < 3:
        heads += [
            bytes([lead, x])
            for lead in range(0xE0, 0xF5)
            if _length(lead) == n + 2
            for x in _CONTINUATION
        ]
    if n == 1:
        heads += [
            bytes([lead, x, y])
            for lead in (0xF0, 0xF3)
            for x in (0x90, 0x9F, 0xA0, 0xAF)
            for y in _CONTINUATION
        ]
    return heads


def _tails(piece: bytes) -> list[bytes]:
    """Bytes that may complete the character that the piece ends in."""
    for have in range(1, min(3, len(piece)) + 1):
        lead = piece[-have]
        if lead >= 0xC0:
            missing = _length(lead) - have
            break
        if lead < 0x80:
            return [b""]
    else:
        return [b""]
    if missing <= 0:
        return [b""]
    second = b"\x80\x85\x8f\x90\x9f\xa0\xa5\xbf"  # after F0 and ED, not all are valid
    first = [bytes([x]) for x in _CONTINUATION]
    return [a + bytes(rest) for rest in product(second, repeat=missing - 1) for a in first]


def _length(lead: int) -> int:
    return 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
