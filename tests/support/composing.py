"""A vocabulary that shows how texts are composed (NFC), and texts for it.

Each code point that NFC changes, composes or reorders is a token, so a text's ids spell its NFC.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import unicodedata2

from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

NORMAL, UNKNOWN, CONTROL = 1, 2, 3
HANGUL = [chr(c) for c in (*range(0x1100, 0x1113), *range(0x1161, 0x1176), *range(0x11A7, 0x11C3))]
# Characters of Unicode 16.0 that the tables of unicodedata2==15.1.0 lack.
NEWER = "\u0897" + "".join(
    chr(c)
    for c in (
        *(0x105C9, 0x105D2, 0x105DA, 0x105E4, *range(0x10D69, 0x10D6E), 0x11382, 0x11383, 0x11384),
        *(0x11385, 0x1138B, 0x1138E, 0x11390, 0x11391, 0x113B8, 0x113BB, 0x113C2, 0x113C5, 0x113C7),
        *(0x113C8, 0x113C9, *range(0x113CE, 0x113D1), *range(0x1611E, 0x16130)),
        *(0x16D63, 0x16D67, 0x16D68, 0x16D69, 0x16D6A, 0x1E5EE, 0x1E5EF),
    )
)


def composable() -> list[str]:
    """Returns all code points that NFC changes, composes or reorders, except for Hangul syllables
    with a final consonant."""
    found: dict[str, None] = dict.fromkeys(HANGUL)
    for c in map(chr, range(0x80, 0x110000)):
        mapping = unicodedata2.decomposition(c)
        if mapping[:1] != "<" and (mapping or unicodedata2.combining(c)):
            found |= dict.fromkeys([c, *unicodedata2.normalize("NFD", c)])
    return list(found)


def composing_vocabulary(characters: list[str]) -> GGUF:
    gguf = GGUF.read(fixture("ugm-nfc"))
    normal = dict.fromkeys(["\u2581", "\ufffd", *map(chr, range(0x21, 0x7F)), *characters])
    normal |= dict.fromkeys(map(chr, range(0xAC00, 0xD7A4)))
    tokens = ["<pad>", "</s>", "<unk>", *normal]
    gguf.set("tokenizer.ggml.tokens", tokens)
    types = [CONTROL, CONTROL, UNKNOWN, *[NORMAL] * len(normal)]
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    gguf.set("tokenizer.ggml.scores", [-1.0] * len(tokens), "f32")
    gguf.remove("tokenizer.ggml.precompiled_charsmap")
    return gguf


def composing_texts(characters: list[str], n: int, seed: int) -> Iterator[str]:
    """Yields each character alone and between others, and n texts of random characters."""
    marks = [c for c in characters if unicodedata2.combining(c)]
    for c in characters:
        yield f"{c} {c}\u0301 a{c}a {c}{c} a\u0323{c}\u0301{unicodedata2.normalize('NFD', c)}"
    chooser = random.Random(seed)
    for _ in range(n):
        kinds = chooser.choices((characters, marks, HANGUL, "aeou nA "), (2, 4, 2, 3), k=40)
        yield "".join(chooser.choice(kind) for kind in kinds)
