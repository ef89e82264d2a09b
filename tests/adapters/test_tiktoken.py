"""Compares tiktoken_encoding with tiktoken, and tests for which vocabularies it raises an error."""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace

import pytest

import ggtok
from ggtok import adapters
from ggtok.vocabularies import spelling
from ggtok.vocabularies.convert.lines import lines_for
from tests.support.vocabularies import fixture, real

EXACT = ["gpt-2", "llama-bpe", "qwen2", "qwen35"]


@pytest.mark.full
@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-gpt2", "bpe-qwen2", *EXACT])
def test_ids_equal_ggtoks(name: str) -> None:
    pytest.importorskip("tiktoken")
    path = real(name) if name in EXACT else fixture(name)
    tok = ggtok.load(path)
    encoding = adapters.tiktoken_encoding(tok)
    lines = lines_for(ggtok.vocabulary(path), 1000)
    assert [encoding.encode(line, allowed_special="all") for line in lines] == tok.encode_batch(
        lines, add_special=False, parse_special=True
    )
    plain = [line for line in lines if not any(t in line for t in encoding.special_tokens_set)]
    assert list(map(encoding.encode_ordinary, plain)) == tok.encode_batch(plain, add_special=False)
    unpickled = pickle.loads(pickle.dumps(encoding))
    assert unpickled.decode(unpickled.encode_ordinary("Hello, world")) == "Hello, world"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("spm", "only byte-level BPE, not model 'llama'"),
        ("wpm", "only byte-level BPE"),
        ("rwkv", "only byte-level BPE"),
        ("bpe-neox", "'default' applies 4 expressions one after the other"),
        ("bpe-jina", "strips only ASCII white space"),
    ],
)
def test_inexact_vocabularies_are_refused(name: str, reason: str) -> None:
    with pytest.raises(ggtok.VocabError, match=reason):
        adapters.tiktoken_encoding(ggtok.load(fixture(name)))


def test_special_tokens_that_are_prefixes_are_refused() -> None:
    v = ggtok.vocabulary(fixture("bpe-llama3"))
    texts, types = list(v.texts), list(v.types)
    control = [id for id, type in enumerate(types) if type == spelling.CONTROL]
    texts[control[0]], texts[control[1]] = b"<|a", b"<|ab"
    tok = ggtok.load(replace(v, texts=texts).gguf())
    with pytest.raises(ggtok.VocabError, match=r"b'<\|a' is the beginning of b'<\|ab'"):
        adapters.tiktoken_encoding(tok)


def test_pre_patterns_and_a_missing_package_raise_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    tok = ggtok.load(fixture("bpe-llama3"), pre_patterns=[r"\w+|\W"])
    with pytest.raises(ggtok.VocabError, match="pre_patterns are Python's"):
        adapters.tiktoken_encoding(tok)
    monkeypatch.setitem(sys.modules, "tiktoken", None)
    with pytest.raises(ggtok.MissingExtraError, match="tiktoken can't be imported"):
        adapters.tiktoken_encoding(ggtok.load(fixture("bpe-llama3")))
