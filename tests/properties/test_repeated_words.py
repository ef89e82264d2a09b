"""Words that are cached, missed, repeated within a batch, or stored while a cache grows.

Claim misses.1, Claim misses.2, Claim misses.3, Claim caches.2.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

import ggtok
from tests.support.vocabularies import fixture

Load = Callable[[str], ggtok.Tokenizer]


@pytest.mark.parametrize(
    "name", ["bpe-gpt2", "spm", "wpm", "ugm", "rwkv", "plamo2", "bpe-hybriddna"]
)
def test_caches_never_change_an_id(name: str) -> None:
    """Caches count their hits, stay within their bound, and never change an id."""
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
def test_more_long_words_than_fit_in_a_cache(name: str) -> None:
    """There are more words than fit in a cache; some are repeated before it is full."""
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


def test_pieces_are_stored_while_their_cache_grows(load_fixture: Load) -> None:
    """The text's words are cut into pieces that are short enough for the piece cache."""
    rng = random.Random(1)
    words = ["".join(chr(rng.randrange(0x4E00, 0x9FA0)) for _ in range(9)) for _ in range(3_000)]
    for name in ("bpe-llama3", "bpe-gpt2", "bpe-qwen2"):
        ids = ggtok.load(fixture(name)).encode(" ".join(words), add_special=False)
        tok = load_fixture(name)
        parts = [
            tok.encode(" " * (i > 0) + word, add_special=False) for i, word in enumerate(words)
        ]
        assert ids == [id for part in parts for id in part]


def test_a_repeated_text_fills_the_cache_once() -> None:
    """A regression test: the last word, after which fewer than 16 bytes are readable, was stored
    again each time."""
    tok = ggtok.load(fixture("bpe-llama3"))
    long = " ".join("".join(chr(97 + (i * i + k * k) % 26) for k in range(70)) for i in range(16))
    text = long + " zq"
    assert len(text) > 1024
    held = [tok.cache_info().currsize for _ in range(2) if tok.encode(text)]
    for _ in range(20_000):
        tok.count(text)
    assert tok.cache_info().currsize == held[-1]


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3", "bpe-gemma4"])
def test_duplicates_in_a_batch_get_ids(name: str) -> None:
    """Equal words that are deferred are merged once, and every occurrence gets their ids."""
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
        ids_of = {
            w: one.encode(w, add_special=False) for w in {order[0], *(" " + w for w in words)}
        }
        spaced = [order[0], *(" " + w for w in order[1:])]
        assert ids == [id for word in spaced for id in ids_of[word]]


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3", "bpe-gemma4"])
def test_duplicates_where_a_text_ends_get_ids(name: str) -> None:
    """A regression test: near the end of a text, where words are compared by fewer bytes, a word
    that had been deferred twice in the batch got no ids if an earlier text had left data behind."""
    draw = random.Random(11)
    tok = ggtok.load(fixture(name))
    fill = "the " * 300
    for _ in range(400):
        words = ["".join(draw.choice("qxzvjk") for _ in range(draw.choice((3, 5)))) for _ in "ab"]
        order = [draw.choice(words) for _ in range(draw.randrange(1, 5))]
        text = fill + " ".join([*order, *["the"] * draw.randrange(7), draw.choice(words)])
        ids = tok.encode(text, add_special=False)
        assert tok.decode(ids) == text
        assert tok.encode(text, add_special=False) == ids  # the word is now cached


@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-gpt2", "spm"])
def test_words_that_are_too_long_for_the_tables(name: str) -> None:
    """Up to eight are kept, whatever their lengths."""
    rng = random.Random(name)
    lengths = [255, 256, 256, 257, 300, 300, 1000, 10_000, 10_000, 70_000, 300, 20_000]
    words = ["".join(rng.choices("abcdefghijklmnop", k=n)) for n in lengths]
    words += [words[7][:-1] + "!", "=" * 10_000, "-" * 10_000, "a" * 3_000_000]

    def alone(text: str) -> list[int]:
        return ggtok.load(fixture(name)).encode(text, add_special=False)

    expected = [alone(word) for word in words]
    tok = ggtok.load(fixture(name))
    for _ in range(60):
        i = min(rng.randrange(len(words)), rng.randrange(len(words)))
        assert tok.encode(words[i], add_special=False) == expected[i]
        misses = tok.cache_info().misses
        assert tok.encode(words[i], add_special=False) == expected[i]
        if 300 <= len(words[i]) <= 20_000:
            assert tok.cache_info().misses == misses
    lines = ["new words, " + words[7], words[13], words[14], words[7], "new words " + words[13]]
    if name != "spm":  # where lines depend on each other
        whole = [id for line in lines for id in alone(line + "\n")]
        assert tok.encode("\n".join([*lines, ""]), add_special=False) == whole


@pytest.mark.parametrize("name", ["bpe-llama3", "spm"])
def test_long_words_take_a_bounded_amount(name: str) -> None:
    words = [f"{letter * 400_000}{i}" for i, letter in enumerate("abcdefghijklmnop" * 2)]
    tok = ggtok.load(fixture(name))
    before = tok.cache_info().currsize
    for word in words:
        tok.encode(word)
        assert tok.cache_info().currsize <= before + (14 << 20)  # 10 MB, and the tables
        assert tok.cache_info().currsize <= tok.cache_info().maxsize
