"""The arguments that adapters pass to each library, which needn't be installed."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import pytest

import ggtok
from ggtok import adapters
from tests.support.vocabularies import fixture


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


def as_package(monkeypatch: pytest.MonkeyPatch, name: str, **functions: Any) -> None:
    monkeypatch.setitem(sys.modules, name, SimpleNamespace(**functions))


def returned(*args: Any, **kwargs: Any) -> tuple[Any, ...]:
    return (*args, kwargs)


def test_arguments_to_llguidance(tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    as_package(monkeypatch, "llguidance", TokenizerWrapper=lambda g: g, LLTokenizer=returned)
    wrapper, options = adapters.llguidance_tokenizer(tok, also_special=iter([3]))
    assert options == {"eos_token": [663, 664, 665]}
    assert (wrapper.eos_token_id, wrapper.bos_token_id) == (tok.eos_id, tok.bos_id)
    assert wrapper.tokens == [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    assert wrapper.special_token_ids == sorted(tok.special_ids | {3})
    text = b"Hello <|eot_id|>"
    assert wrapper(text) == tok.encode(text, add_special=False)
    phi = ggtok.load(fixture("spm"))
    wrapper, _ = adapters.llguidance_tokenizer(phi)
    for text in (b"a", b" a", b"a  b"):
        assert b"".join(wrapper.tokens[id] for id in wrapper(text)) == text
    for name in ("wpm", "bpe-ambiguous"):
        with pytest.raises(ggtok.VocabError, match="llguidance can't use this"):
            adapters.llguidance_tokenizer(ggtok.load(fixture(name)))


def test_arguments_to_xgrammar(tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    kinds = SimpleNamespace(RAW="raw")
    as_package(monkeypatch, "xgrammar", TokenizerInfo=returned, VocabType=kinds)
    pieces, kind, options = adapters.xgrammar_tokenizer_info(tok)
    assert kind == "raw"
    assert options == {"vocab_size": 680, "stop_token_ids": [663, 664, 665]}
    assert {id for id, piece in enumerate(pieces) if not piece} == tok.special_ids
    assert pieces[:5] == [tok.token_to_piece(id) for id in range(5)]


def test_arguments_to_outlines(tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    as_package(monkeypatch, "outlines_core", Vocabulary=returned)
    end, ids, _ = adapters.outlines_vocabulary(tok)
    assert end == 663
    assert sorted(id for same in ids.values() for id in same) == sorted(
        {*range(680)} - tok.special_ids
    )
    assert all(tok.token_to_piece(id) == text for text, same in ids.items() for id in same)
    assert adapters.outlines_vocabulary(tok, eos_id=665)[0] == 665
    with pytest.raises(ggtok.InvalidValueError, match="eos_id must be one of"):
        adapters.outlines_vocabulary(tok, eos_id=662)
