"""Compares ggtok with llama.cpp, which never divides texts, on BPE vocabularies with random merges.

The merges join bytes of one character, bytes of adjacent characters, and long symbols. Even a
single merge that joins two characters must prevent a cut between them.

Claim bpe.2.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ggtok
from ggtok.vocabularies import spelling
from tests.parity import Result, compare_texts
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture

Merge = tuple[bytes, bytes]
LETTERS = "abxé\u00c0\u0800\u6f22\u0300\U00010400"

# In each row, only the last merge joins the two characters that the row's name describes.
ROWS: dict[str, tuple[list[Merge], str]] = {
    "a long symbol before a character": (
        [
            *[(b"a", b"b"), (b"ab", b"c"), (b"abc", b"d"), (b"abcd", b"e")],
            *[(b"\xc3", b"\xa9"), (b"abcde", b"\xc3\xa9")],
        ],
        "abcde\u00e9",
    ),
    "a long symbol of two bytes a character": (
        [
            *[(b"\xc3", b"\xa9"), (b"\xc3\xa9", b"\xc3\xa9"), (b"\xc3\xa9\xc3\xa9", b"a")],
            *[(b"\xc3\xa9\xc3\xa9a", b"\xc3\xa9"), (b"\xc3\xa9\xc3\xa9a\xc3\xa9", b"b")],
        ],
        "\u00e9\u00e9a\u00e9b",
    ),
    "a last byte of 0x80 before ASCII": ([(b"\xc3", b"\x80"), (b"\xc3\x80", b"x")], "\u00c0x"),
    "part of a character before ASCII": ([(b"\x80", b"x"), (b"\xc3", b"\x80x")], "\u00c0x"),
    "ASCII before part of a character": ([(b"x", b"\xc3"), (b"x\xc3", b"\x80")], "x\u00c0"),
}


def check(merges: list[Merge], texts: list[str], llama: LlamaCpp, path: Path) -> ggtok.Tokenizer:
    characters = spelling.byte_characters()

    def spelled(data: bytes) -> bytes:
        return b"".join(characters[byte] for byte in data)

    token_bytes = dict.fromkeys([bytes([byte]) for byte in range(256)] + [a + b for a, b in merges])
    tokens = [spelled(data) for data in token_bytes]
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.set("tokenizer.ggml.token_type", [1] * len(tokens), "i32")
    gguf.set("tokenizer.ggml.merges", [spelled(a) + b" " + spelled(b) for a, b in merges])
    gguf.write(path)
    vocab, tok = llama.load(path), ggtok.load(path)
    result = Result(path.stem)
    compare_texts(vocab, tok, [text.encode() for text in texts], result)
    vocab.free()
    assert result.comparisons and not result.differences, "\n".join(result.shown)
    return tok


@pytest.mark.parametrize("name", ROWS)
def test_one_merge_joins_two_characters(name: str, llama: LlamaCpp, tmp_path: Path) -> None:
    merges, text = ROWS[name]
    tok = check(merges, [text, 3 * text, 40 * text], llama, tmp_path / "merges.gguf")
    assert len(tok.encode(text, add_special=False)) == 1


@pytest.mark.parametrize("seed", range(times(12, of=200)))
def test_random_merges_equal_llama_cpp(seed: int, llama: LlamaCpp, tmp_path: Path) -> None:
    chooser = random.Random(seed)
    symbols = sorted({bytes([byte]) for byte in "".join(LETTERS).encode()})
    merges: list[Merge] = []
    for _ in range(chooser.choice((5, 30, 120))):
        merge = chooser.choice(symbols), chooser.choice(symbols)
        if chooser.random() < 0.5:  # merge symbols that occur in the texts
            text = "".join(chooser.choices(LETTERS, k=4)).encode()
            at = chooser.randrange(1, len(text))
            merge = (
                text[max(0, at - chooser.randint(1, 5)) : at],
                text[at : at + chooser.randint(1, 5)],
            )
        merges.append(merge)
        symbols.append(b"".join(merge))
    merges = list(dict.fromkeys(merges))
    texts = ["".join(chooser.choices(LETTERS, k=chooser.randint(1, 60))) for _ in range(60)]
    check(merges, texts, llama, tmp_path / "merges.gguf")
