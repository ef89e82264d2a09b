"""llama.cpp loads each trained vocabulary, and gives ggtok's ids, pieces and texts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import ggtok
from ggtok.inspect.parity.texts import BROKEN, CODE, EMOJI, PROSE
from tests.parity import Result, compare_texts, compare_vocabulary
from tests.support.full import full
from tests.support.llamacpp import LlamaCpp
from tests.support.samples import sampled
from tests.support.vocabularies import PRE_NAMES

TEXT = "\n".join([*PROSE, *CODE])
TEXTS = [
    *(line.encode() for line in [*PROSE[::4], *CODE[::3], *EMOJI[:3], "  two  spaces ", "a\n\n b"]),
    *BROKEN[:5],
    b"<|im_end|> and <s></s> <unk>",
]


KINDS: dict[str, dict[str, object]] = {
    "bytes rule, no special tokens": {"rule": "bytes"},
    "special tokens": {
        "special_tokens": ["<|im_start|>", "<|im_end|>", "<|pad|>"],
        "bos": "<|begin|>",
        "eos": "<|im_end|>",
        "pad": "<|pad|>",
        "chat_template": "{{ messages }}",
    },
    "seen bytes": {"alphabet": "seen"},
    "special tokens that are words": {"special_tokens": ["the", "a", "Ġthe"]},
    "pieces": {"model": "spm"},
    "pieces with digits apart": {"model": "spm", "split_digits": True, "pad": "<pad>"},
    "pieces of most characters": {"model": "spm", "character_coverage": 0.97},
    "unigram": {"model": "ugm"},
}


def compare(llama: LlamaCpp, path: Path, v: ggtok.Vocabulary, texts: list[bytes]) -> None:
    v.save(path)
    vocab = llama.load(path)
    tok = ggtok.load(path)
    result = Result(path.name)
    try:
        compare_vocabulary(vocab, tok, result)
        compare_texts(vocab, tok, texts, result)
    finally:
        vocab.free()
    assert result.differences == 0, "\n".join(result.shown)
    assert result.comparisons > 100 and not result.deaths
    assert [tok.token_text(id) for id in range(tok.n_tokens)] == list(v.texts)


@pytest.mark.parametrize("kind", [*(k for k in KINDS if k != "unigram"), full("unigram")])
def test_llama_cpp_gives_our_ids(kind: str, llama: LlamaCpp, tmp_path: Path) -> None:
    size = 900 if KINDS[kind].get("model", "bpe") == "bpe" else 1500
    v = ggtok.train(TEXT, size, **KINDS[kind])  # type: ignore[arg-type]
    compare(llama, tmp_path / "v.gguf", v, TEXTS)


def trainable() -> Iterator[str]:
    return (name for name in PRE_NAMES if name != "whitespace")


@pytest.mark.parametrize("pre", sampled(trainable(), 4))
def test_every_pre_tokenizer(pre: str, llama: LlamaCpp, tmp_path: Path) -> None:
    """Words are split as in encoding, and decoding restores the text."""
    v = ggtok.train(TEXT, 1400, pre=pre)
    assert v.pre == pre and 700 < len(v) <= 1400
    compare(llama, tmp_path / "v.gguf", v, TEXTS[:6])
    tok = v.tokenizer()
    for line in TEXTS[:6]:
        text = line.decode()
        if pre != "mmbert":  # mmbert adds a space to each line
            assert tok.decode(tok.encode(text, add_special=False)) == text
