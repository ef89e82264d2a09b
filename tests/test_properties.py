"""What must hold for every text, ids and way of calling."""

from __future__ import annotations

import itertools
import random
import warnings
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from fixtures.samples import CODE, EMOJI, PROSE
from tests.test_goldens import golden
from tests.texts import ALPHABETS, BROKEN, texts
from tests.vocabularies import fixture, fixture_names

Load = Callable[[str], ggtok.Tokenizer]

settings.register_profile("ggtok", max_examples=150, deadline=None)
settings.load_profile("ggtok")

NAMES = [name for name in fixture_names() if name != "none"]
# One of each kind, where every vocabulary would be slow.
KINDS = ["spm", "bpe-qwen2", "bpe-gemma4", "bpe-odd", "bpe-whitespace", "wpm", "ugm", "rwkv"]
KINDS += ["plamo2", "plamo3", "bpe-mmbert", "bpe-hybriddna", "test"]

text_parts = st.one_of(
    st.text(max_size=20),
    st.sampled_from([*PROSE, *CODE, *EMOJI]),
    st.sampled_from(ALPHABETS).flatmap(lambda alphabet: st.text(alphabet, max_size=30)),
    st.sampled_from(["<|im_end|>", "<custom>", "<mask>", " ", "  ", "\n\n", "'s", "the kettle"]),
)
some_text = st.lists(text_parts, max_size=6).map("".join)
some_bytes = st.lists(
    st.one_of(st.binary(max_size=12), st.sampled_from(BROKEN), text_parts.map(str.encode)),
    max_size=6,
).map(b"".join)
flags = st.fixed_dictionaries({"add_special": st.booleans(), "parse_special": st.booleans()})


# ---- there and back ----


@pytest.mark.parametrize("name", ["bpe-qwen2", "bpe-harmony", "rwkv"])
@given(text=some_text)
def test_byte_level_vocabularies_lose_nothing(load_fixture: Load, name: str, text: str) -> None:
    """Where there is a token for every byte and no clean-up."""
    tok = load_fixture(name)
    for parse_special in (False, True):
        ids = tok.encode(text, add_special=False, parse_special=parse_special)
        assert tok.decode(ids) == text


@given(text=some_text)
def test_spm_loses_nothing_but_its_own_space(load_fixture: Load, text: str) -> None:
    # U+2581 is how SPM writes a space, and after a special token it adds one.
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
    # A stray lead byte takes the first byte of a space's U+2581: it stays one.
    assert decoded.replace(space, b" ") == data


@given(ids=st.lists(st.integers(0, 568), max_size=30))
def test_decoding_is_the_sum_of_pieces(load_fixture: Load, ids: list[int]) -> None:
    """Where there is no clean-up and no space to remove."""
    tok = load_fixture("bpe-qwen2")
    for special in (False, True):
        pieces = b"".join(tok.token_to_piece(id, special=special) for id in ids)
        assert tok.decode_bytes(ids, unparse_special=special) == pieces
        assert tok.decode(ids, unparse_special=special) == pieces.decode("utf-8", "replace")


@pytest.mark.parametrize("name", [name for name in NAMES if name != "bpe-hybriddna"])
def test_texts_and_ids(load_fixture: Load, name: str) -> None:
    """hybriddna looks k-mers up by another text than it shows."""
    tok = load_fixture(name)
    for id in range(tok.n_tokens):
        assert tok.text_to_token(tok.token_text(id)) == id
    assert tok.text_to_token("no token is called so") is None
    assert tok.text_to_token(b"") is None


# ---- all ways of encoding agree ----


@pytest.mark.parametrize("name", KINDS)
@given(data=some_bytes, flags=flags)
def test_one_text(load_fixture: Load, name: str, data: bytes, flags: dict[str, bool]) -> None:
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
def test_str_is_its_utf8(load_fixture: Load, text: str, flags: dict[str, bool]) -> None:
    for name in ("spm", "bpe-llama3", "wpm"):
        tok = load_fixture(name)
        assert tok.encode(text, **flags) == tok.encode(text.encode(), **flags)
        assert tok.count(text, **flags) == tok.count(text.encode(), **flags)


@given(batch=st.lists(some_bytes, max_size=12), threads=st.integers(0, 4), flags=flags)
def test_batches(
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


@pytest.mark.parametrize("name", KINDS)
def test_threads(load_fixture: Load, name: str) -> None:
    """One tokenizer in many threads, and batches big enough to be shared out."""
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


# ---- what add_special adds ----


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


# ---- nothing is remembered and nothing is said ----


@given(data=st.lists(some_bytes, min_size=2, max_size=5))
def test_calls_do_not_influence_each_other(load_fixture: Load, data: list[bytes]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("spm", "bpe-gpt2", "ugm"):
            tok = load_fixture(name)
            first = [tok.encode(text) for text in data]
            assert [tok.encode(text) for text in reversed(data)] == first[::-1]


def test_long_texts(load_fixture: Load) -> None:
    """Long words and runs of every class; the reference overflows its stack on some of these."""
    for name in KINDS:
        tok = load_fixture(name)
        for unit in ("a", " ", "\n", ".", "1", "\u6f22", "\u0301", "ab ", "'s", "\x00", "\u3000"):
            text = unit * 40_000
            ids = tok.encode(text, add_special=False)
            if name == "bpe-qwen2":
                assert tok.decode(ids) == text
            assert tok.count(text, add_special=False) == len(ids)


@pytest.mark.parametrize(
    "name", ["bpe-gpt2", "spm", "wpm", "ugm", "rwkv", "plamo2", "bpe-hybriddna"]
)
def test_caches(load_fixture: Load, name: str) -> None:
    """They count what they find, keep to their bound, and never decide an id."""
    tok = ggtok.load(fixture(name))
    assert tok.cache_info() == (0, 0, tok.cache_info().maxsize, 0)
    text = "The quick brown fox jumps over the lazy dog, again and again. " * 30
    expected = tok.encode(text)
    first = tok.cache_info()
    assert tok.encode(text) == expected
    second = tok.cache_info()
    assert second.hits > first.hits
    assert second.misses >= first.misses > 0
    assert 0 < second.currsize <= second.maxsize
    tok.cache_clear()
    assert tok.cache_info() == (0, 0, first.maxsize, 0)
    assert tok.encode(text) == expected


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "wpm", "ugm", "rwkv"])
def test_long_words(name: str) -> None:
    """More than a cache has room for, and some that are seen again before it is full."""
    rng = random.Random(name)
    tok = ggtok.load(fixture(name))
    words = ["".join(rng.choices("abcdefghij\u00e9\u4e2d", k=n % 280)) for n in range(9_000)]
    expected = [tok.encode(word) for word in words]
    assert [tok.encode(word) for word in words + words[:100]] == expected + expected[:100]
    for text in (" ".join(words), " ".join(words[:100] * 10)):
        ids = tok.encode(text)
        assert [tok.encode(text) for _ in range(3)] == [ids] * 3
        tok.cache_clear()
        assert tok.encode(text) == ids
    info = tok.cache_info()
    assert info.currsize <= info.maxsize


def test_pieces_are_learned_while_their_cache_grows(load_fixture: Load) -> None:
    """Of words that are cut, and short enough to be kept with other words."""
    rng = random.Random(1)
    words = ["".join(chr(rng.randrange(0x4E00, 0x9FA0)) for _ in range(9)) for _ in range(3_000)]
    for name in ("bpe-llama3", "bpe-gpt2", "bpe-qwen2"):
        ids = ggtok.load(fixture(name)).encode(" ".join(words), add_special=False)
        tok = load_fixture(name)
        parts = [
            tok.encode(" " * (i > 0) + word, add_special=False) for i, word in enumerate(words)
        ]
        assert ids == [id for part in parts for id in part]


def test_the_same_text_fills_the_cache_once() -> None:
    """The last word, of which no 16 bytes can be read, was learned again each time."""
    tok = ggtok.load(fixture("bpe-llama3"))
    long = " ".join("".join(chr(97 + (i * i + k * k) % 26) for k in range(70)) for i in range(16))
    text = long + " zq"
    assert len(text) > 1024
    held = [tok.cache_info().currsize for _ in range(2) if tok.encode(text)]
    for _ in range(20_000):
        tok.count(text)
    assert tok.cache_info().currsize == held[-1]


@pytest.mark.parametrize("filler", ["\u00e9t\u00e9 ", "\u4f60\u597d\u3002", "a\U0001f600b "])
@pytest.mark.parametrize("size", [40_000, 700_000, 5 << 20])
def test_a_large_str_is_converted_in_parts(load_fixture: Load, filler: str, size: int) -> None:
    tok = load_fixture("bpe-gpt2")
    texts = ["x" + filler * (size // len(filler)) + end for end in ("end", "END", "at last")]
    for text in texts * 2:  # met for the first time, and again, but not in a row
        ids = tok.encode_array(text)
        assert np.array_equal(ids, tok.encode_array(text.encode()))
        for _ in range(3):  # and in a row
            assert tok.count(text) == len(ids)
    assert tok.count("x" * size) == tok.count(b"x" * size)
    at = len(texts[0]) - 10
    for _ in range(3):
        with pytest.raises(UnicodeEncodeError, match=rf"U\+D800.* {at}"):
            tok.count(texts[0][:at] + "\ud800" + texts[0][at:])
    assert tok.decode(tok.encode(texts[1])) == texts[1]


def test_large_strs_on_threads(load_fixture: Load) -> None:
    """They share what is kept between calls."""
    tok = load_fixture("bpe-gpt2")
    texts = [f"{i}\u4f60 caf\u00e9 " * (20_000 + i) for i in range(4)]
    counts = [tok.count(text.encode()) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(8):
            assert list(pool.map(tok.count, texts)) == counts


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3"])
def test_new_words_that_come_again_soon(name: str) -> None:
    """They are merged once, and their ids go to all the places they were left out at."""
    draw = random.Random(7)
    letters = "aetionshrdlu\u00e9\u0436\u4e2d"
    for n_words in (3, 40, 1500):
        words = [
            "".join(draw.choice(letters) for _ in range(draw.choice((1, 3, 7, 15, 16, 17, 40))))
            for _ in range(n_words)
        ]
        order = [draw.choice(words) for _ in range(6 * n_words)]
        ids = ggtok.load(fixture(name)).encode(" ".join(order), add_special=False)
        one = ggtok.load(fixture(name))
        of = {w: one.encode(w, add_special=False) for w in {order[0], *(" " + w for w in words)}}
        spaced = [order[0], *(" " + w for w in order[1:])]
        assert ids == [id for word in spaced for id in of[word]]


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3"])
def test_new_words_that_come_again_where_a_text_ends(name: str) -> None:
    """In the last bytes of a text, words are told from others by less of them. One that was
    left out twice before in a batch got no ids there, if an earlier text had left its traces."""
    draw = random.Random(11)
    tok = ggtok.load(fixture(name))
    fill = "the " * 300
    for _ in range(400):
        words = ["".join(draw.choice("qxzvjk") for _ in range(draw.choice((3, 5)))) for _ in "ab"]
        order = [draw.choice(words) for _ in range(draw.randrange(1, 5))]
        text = fill + " ".join([*order, *["the"] * draw.randrange(7), draw.choice(words)])
        ids = tok.encode(text, add_special=False)
        assert tok.decode(ids) == text
        assert tok.encode(text, add_special=False) == ids  # from the cache
