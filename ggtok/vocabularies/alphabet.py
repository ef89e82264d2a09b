"""The initial tokens of a trained vocabulary: special tokens, bytes, characters."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np

from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import training as native
from ggtok.vocabularies import spelling
from ggtok.vocabularies.scripts import script_of

_MARK = 0x2581
_MAX_SPECIAL = 1024  # bytes of a special token's text

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


def check_specials(special_tokens: Iterable[str], named: dict[str, str | None]) -> list[str]:
    """The texts of special tokens, checked. `named`: those of bos and the like."""
    if isinstance(special_tokens, (str, bytes)):
        raise InvalidTypeError("special_tokens must be an iterable of str, not one")
    texts = list(special_tokens)
    for what, text in [*((f"special_tokens[{i}]", t) for i, t in enumerate(texts)), *named.items()]:
        if text is None and what in named:
            continue
        if not isinstance(text, str):
            raise InvalidTypeError(f"{what} must be str, not {type(text).__name__}")
        try:
            data = text.encode()
        except UnicodeEncodeError:
            raise InvalidValueError(f"{what} contains a lone surrogate") from None
        if not data or b"\0" in data or len(data) > _MAX_SPECIAL:
            raise InvalidValueError(
                f"{what} must be a text of 1 to {_MAX_SPECIAL} bytes without NUL characters"
            )
    for i, text in enumerate(texts):
        if text in texts[:i]:
            raise InvalidValueError(f"special_tokens[{i}] is a duplicate: {text!r}")
    return texts


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
