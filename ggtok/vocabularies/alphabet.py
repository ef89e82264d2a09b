"""The initial tokens of a trained vocabulary: special tokens, bytes, characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ggtok.native import training as native
from ggtok.vocabularies import spelling
from ggtok.vocabularies.scripts import script_of

_MARK = 0x2581

# Characters that SentencePiece ignores, and its own marks, which aren't in its alphabet.
_UNSEEN = {0, 0x20}
BOUNDARY = b"\x1f"  # replaces the text of a special token
_MARKS = {ord(BOUNDARY), 0x2585}


@dataclass
class Beginning:
    """The tokens that training starts with, in the order of their ids."""

    texts: list[bytes] = field(default_factory=list)
    types: list[int] = field(default_factory=list)
    special_ids: dict[str, int] = field(default_factory=dict)

    def add(self, text: bytes, type: int) -> int:
        self.texts.append(text)
        self.types.append(type)
        return len(self.texts) - 1

    def add_bytes(self) -> None:
        """Add a byte token for each byte."""
        for byte in range(256):
            self.add(spelling.byte_token(byte), spelling.BYTE)


def covered(chars: Iterable[tuple[int, int]], coverage: float) -> list[tuple[int, int]]:
    """The most frequent characters that cover this share of all, as in SentencePiece (float)."""
    seen = [c for c in chars if c[0] not in _UNSEEN and not 0xD800 <= c[0] < 0xE000]
    total, so_far = sum(count for _, count in seen), 0
    kept = []
    for code, count in seen:
        if np.float32(so_far / total) >= np.float32(coverage):
            break
        so_far += count
        if code not in _MARKS:
            kept.append((code, count))
    return kept


def pieces(chars: Sequence[tuple[int, int]], split_digits: bool) -> list[native.Symbol]:
    """Characters as symbols of SentencePiece's trainer, numbered in their order."""
    scripts = script_of([code for code, _ in chars])
    symbols = []
    for number, ((code, _), script) in enumerate(zip(chars, scripts, strict=True)):
        kind = 0
        if code == _MARK:
            kind, script = native.SYMBOL_SPACE | native.SYMBOL_ONLY_SPACES, 0
        elif split_digits and (0x30 <= code <= 0x39 or 0xFF10 <= code <= 0xFF19):
            kind = native.SYMBOL_ALONE
        symbols.append(native.Symbol(code, number, script, kind))
    return symbols


def byte_order(rule: str, seen: set[int] | None) -> list[int]:
    """The alphabet's bytes in the order of their ids."""
    alphabet = range(256) if seen is None else sorted(seen)
    if rule == "bytes":
        return list(alphabet)
    characters = spelling.byte_characters()
    return sorted(alphabet, key=lambda byte: characters[byte].decode())


def bytes_of(chars: Iterable[tuple[int, int]]) -> set[int]:
    """The bytes that occur in the UTF-8 of these characters."""
    text = "".join(chr(code) for code, _ in chars)
    return set(text.encode("utf-8", "surrogatepass"))
