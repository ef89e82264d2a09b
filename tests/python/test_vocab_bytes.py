"""Pieces as bytes, tokens by prefix, token healing, and equality of tokenizers."""

from __future__ import annotations

import copy
import pickle
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture, fixture_names, real

Load = Callable[[str], ggtok.Tokenizer]


@pytest.mark.parametrize("name", fixture_names())
def test_vocab_bytes_equal_pieces(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    kept = tok.vocab_bytes("keep")
    assert kept == [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    blank = tok.vocab_bytes()
    assert blank == [b"" if id in tok.special_ids else kept[id] for id in range(tok.n_tokens)]
    assert tok.vocab_bytes("blank") == blank
    with pytest.raises(ggtok.InvalidValueError, match="special must be 'blank' or 'keep'"):
        tok.vocab_bytes("none")  # type: ignore[arg-type]


@pytest.mark.parametrize("name", fixture_names())
def test_tokens_with_prefix(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    pieces = tok.vocab_bytes()
    rng = random.Random(2)
    some = [piece[: rng.randrange(4)] for piece in rng.sample(pieces, min(60, len(pieces)))]
    for prefix in (b"", b"\xff", b"\xff\xff", b"\xc3", b"\x00", b"the", b"no such token", *some):
        found = [id for id, piece in enumerate(pieces) if piece and piece.startswith(prefix)]
        assert tok.tokens_with_prefix(prefix) == found, prefix
        assert tok.tokens_with_prefix(bytearray(prefix)) == found


def test_healing_removes_extensible_tokens(load_fixture: Load) -> None:
    for name in ("bpe-llama3", "spm", "bpe-harmony"):
        tok = load_fixture(name)
        pieces = tok.vocab_bytes()
        healed = 0
        for id in range(tok.n_tokens):
            longer = any(p.startswith(pieces[id]) and p != pieces[id] for p in pieces)
            expected = ([1], pieces[id]) if pieces[id] and longer else ([1, id], b"")
            assert tok.heal([1, id]) == expected
            healed += expected[0] == [1]
        assert 20 < healed < tok.n_tokens
    assert tok.heal([]) == ([], b"")
    assert tok.heal(np.array([1, 2]))[0][0] == 1
    with pytest.raises(ggtok.TokenIdError, match=r"ids\[1\] is"):
        tok.heal([1, tok.n_tokens])
    for wrong in ("text", 3, None):
        with pytest.raises(ggtok.InvalidTypeError):
            tok.tokens_with_prefix(wrong)  # type: ignore[arg-type]


def test_healing_of_an_address() -> None:
    tok = ggtok.load(real("llama-bpe"))
    kept, prefix = tok.heal(tok.encode("See http:"))
    assert (tok.decode(kept, remove_special=True), prefix) == ("See http", b":")
    longer = tok.text_to_token("://")
    assert longer in tok.tokens_with_prefix(prefix)


def loaded(name: str, **options: object) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture(name), **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("name", fixture_names())
def test_equality_ignores_the_source(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        other = ggtok.load(fixture(name).read_bytes())
    assert tok == other
    assert hash(tok) == hash(other)
    assert tok is not other
    assert tok == copy.copy(tok) == copy.deepcopy(tok) == pickle.loads(pickle.dumps(tok))
    assert {tok: 1}[other] == 1


def test_equality_ignores_byte_order_and_version() -> None:
    assert loaded("big-endian") == loaded("version-2")


def test_different_tokenizers_are_unequal() -> None:
    names = fixture_names()
    distinct = [loaded(name) for name in names if name not in ("big-endian", "version-2")]
    assert len({*distinct}) == len(distinct)
    tok = loaded("bpe-llama3")
    assert tok != loaded("bpe-llama3", pre="qwen2")
    assert tok != loaded("bpe-llama3", pre_patterns=[r"\S+|\s+"])
    patterns = loaded("bpe-llama3", pre_patterns=[r"\S+|\s+"])
    assert patterns == loaded("bpe-llama3", pre_patterns=[r"\S+|\s+"])
    assert patterns != loaded("bpe-llama3", pre_patterns=[r"\S+|\s"])
    off = {"tokenizer.ggml.add_bos_token": False}
    assert tok != loaded("bpe-llama3", overrides=off) == loaded("bpe-llama3", overrides=off)
    assert tok != object()
    assert tok != "bpe-llama3"

    class Sub(ggtok.Tokenizer):
        pass

    assert Sub(fixture("bpe-llama3"), None, None) != tok


def test_equality_of_file_contents(tmp_path: Path) -> None:
    """Tokenizers differ if any part of the vocabulary differs; other keys don't matter."""
    for name, key in (
        ("bpe-llama3", "tokenizer.ggml.merges"),
        ("bpe-llama3", "tokenizer.ggml.tokens"),
        ("bpe-whitespace", "tokenizer.ggml.merges"),
        ("bpe-hybriddna", "tokenizer.ggml.merges"),
        ("spm", "tokenizer.ggml.scores"),
        ("ugm", "tokenizer.ggml.precompiled_charsmap"),
    ):
        file = GGUF.read(fixture(name))
        values = file.array(key)
        if key.endswith("charsmap"):  # replace a letter in one of the charsmap's replacements
            values[-2] = int(values[-2]) ^ 1
        elif key.endswith("scores"):
            values[300] = float(values[300]) + 1
        else:
            at = len(values) // 2
            values[at], values[at + 1] = values[at + 1], values[at]
        file.set(key, values)
        file.write(tmp_path / "changed.gguf")
        assert ggtok.load(tmp_path / "changed.gguf") != loaded(name), (name, key)
    for key, value, same in (
        ("general.name", "another", True),
        ("tokenizer.chat_template", "{{ messages }}", False),
    ):
        file = GGUF.read(fixture("bpe-llama3"))
        file.set(key, value)
        file.write(tmp_path / "changed.gguf")
        assert (ggtok.load(tmp_path / "changed.gguf") == loaded("bpe-llama3")) is same
