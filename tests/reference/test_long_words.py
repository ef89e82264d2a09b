"""Compares long words with llama.cpp, which merges each word as a whole. ggtok merges them in
windows.

Claim bpe.3.
"""

from __future__ import annotations

import random
from itertools import pairwise, product
from pathlib import Path

import pytest

from tests.parity import Result, compare_texts
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.samples import times
from tests.support.vocabularies import fixture
from tests.support.work import LINEAR, Measure

NORMAL, UNKNOWN, BYTE = 1, 2, 6
LETTERS = "abcdefghijklmnopqrstuvwxyz"
RANDOM = times(8, of=150)


def compare(path: Path, texts: list[str], llama: LlamaCpp) -> None:
    import ggtok

    vocab, tok = llama.load(path), ggtok.load(path)
    result = Result(path.stem)
    compare_texts(vocab, tok, [text.encode() for text in texts], result)
    vocab.free()
    assert result.comparisons and not result.differences, "\n".join(result.shown)


def long_words(chooser: random.Random, alphabet: str) -> list[str]:
    """Returns words that are random, periodic, runs of one character, or parts of these."""
    words = []
    for _ in range(12):
        parts = []
        for _ in range(chooser.randint(1, 4)):
            unit = "".join(chooser.choices(alphabet, k=chooser.choice((1, 1, 2, 3, 7, 40))))
            random_part = "".join(chooser.choices(alphabet, k=chooser.randint(1, 1500)))
            parts.append(
                chooser.choice((unit * chooser.randint(1, 1500 // len(unit)), random_part))
            )
        words.append("".join(parts))
    return words


# ---- BPE ----


def write_bpe(path: Path, merges: list[tuple[str, str]]) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    tokens = [token.decode() for token in gguf.strings("tokenizer.ggml.tokens")[:256]]
    tokens += dict.fromkeys(left + right for left, right in merges)
    gguf.set("tokenizer.ggml.tokens", list(dict.fromkeys(tokens)))
    gguf.set("tokenizer.ggml.token_type", [NORMAL] * len(dict.fromkeys(tokens)), "i32")
    gguf.set("tokenizer.ggml.merges", [f"{left} {right}" for left, right in merges])
    gguf.write(path)


def random_merges(chooser: random.Random, alphabet: str) -> list[tuple[str, str]]:
    """Returns merges that build long symbols. In half of the cases, later merges also have low
    ranks, which no trainer would do."""
    symbols = list(alphabet)
    merges = []
    for _ in range(chooser.choice((10, 60, 300))):
        merge = chooser.choice(symbols), chooser.choice(symbols)
        if len(merge[0] + merge[1]) <= chooser.choice((8, 8, 64)):
            merges.append(merge)
            symbols.append(merge[0] + merge[1])
    if chooser.random() < 0.5:
        chooser.shuffle(merges)
    return list(dict.fromkeys(merges))


@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_merges(seed: int, llama: LlamaCpp, tmp_path: Path) -> None:
    chooser = random.Random(seed)
    alphabet = LETTERS[: chooser.choice((1, 2, 3, 8))]
    write_bpe(tmp_path / "merges.gguf", random_merges(chooser, alphabet))
    compare(tmp_path / "merges.gguf", long_words(chooser, alphabet), llama)


def chain(alphabet: str) -> str:
    """Returns a word in which each pair of letters occurs once."""
    word, left = alphabet[0], {letter: list(alphabet) for letter in alphabet}
    path = [alphabet[0]]
    walk: list[str] = []
    while path:  # Hierholzer's algorithm
        if left[path[-1]]:
            path.append(left[path[-1]].pop())
        else:
            walk.append(path.pop())
    word = "".join(reversed(walk))
    assert len(word) == len(alphabet) ** 2 + 1
    return word


def chained(path: Path, word: str) -> None:
    """Writes merges of which each has a lower rank than the one before it in the word. Each letter
    at the end changes all symbols of the word."""
    write_bpe(path, list(pairwise(word))[::-1])


def test_the_end_of_a_word_changes_its_beginning(llama: LlamaCpp, tmp_path: Path) -> None:
    word = chain(LETTERS)
    chained(tmp_path / "chain.gguf", word)
    texts = [word[:n] for n in range(1, len(word), 13)]
    texts += [3 * word, word + "zzz" + word, word[5:] + 400 * "a" + word[:-1]]
    compare(tmp_path / "chain.gguf", texts, llama)


def test_work_for_chains_grows_linearly(work: Measure, tmp_path: Path) -> None:
    """Each letter changes all symbols before it, so most windows don't fit."""
    word = chain(LETTERS + LETTERS.upper())
    chained(tmp_path / "chain.gguf", word)
    steps = work(tmp_path / "chain.gguf", word[:600].encode(), word[:2400].encode()).encode
    assert steps[1] < LINEAR * steps[0], steps
    steps = work(tmp_path / "chain.gguf", (16 * word).encode(), (64 * word).encode()).encode
    assert steps[1] < LINEAR * steps[0], steps


# ---- SPM ----


def write_spm(path: Path, chooser: random.Random, alphabet: str) -> None:
    """Writes a vocabulary of random tokens, with few different scores in some cases."""
    gguf = GGUF.read(fixture("spm"))
    texts = [*alphabet]
    for _ in range(chooser.choice((5, 40, 200))):
        text = chooser.choice(texts) + chooser.choice(texts)
        if len(text) <= 40:
            texts.append(text)
    texts = [text for text in dict.fromkeys(texts) if text in alphabet or chooser.random() < 0.9]
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), *texts]
    scores = [0.0] * 259
    if chooser.random() < 0.3:
        scores += chooser.choices((-1.0, -2.0, -3.0), k=len(texts))
    else:
        scores += [-float(n) for n in range(len(texts))]
    types = [UNKNOWN, 3, 3, *[BYTE] * 256, *[NORMAL] * len(texts)]
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    gguf.set("tokenizer.ggml.scores", scores, "f32")
    gguf.write(path)


@pytest.mark.parametrize("seed", range(RANDOM))
def test_random_scores(seed: int, llama: LlamaCpp, tmp_path: Path) -> None:
    chooser = random.Random(seed)
    alphabet = "abc\u6f22\u5b57"[: chooser.choice((1, 2, 3, 5))]
    write_spm(tmp_path / "scores.gguf", chooser, alphabet)
    compare(tmp_path / "scores.gguf", long_words(chooser, alphabet), llama)


# ---- what people have ----


def texts_of_kinds(size: int) -> list[str]:
    chooser = random.Random(1)
    kinds = [
        *("ACGT", "ACDEFGHIKLMNPQRSTVWY", "0123456789abcdef", LETTERS, "01", "=", "-", " ", "\n"),
        *("\u0e01\u0e32\u0e23\u0e40\u0e14\u0e34\u0e19", "\U0001f600\U0001f601\U0001f602\u200d"),
        "".join(chr(0x4E00 + n) for n in range(3000)),
        "".join(a + b for a, b in product("aAzZ09+/", repeat=2)),
    ]
    return ["".join(chooser.choices(kind, k=size)) for kind in kinds]


@pytest.mark.parametrize(
    "name", ["bpe-gpt2", "bpe-llama3", "bpe-gemma4", "bpe-qwen2", "spm", "spm-bytes"]
)
def test_kinds_of_long_words(name: str, llama: LlamaCpp) -> None:
    compare(fixture(name), texts_of_kinds(times(3_000, of=60_000)), llama)
