"""Regression tests for the fuzzers' findings, and one run over the saved corpora.

Unlike `python -m tests.fuzz`, these tests don't need clang.
"""

from __future__ import annotations

import zipfile

import pytest

import ggtok
from tests.fuzz import bodies, sources
from tests.fuzz.__main__ import CORPUS
from tests.fuzz.protobuf import fuzz
from tests.fuzz.seeds import SEEDS, enable_ugm_fast_path
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture


def test_a_vocabulary_that_is_too_small_has_no_newline() -> None:
    """fuzz_gguf found that in a vocabulary with one token, the token for "\\n" fell back to the
    default unknown token, 2. llama.cpp doesn't load such a file."""
    gguf = GGUF.read(fixture("ugm"))
    gguf.remove("tokenizer.ggml.unknown_token_id")
    for key in ("tokens", "token_type", "scores"):
        gguf.set(f"tokenizer.ggml.{key}", gguf.array(f"tokenizer.ggml.{key}")[:1])
    gguf.remove("tokenizer.ggml.precompiled_charsmap")
    tok = ggtok.load(gguf.dump())
    assert tok.n_tokens == 1 and tok.nl_id is None


def test_the_first_word_has_no_ids() -> None:
    """fuzz_encode found that zero ids were copied to the cache from a null pointer, for 64
    malformed bytes, which WPM drops. (Only the sanitizers detected it.)"""
    tok = ggtok.load(fixture("wpm"))
    for _ in range(2):
        assert tok.encode(b"\xbd" * 64, add_special=False) == []


def test_no_new_word_has_ids() -> None:
    """fuzz_gguf found that if no byte has a token, so that a batch's misses have no ids, zero ids
    were copied to a null pointer. (Only the sanitizers detected it.)"""
    gguf = GGUF.read(fixture("bpe-gpt2"))
    for key in ("tokens", "token_type"):
        gguf.set(f"tokenizer.ggml.{key}", gguf.array(f"tokenizer.ggml.{key}")[:1])
    gguf.set("tokenizer.ggml.merges", [b"a b"])
    for key in ("bos", "eos"):
        gguf.set(f"tokenizer.ggml.{key}_token_id", 0, "u32")
    tok = ggtok.load(gguf.dump())
    for _ in range(2):
        assert tok.encode("six new words, all of letters", add_special=False) == []


def test_spans_of_unknown_characters_within_a_word() -> None:
    """fuzz_session found that the first unknown token's span was the rest of the word."""
    gguf = GGUF.read(fixture("ugm"))
    enable_ugm_fast_path(gguf)
    tok = ggtok.load(gguf.dump())
    text = "\n*~*~\n~~**"
    ids, spans = tok.encode_with_offsets(text, add_special=False)
    unknown = [text[a:b] for id, (a, b) in zip(ids, spans, strict=True) if id == tok.unk_id]
    assert unknown == ["*~*~", "~~**"]
    assert all(0 <= a <= b <= len(text) for a, b in spans)


def test_spans_of_unknown_characters_without_an_unknown_token() -> None:
    """fuzz_gguf found that the text of WPM's default token, 100, was read even if there are fewer
    tokens. (Only the sanitizers detected it.)"""
    gguf = GGUF.read(fixture("wpm"))
    for key in ("tokens", "token_type", "scores"):
        if f"tokenizer.ggml.{key}" in gguf:
            gguf.set(f"tokenizer.ggml.{key}", gguf.array(f"tokenizer.ggml.{key}")[:90])
    for key in ("unknown", "bos", "eos", "seperator", "padding", "mask", "cls"):
        gguf.remove(f"tokenizer.ggml.{key}_token_id")
    tok = ggtok.load(gguf.dump())
    ids, spans = tok.encode_with_offsets("\u4e2d \u6587", add_special=False)
    assert len(ids) == 2 and not any(0 <= id < tok.n_tokens for id in ids)
    assert spans.tolist() == [[0, 3], [4, 7]]


@pytest.mark.parametrize("name", ["rwkv", "bpe-llama3"])
def test_a_long_word_is_looked_up_in_an_empty_cache(name: str) -> None:
    """fuzz_encode found that a long word's entry was looked up in a cache without entries, at
    offset 0 of a null pointer. (Only the sanitizers detected it.)"""
    tok = ggtok.load(fixture(name))
    word = "qx" * 30
    assert tok.encode(word) == tok.encode(word) == tok.encode(word)


def saved(target: str) -> list[bytes]:
    with zipfile.ZipFile(CORPUS / f"{target}.zip") as archive:
        return [archive.read(name) for name in archive.namelist()]


def test_saved_files_load_or_raise_errors() -> None:
    loaded = refused = 0
    for data in [*SEEDS["gguf"](), *saved("gguf")]:
        try:
            tok = ggtok.load(data)
        except ggtok.GGTokError:
            refused += 1
            continue
        loaded += 1
        assert all(id is None or 0 <= id < tok.n_tokens for id in (tok.nl_id, tok.eos_id))
        if tok.vocab_type != "NONE":
            tok.count(data[-64:], add_special=False)
    assert loaded > 50 and refused > 50


@pytest.mark.parametrize("target", ["encode", "detok", "session"])
def test_saved_corpora_exist(target: str) -> None:
    inputs = saved(target)
    assert len(inputs) > 100 and min(map(len, inputs)) < 50


@pytest.mark.parametrize("name", ["version-2", "big-endian"])
def test_scalars_of_every_type_load_or_raise_errors(name: str) -> None:
    values = {
        "u8": 200,
        "i8": -100,
        "u16": 60_000,
        "i16": -30_000,
        "u32": 4_000_000_000,
        "i32": -2_000_000_000,
        "f32": -0.5,
        "bool": True,
        "u64": 2**64 - 1,
        "i64": -(2**63),
        "f64": 1e300,
        "str": "\u4f60",
    }
    gguf = GGUF.read(fixture(name))
    for kind, value in values.items():
        gguf.set(f"a.{kind}", value, kind)
    metadata = ggtok.load(gguf.dump()).metadata
    assert {kind: metadata[f"a.{kind}"] for kind in values} == values


@pytest.mark.full
def test_convert_accepts_or_refuses_any_value() -> None:
    n, accepted, findings = sources.fuzz(7, inputs=40)
    assert n == 40 and accepted > 10 and findings == 0


@pytest.mark.full
def test_models_are_read_as_protobuf_reads_them() -> None:
    n, accepted, findings = fuzz(seed=3, inputs=3000)
    assert (n, findings) == (3000, 0) and accepted > 100


@pytest.mark.filterwarnings("ignore")
def test_bodies_get_a_result_or_a_reason() -> None:
    n, accepted, findings = bodies.fuzz(3, inputs=150)
    assert n == 150 and 20 < accepted < 130 and not findings


def test_wrong_answers_are_findings() -> None:
    for status, text in (
        (200, '{"error": 1}'),
        (400, '{"tokens": []}'),
        (400, "no"),
        (500, '{"error": "Internal Server Error"}'),
        (302, '{"error": 1}'),
        (200, "[]"),
    ):
        assert bodies.complaint(status, text)
    assert bodies.complaint(200, '{"tokens": []}') is None
    assert bodies.complaint(400, '{"error": {"message": "why"}}') is None
