"""Properties that hold for every text, for all ids and for every method."""

from __future__ import annotations

import itertools
import warnings
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import texts
from tests.properties.given import NAMES, flags, some_bytes, some_text
from tests.support.vocabularies import golden

Load = Callable[[str], ggtok.Tokenizer]


# One vocabulary of each kind, for tests that would be slow with all vocabularies.
KINDS = ["spm", "bpe-qwen2", "bpe-gemma4", "bpe-odd", "bpe-whitespace", "wpm", "ugm", "rwkv"]
KINDS += ["plamo2", "plamo3", "bpe-mmbert", "bpe-hybriddna", "test"]


# ---- round trips ----


@pytest.mark.parametrize("name", ["bpe-qwen2", "bpe-harmony", "rwkv"])
@given(text=some_text)
def test_byte_level_vocabularies_lose_nothing(load_fixture: Load, name: str, text: str) -> None:
    """A text survives a round trip if each byte has a token and decoding doesn't clean up
    spaces."""
    tok = load_fixture(name)
    for parse_special in (False, True):
        ids = tok.encode(text, add_special=False, parse_special=parse_special)
        assert tok.decode(ids) == text


@given(text=some_text)
def test_spm_only_loses_its_added_space(load_fixture: Load, text: str) -> None:
    # SPM spells a space as U+2581, and adds a space after a special token.
    text = text.replace("\u2581", "").replace("<", "")
    tok = load_fixture("spm-phi3")
    assert tok.decode(tok.encode(text, add_special=False)) == text
    assert tok.decode(tok.encode(text), remove_special=True) == (" " + text if text else "")


@given(data=some_bytes)
def test_spm_keeps_every_byte(load_fixture: Load, data: bytes) -> None:
    space = "\u2581".encode()
    data = data.replace(space, b"").replace(b"<", b"")
    tok = load_fixture("spm-phi3")
    decoded = tok.decode_bytes(tok.encode(data, add_special=False))
    # After a stray lead byte, the bytes of a space mark become byte tokens, which decode unchanged.
    assert decoded.replace(space, b" ") == data


@given(ids=st.lists(st.integers(0, 568), max_size=30))
def test_decoding_joins_the_pieces(load_fixture: Load, ids: list[int]) -> None:
    """The text is the joined pieces if there is no clean-up and no space to remove."""
    tok = load_fixture("bpe-qwen2")
    for special in (False, True):
        pieces = b"".join(tok.token_to_piece(id, special=special) for id in ids)
        assert tok.decode_bytes(ids, unparse_special=special) == pieces
        assert tok.decode(ids, unparse_special=special) == pieces.decode("utf-8", "replace")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bpe-hybriddna"])
def test_text_to_token_inverts_token_text(load_fixture: Load, name: str) -> None:
    """hybriddna is an exception: it doesn't look up k-mers by the text that token_text returns."""
    tok = load_fixture(name)
    for id in range(tok.n_tokens):
        assert tok.text_to_token(tok.token_text(id)) == id
    assert tok.text_to_token("no token is called so") is None
    assert tok.text_to_token(b"") is None


# ---- all methods agree ----


@pytest.mark.parametrize("name", KINDS)
@given(data=some_bytes, flags=flags)
def test_all_methods_agree_on_one_text(
    load_fixture: Load, name: str, data: bytes, flags: dict[str, bool]
) -> None:
    tok = load_fixture(name)
    ids = tok.encode(data, **flags)
    assert all(0 <= id < tok.n_tokens for id in ids)
    assert tok.count(data, **flags) == len(ids)
    ids_array = tok.encode_array(data, **flags)
    assert ids_array.dtype == np.int32
    assert ids_array.shape == (len(ids),)
    assert ids_array.tolist() == ids
    same: Any
    for same in (
        bytearray(data),
        memoryview(data),
        memoryview(b"x" + data)[1:],
        array("B", data),
        np.frombuffer(data, np.uint8),
    ):
        assert tok.encode(same, **flags) == ids
    assert tok.decode(ids_array) == tok.decode(ids)


@given(text=some_text, flags=flags)
def test_str_is_encoded_as_utf8(load_fixture: Load, text: str, flags: dict[str, bool]) -> None:
    for name in ("spm", "bpe-llama3", "wpm"):
        tok = load_fixture(name)
        assert tok.encode(text, **flags) == tok.encode(text.encode(), **flags)
        assert tok.count(text, **flags) == tok.count(text.encode(), **flags)


@given(batch=st.lists(some_bytes, max_size=12), threads=st.integers(0, 4), flags=flags)
def test_batches_equal_single_texts(
    load_fixture: Load, batch: list[bytes], threads: int, flags: dict[str, bool]
) -> None:
    tok = load_fixture("bpe-llama3")
    one_by_one = [tok.encode(text, **flags) for text in batch]
    assert tok.encode_batch(batch, threads=threads, **flags) == one_by_one
    assert tok.encode_batch(iter(batch), threads=threads, **flags) == one_by_one
    views = [text if i % 3 else memoryview(text) for i, text in enumerate(batch)]
    assert tok.encode_batch(views, threads=threads, **flags) == one_by_one
    ids, offsets = tok.encode_batch_arrays(batch, threads=threads, **flags)
    assert ids.dtype == np.int32
    assert offsets.dtype == np.int64
    assert offsets.shape == (len(batch) + 1,)
    assert (offsets[0], offsets[-1]) == (0, len(ids))
    cut = [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    assert cut == one_by_one
    assert tok.count_batch(batch, threads=threads, **flags) == [len(ids) for ids in one_by_one]
    lists: list[object] = [*one_by_one, *map(np.array, filter(None, one_by_one)), range(3)]
    assert tok.decode_batch(lists) == [tok.decode(ids) for ids in lists]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", KINDS)
def test_threads_share_a_tokenizer(load_fixture: Load, name: str) -> None:
    """Many threads share a tokenizer; batches are large enough for several threads."""
    tok = load_fixture(name)
    batch = list(texts(5, 400, [b" the", b"ing"], [b"<s>", b"<|im_end|>"]))
    expected = [tok.encode(text) for text in batch]
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: [tok.encode(text) for text in batch], range(8)):
            assert result == expected
        assert list(pool.map(tok.decode, expected)) == [tok.decode(ids) for ids in expected]
    for threads in (0, 1, 2, 7):
        assert tok.encode_batch(batch, threads=threads) == expected
        ids, offsets = tok.encode_batch_arrays(batch, threads=threads)
        assert ids.tolist() == [id for ids in expected for id in ids]
        assert np.diff(offsets).tolist() == [len(ids) for ids in expected]


# ---- added tokens ----


@pytest.mark.parametrize("name", KINDS)
@given(data=some_bytes, parse_special=st.booleans())
def test_add_special_adds_at_the_ends(
    load_fixture: Load, name: str, data: bytes, parse_special: bool
) -> None:
    tok = load_fixture(name)
    expected = golden(name)
    plain = tok.encode(data, add_special=False, parse_special=parse_special)
    full = tok.encode(data, parse_special=parse_special)
    assert full == expected["prefix"] + plain + expected["suffix"]


# ---- calls are independent ----


@given(data=st.lists(some_bytes, min_size=2, max_size=5))
def test_calls_do_not_influence_each_other(load_fixture: Load, data: list[bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("spm", "bpe-gpt2", "ugm"):
            tok = load_fixture(name)
            first = [tok.encode(text) for text in data]
            assert [tok.encode(text) for text in reversed(data)] == first[::-1]


def test_long_texts_of_one_class_are_encoded(load_fixture: Load) -> None:
    """The texts are long words and runs of every class. Some of them make the reference overflow
    its stack."""
    for name in KINDS:
        tok = load_fixture(name)
        for unit in ("a", " ", "\n", ".", "1", "\u6f22", "\u0301", "ab ", "'s", "\x00", "\u3000"):
            text = unit * 40_000
            ids = tok.encode(text, add_special=False)
            if name == "bpe-qwen2":
                assert tok.decode(ids) == text
            assert tok.count(text, add_special=False) == len(ids)
