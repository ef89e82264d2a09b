"""Compares masks for constrained decoding with a brute-force oracle that uses no tokenizer."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

import ggtok
from ggtok import adapters
from tests.adapters import masks
from tests.support.vocabularies import fixture, fixture_names

ALL = [
    adapters.llguidance_tokenizer,
    adapters.outlines_vocabulary,
    adapters.xgrammar_tokenizer_info,
]
NO_END = ["none", "test"]
# Vocabularies that llguidance can't use: encoder models, vocabularies that change white space, and
# vocabularies in which a JSON character has no token, or only a special one.
NOT_EXACT = (
    "bpe-ambiguous bpe-mmbert bpe-odd bpe-overlap bpe-whitespace none test ugm "
    "ugm-nfc ugm-plain wpm wpm-cased"
).split()


@pytest.mark.parametrize("name", [n for n in fixture_names() if n not in NOT_EXACT] + [*masks.REAL])
def test_llguidance_masks_are_right(name: str) -> None:
    pytest.importorskip("llguidance")
    tok = masks.load(name)
    checked = [masks.llguidance(tok, *case, masks.SAMPLE) for case in masks.cases(tok)]
    assert sum(checked) > 10, checked


@pytest.mark.parametrize("name", [n for n in fixture_names() if n not in NO_END] + [*masks.REAL])
def test_outlines_masks_are_right(name: str) -> None:
    pytest.importorskip("outlines_core")
    tok = masks.load(name)
    checked = [masks.outlines(tok, *case, masks.SAMPLE) for case in masks.cases(tok)]
    assert sum(checked) > 10 or name in NOT_EXACT, checked


def test_xgrammar_masks_are_right() -> None:
    pytest.importorskip("tvm_ffi")
    if importlib.util.find_spec("xgrammar") is None:
        pytest.skip("needs xgrammar")
    program = "from tests.adapters import masks; masks.run_xgrammar()"
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert completed.returncode == 0
    counts = {
        name: int(n) for name, n in (row.split() for row in completed.stdout.decode().splitlines())
    }
    assert set(counts) == {*fixture_names(), *masks.REAL} - {*NO_END}
    assert all(n > 10 for name, n in counts.items() if name not in NOT_EXACT)


def test_unusable_vocabularies_raise_errors() -> None:
    pytest.importorskip("llguidance")
    assert masks.usable(adapters.llguidance_tokenizer) == sorted({*fixture_names()} - {*NOT_EXACT})
    for name, reason in (
        ("wpm", r"this WPM vocabulary: .*b'a' encodes to tokens of b' a'; xgrammar and Outlines"),
        ("ugm", r"this UGM vocabulary: .*b'a' encodes to tokens of b' a'"),
        ("bpe-ambiguous", "represent only by the control token 1"),
    ):
        with pytest.raises(ggtok.VocabError, match=reason):
            adapters.llguidance_tokenizer(ggtok.load(fixture(name)))


@pytest.mark.parametrize("adapter", ALL)
def test_vocabularies_without_an_end_raise_errors(adapter: Callable[..., Any]) -> None:
    for name in NO_END:
        with pytest.raises(ggtok.VocabError, match="no token that ends generation"):
            adapter(ggtok.load(fixture(name)))


@pytest.mark.parametrize("adapter", ALL)
def test_wrong_arguments_raise_errors(adapter: Callable[..., Any]) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    with pytest.raises(ggtok.TokenIdError, match="also_special has 680, but ids are 0 to 679"):
        adapter(tok, also_special=[1, 680])
    with pytest.raises(ggtok.InvalidTypeError, match="also_special must be an integer, not str"):
        adapter(tok, also_special=["<think>"])
    with pytest.raises(ggtok.InvalidTypeError, match=r"must be a ggtok.Tokenizer, not str"):
        adapter("model.gguf")


@pytest.mark.parametrize(
    ("adapter", "package", "extra"),
    [
        (adapters.llguidance_tokenizer, "llguidance", "llguidance"),
        (adapters.outlines_vocabulary, "outlines_core", "outlines"),
        (adapters.xgrammar_tokenizer_info, "xgrammar", "xgrammar"),
    ],
)
def test_a_missing_package_raises_an_error(
    adapter: Callable[..., Any], package: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ggtok.MissingExtraError, match=rf"pip install 'ggtok\[{extra}\]'"):
        adapter(ggtok.load(fixture("bpe-llama3")))


def test_the_ends_of_generation_are_passed_on() -> None:
    pytest.importorskip("llguidance")
    pytest.importorskip("outlines_core")
    tok = ggtok.load(fixture("bpe-llama3"))
    assert tok.eos_id == 663 and tok.eog_ids == {663, 664, 665}
    ll = adapters.llguidance_tokenizer(tok)
    assert (ll.eos_token, sorted(ll.eos_tokens), ll.vocab_size) == (663, [663, 664, 665], 680)
    assert adapters.outlines_vocabulary(tok).get_eos_token_id() == 663
    assert adapters.outlines_vocabulary(tok, tok.eot_id).get_eos_token_id() == 664
    with pytest.raises(ggtok.InvalidValueError, match=r"\[663, 664, 665\], but is 1"):
        adapters.outlines_vocabulary(tok, eos_id=1)
    with pytest.raises(ggtok.InvalidTypeError, match="eos_id must be an integer"):
        adapters.outlines_vocabulary(tok, "</s>")  # type: ignore[arg-type]


def test_forced_text_gets_no_special_tokens() -> None:
    """Forced text continues other text, so it gets no BOS, space prefix or control token.
    User-defined tokens are still found."""
    pytest.importorskip("llguidance")
    for name in ("bpe-llama3", "spm", "spm-phi3", "bpe-gemma4", "bpe-harmony", "plamo2", "rwkv"):
        tok = ggtok.load(fixture(name))
        ll = adapters.llguidance_tokenizer(tok)
        special = b"".join(tok.token_to_piece(id) for id in sorted(tok.special_ids)).decode(
            "utf-8", "ignore"
        )
        for text in ("Hello, world", " a  b", f"x{special}\n y"):
            ids = ll.tokenize_str(text)
            assert ll.decode_bytes(ids) == text.encode(), name
            assert not tok.special_ids.intersection(ids), name
    gemma = ggtok.load(fixture("bpe-gemma4"))
    user_defined = [
        id
        for id in range(gemma.n_tokens)
        if gemma.token_attr(id) & ggtok.TokenAttr.USER_DEFINED and id not in gemma.special_ids
    ]
    text = gemma.token_to_piece(user_defined[0]).decode()
    assert adapters.llguidance_tokenizer(gemma).tokenize_str(f"a{text}")[-1] == user_defined[0]


def test_also_special_adds_special_tokens() -> None:
    llguidance = pytest.importorskip("llguidance")
    pytest.importorskip("outlines_core")
    tok = ggtok.load(fixture("bpe-llama3"))
    id = tok.encode("the", add_special=False)[0]
    assert not adapters.llguidance_tokenizer(tok).is_special_token(id)
    ll = adapters.llguidance_tokenizer(tok, also_special=[id])
    assert ll.is_special_token(id) and ll.is_special_token(664)
    piece = tok.token_to_piece(id)
    assert id in adapters.outlines_vocabulary(tok).get(piece)
    assert adapters.outlines_vocabulary(tok, also_special=[id]).get(piece) is None
    # A grammar refers to a special token by its text.
    grammar = llguidance.LLMatcher.grammar_from_lark('start: "a" <|eot_id|>')
    matcher = llguidance.LLMatcher(ll, grammar)
    assert matcher.consume_tokens([tok.encode("a", add_special=False)[0], 664])
    assert matcher.is_accepting(), matcher.get_error()


def test_control_tokens_of_the_file_stay_special() -> None:
    """llama.cpp's rules make gpt-oss's <|start|> user-defined. Masks still treat it as the control
    token that it is in the file, so a JSON string can't contain it."""
    llguidance = pytest.importorskip("llguidance")
    tok = ggtok.load(fixture("bpe-harmony"))
    id = tok.text_to_token("<|start|>")
    assert id in tok.special_ids and not tok.is_control(id)
    ll = adapters.llguidance_tokenizer(tok)
    matcher = llguidance.LLMatcher(ll, llguidance.LLMatcher.grammar_from_regex('".*"'))
    assert matcher.consume_token(tok.encode('"', add_special=False)[0])
    mask = set(masks.bits(matcher.compute_bitmask(), tok.n_tokens))
    assert not mask & tok.special_ids and len(mask) > 100


def test_each_text_has_all_its_ids() -> None:
    pytest.importorskip("outlines_core")
    tok = ggtok.load(fixture("spm-bytes"))
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens)]
    ids: dict[bytes, list[int]] = {}
    for id, piece in enumerate(pieces):
        if id not in tok.special_ids:
            ids.setdefault(piece, []).append(id)
    vocabulary = adapters.outlines_vocabulary(tok)
    assert any(len(same) > 1 for same in ids.values())
    assert all(sorted(vocabulary.get(piece)) == same for piece, same in ids.items() if piece)
