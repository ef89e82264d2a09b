"""Compares every fixture with llama.cpp's recorded results (fixtures/golden)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import ggtok
from fixtures import build
from fixtures.golden import FLAG_PAIRS, PIECE_KINDS, digest, from_json, score_bytes
from tests.support.llamacpp import SPECIAL_NAMES
from tests.support.patch import GGUF
from tests.support.vocabularies import (
    GOLDEN_FOLDER,
    fixture,
    fixture_names,
    golden,
    reference_names,
)

Load = Callable[[str], ggtok.Tokenizer]
NAMES = fixture_names()


def test_every_fixture_has_recorded_results() -> None:
    assert NAMES
    assert sorted(path.stem for path in GOLDEN_FOLDER.glob("*.json")) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_the_vocabulary_is_as_recorded(name: str, load_fixture: Load) -> None:
    tok, expected = load_fixture(name), golden(name)
    assert tok.n_tokens == expected["n_tokens"]
    assert tok.vocab_type == expected["vocab_type"]
    assert sorted(tok.eog_ids) == expected["eog"]
    assert list(tok.suppress_tokens) == expected["suppress_tokens"]
    special = {kind: getattr(tok, f"{kind}_id") for kind in SPECIAL_NAMES}
    assert {kind: id for kind, id in special.items() if id is not None} == expected["special"]
    for key in ("add_bos", "add_eos", "add_sep", "chat_template"):
        assert getattr(tok, key) == expected[key]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_tokens_are_as_recorded(name: str, load_fixture: Load) -> None:
    tok, expected = load_fixture(name), golden(name)
    ids = range(tok.n_tokens)
    attrs = {str(id): int(tok.token_attr(id)) for id in ids}
    assert {id: attr for id, attr in attrs.items() if attr != 4} == expected["attrs"]
    stored = GGUF.read(fixture(name)).strings("tokenizer.ggml.tokens")
    for id, text in expected["rewritten"].items():
        stored[int(id)] = from_json(text)
    assert [tok.token_text(id) for id in ids] == stored
    assert digest(tok.token_text(id) for id in ids) == expected["texts"]
    assert digest(score_bytes(tok.token_score(id) for id in ids)) == expected["scores"]
    assert [tok.is_control(id) for id in ids] == [bool(attr & 8) for attr in attrs.values()]
    for (special, lstrip), sum in zip(PIECE_KINDS, expected["pieces"], strict=True):
        pieces = (tok.token_to_piece(id, special=special, lstrip=lstrip) for id in ids)
        assert digest(pieces) == sum, f"{special=}, {lstrip=}"


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_ids_are_as_recorded(name: str, load_fixture: Load) -> None:
    tok, expected = load_fixture(name), golden(name)
    prefix, suffix = expected["prefix"], expected["suffix"]
    for case in expected["cases"]:
        text, ids = from_json(case["text"]), case["ids"]
        parsed = case.get("parsed", ids)
        assert tok.encode(text, add_special=False) == ids, text
        assert tok.encode(text) == prefix + ids + suffix, text
        assert tok.encode(text, add_special=False, parse_special=True) == parsed, text
        assert tok.encode(text, parse_special=True) == prefix + parsed + suffix, text


@pytest.mark.parametrize("name", [name for name in NAMES if name != "none"])
def test_decoded_texts_are_as_recorded(name: str, load_fixture: Load) -> None:
    tok, expected = load_fixture(name), golden(name)
    for case in expected["cases"] + expected["random"]:
        ids = case["ids"]
        if "text" in case:
            ids = expected["prefix"] + case.get("parsed", ids) + expected["suffix"]
        for text, pairs in case["decoded"].items():
            for remove_special, unparse_special in (FLAG_PAIRS[i] for i in pairs):
                flags = {"remove_special": remove_special, "unparse_special": unparse_special}
                assert tok.decode_bytes(ids, **flags) == from_json(text), (ids, flags)


@pytest.mark.full
def test_build_is_reproducible(tmp_path: Any) -> None:
    for path in build.build(tmp_path):
        assert path.read_bytes() == fixture(path.stem).read_bytes(), path.stem
    assert build.chat(tmp_path / "chat.gguf").read_bytes() == build.CHAT.read_bytes()


@pytest.mark.full
def test_goldens_are_current(llama: Any) -> None:
    """The installed reference still produces the recorded results."""
    from fixtures.golden import dump
    from fixtures.golden import golden as ask

    for name in reference_names():
        path = GOLDEN_FOLDER / f"{name}.json"
        assert dump(ask(llama, name)) == path.read_text("utf-8"), name
