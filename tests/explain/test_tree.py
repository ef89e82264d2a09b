"""The tree of merges that produce a token."""

from __future__ import annotations

import dataclasses
import json
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

import ggtok
from ggtok.explain.steps import MergeTree
from tests.plain import explain as plain
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

Load = Callable[[str], ggtok.Tokenizer]


def raw(text: str) -> bytes:
    return text.encode("utf-8", "surrogateescape")


def replayed(tree: MergeTree) -> list[bytes]:
    """Returns the symbols that remain after the merges."""
    symbols: list[bytes | None] = [*map(raw, tree.symbols)]
    for merge in tree.merges:
        right = next(i for i in range(merge.at + 1, len(symbols)) if symbols[i] is not None)
        assert (symbols[merge.at], symbols[right]) == (raw(merge.left), raw(merge.right))
        symbols[merge.at], symbols[right] = raw(merge.left) + raw(merge.right), None
    return [symbol for symbol in symbols if symbol is not None]


NAMES = ["bpe-gpt2", "bpe-gemma4", "bpe-odd", "bpe-hybriddna", "spm", "spm-bytes"]


@pytest.mark.parametrize("name", NAMES)
def test_every_token(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    reached = 0
    for id in range(0, tok.n_tokens, 7):
        tree = tok.merge_tree(id)
        assert repr(tree) == repr(plain.merge_tree(tok._loaded, id))
        assert tree.id == id
        assert json.dumps(dataclasses.asdict(tree))
        remaining = replayed(tree)
        assert not tree.reached or (
            remaining == [raw(tree.text)] and [t.id for t in tree.tokens] == [id]
        )
        reached += tree.reached
        if tree.reached and len(tree.symbols) > 1:
            last = tree.merges[-1]
            assert (last.left, last.right) in [(pair.left, pair.right) for pair in tree.pairs]
    assert reached > tok.n_tokens / 30


def test_reached_tokens_are_encoded(load_fixture: Load) -> None:
    tok = load_fixture("bpe-gpt2")
    for id in range(0, tok.n_tokens, 2):
        tree = tok.merge_tree(id)
        piece = tok.token_to_piece(id)
        if tree.reached and not tree.notes and piece.decode("utf-8", "replace").encode() == piece:
            assert tok.encode(piece, add_special=False) == [id]


def test_tokens_that_no_merge_produces_are_not_reached(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    add_tokens(gguf, ["zqzq", "no byte \u4e2d"], 1)
    tok = ggtok.load(gguf.write(tmp_path / "model.gguf"))
    n = tok.n_tokens
    tree = tok.merge_tree(n - 2)
    assert not tree.reached and "".join(t.text for t in tree.tokens) == "zqzq"
    tree = tok.merge_tree(n - 1)
    assert not tree.reached and tree.symbols == [] and "stands for no byte" in tree.notes[-1]


def test_tokens_that_are_not_utf8_are_not_reached(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gemma4"))
    add_tokens(gguf, [b"\xe2\x98"], 1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(gguf.write(tmp_path / "model.gguf"))
    tree = tok.merge_tree(tok.n_tokens - 1)
    assert not tree.reached and "it isn't UTF-8" in tree.notes[0]


def test_notes_say_why_a_token_is_special(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    tree = tok.merge_tree(664)
    assert "a control token" in tree.notes[0] and tree.whole_word and not tree.reached
    assert "it is split by the pre-tokenizer: '<|' | 'eot' | '_id' | '|>'" in tree.notes[1]
    spm = load_fixture("spm")
    assert "the unknown token" in spm.merge_tree(0).notes
    assert "a byte token" in spm.merge_tree(10).notes[0]
    gemma = load_fixture("bpe-gemma4")
    user = next(i for i in range(gemma.n_tokens) if gemma.token_attr(i) & 16)
    assert "a user-defined token" in gemma.merge_tree(user).notes[0]
    dna = load_fixture("bpe-hybriddna")
    assert "a k-mer" in dna.merge_tree(dna.encode("<dna>ACGTAC", add_special=False)[1]).notes[0]


def test_wrong_tokens_raise_errors(load_fixture: Load, tmp_path: Path) -> None:
    with pytest.raises(ggtok.TokenIdError, match="not a token id"):
        load_fixture("bpe-gpt2").merge_tree(-1)
    for name in "wpm", "ugm", "rwkv", "plamo2", "test":
        with pytest.raises(ggtok.VocabError, match="has no merges"):
            load_fixture(name).merge_tree(0)
    gguf = GGUF.read(fixture("spm"))
    add_tokens(gguf, ["x" * 20000], 1)
    tok = ggtok.load(gguf.write(tmp_path / "model.gguf"))
    with pytest.raises(ggtok.InvalidValueError, match="has 20,000 bytes, and at most 16,384 can"):
        tok.merge_tree(tok.n_tokens - 1)
