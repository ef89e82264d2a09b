"""A small run of tests.parity: every real vocabulary and every pre-tokenizer name.

Claim pretok.1, among others: the words of every pre-tokenizer are llama.cpp's.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests import parity
from tests.support.llamacpp import LlamaCpp, LlamaCppDied, LlamaCppLoadError
from tests.support.patch import GGUF
from tests.support.samples import sampled, times
from tests.support.vocabularies import OTHERS, PRE_NAMES, REAL, fixture, real, reference_names

SEED = 20240229


def check(result: parity.Result) -> None:
    assert not result.differences, "\n".join(result.shown)
    assert result.comparisons


# For real vocabularies, the tests compare the pieces of one in SOME normal tokens; for fixtures, of
# all tokens. (python -m tests.parity compares all tokens of all vocabularies.)
SOME = 20


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real_vocabularies_equal_llama_cpp(name: str, llama: LlamaCpp) -> None:
    check(parity.compare(name, real(name), times(50, of=100), SEED, tokens=SOME, llama=llama))


@pytest.mark.parametrize("name", [name for name in reference_names() if name != "big-endian"])
def test_fixtures_equal_llama_cpp(name: str, llama: LlamaCpp) -> None:
    check(parity.compare(name, fixture(name), times(60, of=150), SEED, llama=llama))


# With model gpt2 and pre-tokenizer `whitespace`, llama.cpp aborts at the first space. A separate
# fixture tests this pre-tokenizer.
PRES = [pre for pre in PRE_NAMES if pre != "whitespace"]


@pytest.fixture(scope="module")
def gpt2() -> bytes:
    """Returns a vocabulary with GPT-2's first 8000 tokens, which loads quickly."""
    return ggtok.vocabulary(real("gpt-2")).smaller(8000).gguf()


@pytest.mark.parametrize("pre", sampled(PRES, 4))
def test_pre_tokenizers_equal_llama_cpp(
    pre: str, gpt2: bytes, llama: LlamaCpp, tmp_path: Path
) -> None:
    gguf = GGUF.parse(gpt2)
    gguf.set("tokenizer.ggml.pre", pre)
    path = gguf.write(tmp_path / "patched.gguf")
    check(parity.compare(pre, path, times(40, of=80), SEED, tokens=0, llama=llama))


@pytest.mark.full
@pytest.mark.parametrize("pre", PRES)
def test_flags_of_pre_tokenizers_equal_llama_cpp(pre: str, llama: LlamaCpp, tmp_path: Path) -> None:
    """A pre-tokenizer's name implies the same flags and attributes in ggtok and in llama.cpp."""
    for name in ("bpe-gemma4", "bpe-llama3"):
        gguf = GGUF.read(fixture(name))
        gguf.set("tokenizer.ggml.model", "gpt2")
        gguf.set("tokenizer.ggml.pre", pre)
        gguf.remove("tokenizer.ggml.add_bos_token", "tokenizer.ggml.bos_token_id")
        path = gguf.write(tmp_path / "patched.gguf")
        check(parity.compare(pre, path, times(15, of=30), SEED, llama=llama))


# ---- tests of tests.parity ----


class Wrong:
    """A tokenizer that drops the last id of each text with an x."""

    def __init__(self, tok: ggtok.Tokenizer) -> None:
        self.tok = tok

    def encode(self, text: bytes, **flags: bool) -> list[int]:
        ids = self.tok.encode(text, **flags)
        return ids[:-1] if b"x" in text else ids

    def __getattr__(self, name: str) -> Any:
        return getattr(self.tok, name)


def test_differences_are_found_and_shrunk(llama: LlamaCpp, monkeypatch: pytest.MonkeyPatch) -> None:
    load = parity.load
    monkeypatch.setattr(parity, "load", lambda path: Wrong(load(path)))
    result = parity.compare("wrong", fixture("bpe-gpt2"), 50, SEED, llama=llama)
    assert result.differences > 10
    assert all(re.search(r"encode\(b'x', ", shown) for shown in result.shown), result.shown


def test_the_reference_outlives_its_deaths(llama: LlamaCpp) -> None:
    vocab = llama.load(fixture("bpe-gpt2"))
    deadly = b"a\xf5\x90\x80\x80"  # decodes to a value above U+10FFFF, so llama.cpp aborts
    with pytest.raises(LlamaCppDied, match="x90") as caught:
        vocab.tokenize(deadly, False, False)
    assert caught.value.status
    a = vocab.tokenize(b"a", False, False)
    assert vocab.survivors([b"a", deadly, deadly, b"a"], False, False) == [a, None, None, a]
    assert vocab.survivors([], False, False) == []
    with pytest.raises(LlamaCppLoadError, match="failed to open"):
        llama.load(fixture("no-such-file"))
    assert vocab.detokenize(a * 1000, False, True) == b"a" * 1000
