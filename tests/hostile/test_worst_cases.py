"""Long, repetitive texts: nothing is lost, and work grows linearly.

Claim pretok.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ggtok
from ggtok import TokenAttr
from ggtok.vocabularies.pre_rows import PRE_ROWS
from tests.support.patch import GGUF, add_tokens
from tests.support.samples import times
from tests.support.vocabularies import fixture, fixture_names
from tests.support.work import LINEAR, Measure

Load = Callable[[str], ggtok.Tokenizer]

NORMAL, CONTROL = 1, 3
SIZE = times(200_000, of=400_000)  # size of a text, in bytes
SHORT, LONG = 5_000, 20_000  # sizes, in bytes, of texts whose work is compared

UNITS = {
    "letter": "a",
    "capitals": "A",
    "spaces": " ",
    "newlines": "\n",
    "digits": "7",
    "dots": ".",
    "Han": "\u6f22",
    "marks": "\u0301",
    "contractions": "'s",
    "blanks and newlines": "  \n \n",
    "spaces, then a letter": " ",
    "newlines, then a letter": "\n",
    "capitals, then a letter": "A",
    "mixed": "The cat's 1234 \u6f22\u5b57 \u0301\u00e9...\n\n  x HTTPServer\t",
}

OTHERS = ("spm", "spm-bytes", "wpm", "ugm", "ugm-plain", "rwkv", "plamo2", "bpe-hybriddna")


def text_of(kind: str, size: int) -> bytes:
    unit = UNITS[kind].encode()
    return unit * (size // len(unit)) + b"a" * kind.endswith("then a letter")


FIRST_OF_CHAIN = {chain: name for name, (chain, _) in reversed(PRE_ROWS.items())}


def base_of(pre: str) -> str:
    """Returns a fixture that has a token for each byte that the pre-tokenizer keeps."""
    if pre in ("mmbert", "whitespace"):
        return f"bpe-{pre}"
    raw = ("gemma4", "granite-embed-multi-311m", "sarvam-moe")
    return "bpe-gemma4" if pre in raw else "bpe-gpt2"


@cache
def with_pre(pre: str) -> bytes:
    gguf = GGUF.read(fixture(base_of(pre)))
    gguf.set("tokenizer.ggml.pre", pre)
    return gguf.dump()


def check(tok: ggtok.Tokenizer, size: int, lossless: bool) -> None:
    lengths = np.array([len(tok.token_to_piece(id)) for id in range(tok.n_tokens)])
    for kind in UNITS:
        text = text_of(kind, size)
        ids = tok.encode_array(text, add_special=False)
        assert len(ids) <= len(text) + text.count(b"\n") + 1, kind
        if lossless:
            assert lengths[ids].sum() == len(text), kind
            start = b"".join(map(tok.token_to_piece, ids[:500]))
            assert text.startswith(start), kind


@pytest.mark.parametrize("pre", PRE_ROWS)
def test_each_pre_tokenizer_keeps_long_texts(pre: str) -> None:
    size = SIZE if FIRST_OF_CHAIN[PRE_ROWS[pre][0]] == pre else SIZE // 20
    # `mmbert` adds a U+2581 before each line; `whitespace` drops white space.
    check(ggtok.load(with_pre(pre)), size, lossless=pre not in ("mmbert", "whitespace"))


@pytest.mark.parametrize("name", OTHERS)
def test_other_vocabularies_encode_long_texts(name: str, load_fixture: Load) -> None:
    check(load_fixture(name), SIZE, lossless=False)


# ---- growth ----


def check_growth(work: Measure, gguf: bytes | Path) -> None:
    texts = [text_of(kind, size) for size in (SHORT, LONG) for kind in UNITS]
    steps = work(gguf, *texts).encode
    pairs = zip(steps[: len(UNITS)], steps[len(UNITS) :], strict=True)
    grown = {kind: long / short for kind, (short, long) in zip(UNITS, pairs, strict=True)}
    assert max(grown.values()) < LINEAR, grown


@pytest.mark.parametrize("pre", FIRST_OF_CHAIN.values())
def test_work_of_a_pre_tokenizer_grows_linearly(pre: str, work: Measure) -> None:
    """Only one name per chain is tested, because all names of a chain run the same code."""
    check_growth(work, with_pre(pre))


@pytest.mark.parametrize("name", OTHERS)
def test_work_of_other_vocabularies_grows_linearly(name: str, work: Measure) -> None:
    check_growth(work, fixture(name))


# ---- long tokens ----


def with_long_token(name: str, size: int) -> bytes:
    """Returns a fixture with a token that a long text of "a" matches, at every position, except for
    the last byte of the token."""
    longs = [b"a" * size + b"b", b"a" * (size // 2)]
    if name.startswith("wpm"):
        longs.append("\u2581".encode() + longs[0])
    return with_tokens(name, longs)


@pytest.mark.parametrize("name", ["rwkv", "wpm", "ugm", "ugm-plain", "plamo2"])
def test_work_with_a_long_token_grows_linearly(name: str, work: Measure) -> None:
    """A simple trie lookup at each position would take as many steps as the token has bytes."""
    steps = []
    for size in (SHORT, LONG):
        text = b"a" * (size - 1)
        done = work(with_long_token(name, size), text, text + b"ab")
        steps.append(done.encode[0])
        assert done.n_ids[1] <= 2, name  # the token; in some types, a space first
    assert steps[1] < LINEAR * steps[0], steps


def test_dropped_words_cost_no_work_for_offsets(work: Measure) -> None:
    """A regression test: each dropped word was matched with all ids of the long word after it."""
    texts = [(b"\x01 " * dropped + b"qj" * 500 + b" ") * 30 for dropped in (50, 400)]
    few, many = work(fixture("wpm"), *texts, options="-s").encode
    assert many < 2 * few, (few, many)


def test_a_token_of_unknown_bytes_is_not_quadratic(tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    tokens = gguf.strings("tokenizer.ggml.tokens")
    # A space isn't in the byte map, so for each space, the piece contains the token's whole text.
    tokens[5] = b" " * 200_000
    gguf.set("tokenizer.ggml.tokens", tokens)
    gguf.write(tmp_path / "quadratic.gguf")
    with pytest.raises(ggtok.VocabError, match="token 5 prints as far too many bytes"):
        ggtok.load(tmp_path / "quadratic.gguf")


# ---- tokens with malformed UTF-8 ----


def with_tokens(name: str, tokens: list[bytes]) -> bytes:
    gguf = GGUF.read(fixture(name))
    add_tokens(gguf, tokens, NORMAL)
    return gguf.dump()


@pytest.mark.parametrize("token", [b"\x80%09d\xff", b"%09d\x80"])
def test_work_with_broken_tokens_grows_linearly(token: bytes, work: Measure) -> None:
    """Each token adds a link to PLaMo's automaton; lookups don't search the links one by one."""
    text = b"123 \xff\x80 456" * 500
    few, many = (
        work(with_tokens("plamo2", [token % i for i in range(n)]), text) for n in (2_000, 8_000)
    )
    assert many.load < LINEAR * few.load, (few, many)
    assert many.encode[0] < 2 * few.encode[0], (few, many)


def test_a_link_to_a_long_state_costs_no_work(work: Measure) -> None:
    """The link leads to a state whose chain of failure links is as long as the token."""
    short, long = (
        work(with_tokens("plamo2", [b"a" * size, b"a" * size + b"\x80"]), b"ba" * 5_000).encode[0]
        for size in (SHORT, LONG)
    )
    assert long < 2 * short, (short, long)


# ---- special tokens ----


def each_once(size: int) -> tuple[list[bytes], bytes]:
    tokens = [b"<|%06d|>" % i for i in range(size // 10)]
    return tokens, b"".join(sorted(tokens, key=lambda token: token[::-1]))


def nested(size: int) -> tuple[list[bytes], bytes]:
    """Returns tokens, each of which is a suffix of the next one, and a text."""
    tokens = [b"a" * i for i in range(20, 220)]
    return tokens, tokens[-1][1:] + b"b" + b"a" * size


def interlocked(size: int) -> tuple[list[bytes], bytes]:
    """Returns tokens that overlap in the text, so that each match decides which others are
    possible, and the text."""
    tokens = [part * i + b"b" for i in range(1, math.isqrt(size) // 2) for part in (b"ab", b"ba")]
    return tokens, b"".join(token[i % len(token) :] for i, token in enumerate(tokens * 2))[:size]


def blanks(size: int) -> tuple[list[bytes], bytes]:
    """Returns tokens that strip white space and also begin with white space, and a text."""
    tokens = [b" " * (i // 2) + b"x" * (i % 2) for i in range(2, 2 * math.isqrt(size))]
    return tokens, b"".join(tokens)[:size]


@pytest.mark.parametrize("trusted", [False, True])
@pytest.mark.parametrize("make", [each_once, nested, interlocked, blanks])
def test_work_with_many_special_tokens_grows_linearly(
    make: Callable[[int], tuple[list[bytes], bytes]], trusted: bool, work: Measure
) -> None:
    """llama.cpp's rule would scan the text once for each special token."""
    steps = []
    for size in (2 * SHORT, 2 * LONG):
        gguf = GGUF.read(fixture("bpe-gpt2"))
        tokens, text = make(size)
        add_tokens(gguf, tokens, CONTROL)
        if make is blanks:
            add_tokens(gguf, ["<unk>", "<s>", "</s>"], CONTROL)
            gguf.set("general.name", "phi-3")
        data = gguf.dump()
        steps.append(work(data, text, options="-t" if trusted else "-p").encode[0])
        tok = ggtok.load(data)
        ids = tok.encode(text, add_special=False, parse_special=True)
        assert max(ids) >= tok.n_tokens - len(tokens), "none of them was found"
    assert steps[1] < LINEAR * steps[0], steps


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_each_special_token_in_a_row_is_found(name: str, load_fixture: Load) -> None:
    n = 100_000
    tok = load_fixture(name)
    marked = TokenAttr.CONTROL | TokenAttr.USER_DEFINED
    special = [id for id in range(tok.n_tokens) if tok.token_attr(id) & marked]
    texts = {id: tok.token_text(id) for id in special}
    alone = [
        id
        for id, text in texts.items()
        if text and not any(other in text * 2 for other in texts.values() if other != text)
    ]
    for id in alone[:3]:
        ids = tok.encode_array(texts[id] * n, add_special=False, parse_special=True)
        assert np.count_nonzero(ids == id) == n
    together = b"".join(texts.values())
    ids = tok.encode_array(together * (n // max(len(texts), 1)), parse_special=True)
    assert len(alone) == 0 or len(ids) >= n // 2
