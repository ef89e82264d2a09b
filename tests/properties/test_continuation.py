"""Texts that continue other tokens get no BOS or EOS, and no space prefix."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings

import ggtok
from ggtok.inspect.parity.texts import BROKEN, CODE, EMOJI, PROSE
from tests.properties.given import NAMES, some_bytes
from tests.support.llamacpp import LlamaCpp
from tests.support.samples import times
from tests.support.vocabularies import SPM, UGM, WPM, fixture, real

Load = Callable[[str], ggtok.Tokenizer]

CANNOT_CONTINUE = ["wpm", "wpm-cased", "ugm", "ugm-nfc"]
CAN_CONTINUE = [name for name in NAMES if name not in CANNOT_CONTINUE]
COMPARED = [name for name in CAN_CONTINUE if name != "big-endian"]  # the reference can't load it
PREFIX = "tokenizer.ggml.add_space_prefix"
TEXTS = [*PROSE[:4], *CODE[:3], *EMOJI[:2], " a", "  a ", "\n", " ", "", "\u2581a", "Hello world"]
DATA = [*(text.encode() for text in TEXTS), *(part + b" a" for part in BROKEN[:8])]


def quietly(path: Path, **options: Any) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(path, **options)


def encode_all_ways(tok: ggtok.Tokenizer, data: bytes, **flags: Any) -> list[int]:
    """Returns the ids, after checking that all methods return the same ids."""
    ids = tok.encode(data, continuation=True, **flags)
    assert tok.encode_array(data, continuation=True, **flags).tolist() == ids
    assert tok.encode_batch([data, data], continuation=True, **flags) == [ids, ids]
    joined, offsets = tok.encode_batch_arrays([data], continuation=True, threads=1, **flags)
    assert (joined.tolist(), offsets.tolist()) == (ids, [0, len(ids)])
    assert tok.count(data, continuation=True, **flags) == len(ids)
    return ids


@pytest.mark.parametrize("name", [*COMPARED, *SPM, "llama-bpe"])
def test_equals_llama_cpp_without_a_space_prefix(
    llama: LlamaCpp, tmp_path: Path, name: str
) -> None:
    # The reference caches vocabularies by path, so loading with overrides requires a copy.
    path = shutil.copy(
        real(name) if name not in CAN_CONTINUE else fixture(name), tmp_path / "copy.gguf"
    )
    reference = llama.load(path, {PREFIX: False})
    tok = quietly(path)
    theirs = reference.tokenize_many(DATA, add_special=False, parse_special=False)
    with_prefix = 0
    for data, ids in zip(DATA, theirs, strict=True):
        if any(token in data for token in user_defined(tok)):
            continue  # with this override, the reference adds no prefix after the token, either
        assert encode_all_ways(tok, data) == ids, data
        assert tok.encode(data, continuation=True, add_special=False) == ids
        with_prefix += tok.encode(data, add_special=False) != ids
    assert bool(with_prefix) == (tok.add_space_prefix and tok.vocab_type in ("SPM", "UGM"))
    reference.free()


@pytest.mark.parametrize("name", CAN_CONTINUE)
@settings(max_examples=times(10, of=20))
@given(data=some_bytes)
def test_continuation_of_any_text(load_fixture: Load, name: str, data: bytes) -> None:
    """Nothing is added: up to the first special token, the ids are those of a vocabulary without a
    space prefix."""
    tok = load_fixture(name)
    ids = encode_all_ways(tok, data)
    if not (tok.add_space_prefix and tok.vocab_type in ("SPM", "UGM")):
        assert ids == tok.encode(data, add_special=False)
        return
    plain = quietly(fixture(name), overrides={PREFIX: False}) if name not in PLAIN else PLAIN[name]
    PLAIN[name] = plain
    if not any(token in data for token in user_defined(tok)):
        assert ids == plain.encode(data, add_special=False)


PLAIN: dict[str, ggtok.Tokenizer] = {}


@cache
def user_defined(tok: ggtok.Tokenizer) -> list[bytes]:
    user_defined = ggtok.TokenAttr.USER_DEFINED
    ids = range(tok.n_tokens)
    return [tok.token_text(id) for id in ids if tok.token_attr(id) & user_defined]


def test_a_prefix_is_added_after_a_special_token(load_fixture: Load) -> None:
    tok = load_fixture("spm")
    assert tok.add_space_prefix
    whole = tok.encode("a</s>a", continuation=True, parse_special=True)
    assert whole == [
        *tok.encode("a", continuation=True),
        tok.eos_id,
        *tok.encode("a", add_special=False),
    ]
    assert tok.encode("a", continuation=True) != tok.encode("a", add_special=False)


def test_a_text_can_be_encoded_in_parts(load_fixture: Load) -> None:
    """A text can be encoded in parts: if it is divided between words, the ids of the parts, joined,
    are those of the whole text."""
    for name in ("spm", "bpe-llama3", "rwkv"):
        tok = load_fixture(name)
        ids = tok.encode("Hello") + tok.encode(" world", continuation=True)
        assert ids == tok.encode("Hello world")


@pytest.mark.parametrize("name", [*CANNOT_CONTINUE, WPM, UGM])
def test_vocabularies_that_cannot_continue_a_text(name: str) -> None:
    tok = quietly(real(name) if name in (WPM, UGM) else fixture(name))
    why = "begins with a new word" if tok.vocab_type == "WPM" else "white space is removed"
    calls: list[Callable[[], object]] = [
        lambda: tok.encode("a", continuation=True),
        lambda: tok.encode_array("a", continuation=True),
        lambda: tok.count("a", continuation=True),
        lambda: tok.encode_batch(["a"], continuation=True),
        lambda: tok.encode_batch_arrays(["a"], continuation=True),
    ]
    for call in calls:
        with pytest.raises(ggtok.InvalidValueError, match=f"continuation: .*{why}"):
            call()
    assert tok.encode("a")


def test_ugm_that_keeps_white_space_can_continue_a_text(load_fixture: Load) -> None:
    tok = load_fixture("ugm-plain")
    ids = tok.encode("Hello", continuation=True)
    assert ids == tok.encode("Hello", continuation=True, add_special=True)
    assert tok.bos_id not in ids
