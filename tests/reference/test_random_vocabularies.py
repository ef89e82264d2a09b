"""Compares random vocabularies with llama.cpp: models that look up tokens in tries, and special
tokens.

Tokens consist of few different characters, so that many are adjacent, overlap or are prefixes of
others. Some begin or end inside a character, and some are too long for the ordinary tries. The
comparison tests ggtok's cuts, caches and automata, because llama.cpp has none of these.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest

import ggtok
from ggtok.inspect.parity.texts import BROKEN, defuse
from tests.parity import Result, compare_texts
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF, add_tokens
from tests.support.samples import times
from tests.support.vocabularies import fixture

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, BYTE = 1, 2, 3, 4, 6
ALPHABETS = (
    "ab",
    "ab ",
    "\u6f22\u5b57",
    "a\u6f22\u5b57\u3002",
    "\u044f\u0436 \u00e9",
    "a\U0001f600b",
)
BYTES = [bytes([byte]) for byte in range(256)]


def piece(chooser: random.Random, alphabet: str, most: int) -> bytes:
    return "".join(chooser.choices(alphabet, k=chooser.randint(1, most))).encode()


def long_piece(chooser: random.Random, alphabet: str) -> bytes:
    """Returns one or two characters, repeated, with others at the end in some cases."""
    unit = piece(chooser, alphabet, 2)
    data = (unit * 700)[: chooser.choice((254, 255, 256, 257, 258, 300, 510, 700))]
    return data + piece(chooser, alphabet, 2) * chooser.randrange(2)


def token_texts(chooser: random.Random, alphabet: str, whole: bool) -> list[bytes]:
    """Returns random texts for tokens: if `whole`, only short texts of whole characters."""
    token_list = [piece(chooser, alphabet, 5) for _ in range(chooser.randint(1, 60))]
    if not whole:
        token_list += [long_piece(chooser, alphabet) for _ in range(chooser.choice((0, 0, 1, 6)))]
    if not whole and chooser.random() < 0.6:
        for _ in range(chooser.randint(1, 10)):  # texts cut inside characters
            data = chooser.choice(token_list)
            cut = data[chooser.randrange(3) : len(data) - chooser.randrange(3)]
            token_list.append(cut or data)
    return list(dict.fromkeys(data for data in token_list if data))


def some_texts(chooser: random.Random, alphabet: str, tokens: list[bytes]) -> list[bytes]:
    texts = []
    for _ in range(60):
        parts = []
        for _ in range(chooser.choice((1, 3, 10))):
            kind = chooser.random()
            data = chooser.choice(tokens)
            if kind < 0.4:
                data = piece(chooser, alphabet, 30)
            elif kind < 0.5:
                data = data[: chooser.randrange(len(data) + 1)]
            elif kind < 0.6:
                data = data[chooser.randrange(len(data)) :]
            elif kind < 0.65:
                data = chooser.choice(BROKEN)
            parts.append(data)
        texts.append(defuse(b"".join(parts)))
    return texts


def fill(gguf: GGUF, tokens: list[bytes], types: list[int], chooser: random.Random) -> None:
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    # Few different scores, to cause ties. Their sums are exact, inexact, or inexact only for long
    # texts.
    scores = chooser.choice(
        ([-1.0, -2.0, -2.5], [-0.1, -7.3, 1.0, -2.7], [-1.0, -2.0, -(2.0**-45)])
    )
    gguf.set("tokenizer.ggml.scores", chooser.choices(scores, k=len(tokens)), "f32")


def rwkv(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    # llama.cpp loops forever if the first byte of a token isn't itself a token.
    singles = {data[:1] for data in token_list} | set(chooser.sample(BYTES, 20))
    tokens = [b"<s>"] + [
        b"".join(b"\\x%02x" % byte for byte in data)
        for data in dict.fromkeys([*sorted(singles), *token_list])
    ]
    fill(gguf, tokens, [NORMAL] * len(tokens), chooser)
    gguf.remove("tokenizer.ggml.scores")


def wpm(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    specials = [b"[PAD]", b"[UNK]", b"[CLS]", b"[SEP]"]
    mark = "\u2581".encode()
    words = [(mark if chooser.random() < 0.6 else b"") + data for data in token_list]
    letters = list(dict.fromkeys(data[:1] for data in token_list if data[0] < 0x80))
    tokens = list(dict.fromkeys([*specials, mark, *letters, *words]))
    fill(gguf, tokens, [NORMAL] * len(tokens), chooser)
    for name, id in (("padding", 0), ("unknown", 1), ("bos", 2), ("eos", 3), ("seperator", 3)):
        gguf.set(f"tokenizer.ggml.{name}_token_id", id, "u32")


def ugm(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    mark = "\u2581".encode()
    words = [data.replace(b" ", mark) for data in token_list]
    tokens = list(dict.fromkeys([b"<pad>", b"</s>", b"<unk>", b"<s>", mark, *words]))
    types = chooser.choices([NORMAL, USER_DEFINED], [20, chooser.randrange(2)], k=len(tokens))
    types[:4] = [3, 3, UNKNOWN, 3]
    fill(gguf, tokens, types, chooser)
    for name, id in (("padding", 0), ("eos", 1), ("unknown", 2), ("bos", 3)):
        gguf.set(f"tokenizer.ggml.{name}_token_id", id, "u32")
    for flag in ("add_space_prefix", "remove_extra_whitespaces"):
        gguf.set(f"tokenizer.ggml.{flag}", chooser.random() < 0.5, "bool")


def ugm_words(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    """Makes tokens that contain a space only as their first character, so that texts can be cut at
    spaces."""
    mark = "\u2581".encode()
    parts = [part for data in token_list for part in data.split(b" ") if part]
    words = [(mark if chooser.random() < 0.5 else b"") + part for part in parts]
    # Without a token for the space mark, the unknown token can represent it.
    alone = [mark] if chooser.random() < 0.8 else []
    unknown = chooser.choice([b"<unk>", b"<unk>", mark + b"a"])
    tokens = list(dict.fromkeys([b"<pad>", b"</s>", unknown, b"<s>", *alone, *words]))
    types = chooser.choices([NORMAL, USER_DEFINED], [20, chooser.randrange(2)], k=len(tokens))
    types[:4] = [3, 3, NORMAL if unknown[:1] == mark[:1] else UNKNOWN, 3]
    fill(gguf, tokens, types, chooser)
    for name, id in (("padding", 0), ("eos", 1), ("unknown", 2), ("bos", 3)):
        gguf.set(f"tokenizer.ggml.{name}_token_id", id, "u32")
    if chooser.random() < 0.5:
        gguf.remove("tokenizer.ggml.precompiled_charsmap")


def plamo2(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    names = [b"<0x%02X>" % byte for byte in range(256)]
    own = list(dict.fromkeys(token_list))
    tokens = [b"<unk>", *own, *names]
    fill(gguf, tokens, [UNKNOWN] + [NORMAL] * len(own) + [BYTE] * len(names), chooser)
    for name in ("bos", "eos", "padding", "unknown"):
        gguf.set(f"tokenizer.ggml.{name}_token_id", 0, "u32")


def numbered(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    """Makes a vocabulary of type TEST, in which ids are hashes modulo the number of tokens."""
    n = chooser.choice((1, 2, 3, 7, 255, 256, 257, 1000, 65537, chooser.randrange(1, 100_000)))
    fill(gguf, [b"%x" % id for id in range(n)], [NORMAL] * n, chooser)


def special(gguf: GGUF, token_list: list[bytes], chooser: random.Random) -> None:
    """Adds special tokens to a fixture."""
    existing = gguf.strings("tokenizer.ggml.tokens")
    own = [data for data in token_list if data not in existing]
    kinds = chooser.choice(([CONTROL], [USER_DEFINED], [CONTROL, UNKNOWN, USER_DEFINED]))
    add_tokens(gguf, own, chooser.choices(kinds, k=len(own)))


KINDS = {
    "rwkv": rwkv,
    "wpm": wpm,
    "ugm-plain": ugm,
    "ugm": ugm_words,
    "plamo2": plamo2,
    "test": numbered,
}
# Fixtures with special tokens that strip no white space, only white space after the token, or only
# white space before it.
KINDS |= dict.fromkeys(("spm-bytes", "spm-phi3", "bpe-jina"), special)
STRIPS = {"spm-phi3": [b"<|end|>"], "bpe-jina": [b"<mask>"]}


@pytest.mark.parametrize("seed", range(times(6, of=12)))
@pytest.mark.parametrize("kind", KINDS)
def test_random_vocabularies_equal_llama_cpp(
    kind: str, seed: int, llama: LlamaCpp, tmp_path: Path
) -> None:
    chooser = random.Random(f"{kind} {seed}")
    alphabet = ALPHABETS[seed % len(ALPHABETS)]
    if kind == "rwkv":  # in other types, a NUL ends a token's text in llama.cpp
        alphabet = alphabet.replace("b", "\0")
    # llama.cpp's table for PLaMo2 has all prefixes of all suffixes of tokens, so tokens must be
    # short.
    token_list = token_texts(chooser, alphabet, whole=kind == "plamo2")
    gguf = GGUF.read(fixture(kind))
    KINDS[kind](gguf, token_list, chooser)
    path = gguf.write(tmp_path / "random.gguf")
    vocab, tok = llama.load(path), ggtok.load(path)
    result = Result(f"{kind} {seed}")
    compare_texts(
        vocab, tok, some_texts(chooser, alphabet, token_list + STRIPS.get(kind, []) * 4), result
    )
    vocab.free()
    assert not result.differences, "\n".join(result.shown)
    assert result.comparisons > 200
