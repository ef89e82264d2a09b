"""How vocabularies store text: GPT-2's byte map, ``<0xXX>``, U+2581 for spaces."""

from __future__ import annotations

from functools import cache

from ggtok.native import training as native

MARK = "\u2581".encode()
NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6
TYPES = {"normal": 1, "unknown": 2, "control": 3, "user_defined": 4, "unused": 5, "byte": 6}

# Values of tokenizer.ggml.model for which normal tokens store spaces as U+2581.
_MARKED = {"llama", "t5", "gemma4"}


@cache
def byte_characters() -> tuple[bytes, ...]:
    """Returns GPT-2's byte map, in UTF-8: printable bytes map to themselves, others to U+0100 and
    up."""
    printable = {*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return tuple(chr(b if b in printable else next(others)).encode() for b in range(256))


@cache
def _bytes_by_character() -> dict[str, int]:
    return {character.decode(): b for b, character in enumerate(byte_characters())}


def to_characters(data: bytes) -> bytes:
    """Encodes bytes with GPT-2's byte map, in UTF-8."""
    characters = byte_characters()
    return b"".join([characters[b] for b in data])


def from_characters(text: bytes) -> bytes | None:
    """Decodes GPT-2's byte map; returns None if the text has other characters."""
    known = _bytes_by_character()
    try:
        return bytes(map(known.__getitem__, text.decode()))
    except (KeyError, UnicodeDecodeError):
        return None


def characters_length(text: bytes) -> int:
    """Returns how many bytes a text in GPT-2's byte map represents."""
    return len(text.decode())


def marked_length(text: bytes) -> int:
    """Returns how many bytes a text with U+2581 for spaces represents."""
    return len(text) - (len(MARK) - 1) * text.count(MARK)


def byte_token(byte: int) -> bytes:
    return b"<0x%02X>" % byte


def is_raw(pre: str | None) -> bool:
    """Whether vocabularies with this pre-tokenizer store tokens without a byte map."""
    return pre is not None and native.pre_is_raw(pre)


def scheme(model: str, pre: str | None) -> str | None:
    """Returns how a vocabulary stores text: "characters" (byte map), "marks" (U+2581), or None."""
    if model in _MARKED or (model == "gpt2" and is_raw(pre)):
        return "marks"
    return "characters" if model == "gpt2" else None


def decode_text(text: bytes, type: int, scheme: str) -> bytes:
    """Returns the bytes that a stored text represents. `scheme` is a result of :func:`scheme`."""
    if type == BYTE and len(text) == 6 and text.startswith(b"<0x"):
        try:
            return bytes([int(text[3:5], 16)])
        except ValueError:
            return text
    if type not in (NORMAL, UNUSED):
        return text
    if scheme == "marks":
        return text.replace(MARK, b" ")
    data = from_characters(text)
    return text if data is None else data


def is_byte_token(text: bytes) -> bool:
    """Whether the text is one of ``<0x00>`` to ``<0xFF>``."""
    return len(text) == 6 and text.startswith(b"<0x") and text in _byte_tokens()


@cache
def _byte_tokens() -> frozenset[bytes]:
    return frozenset(map(byte_token, range(256)))
