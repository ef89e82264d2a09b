"""Spaces that decoding takes away before punctuation, in every order and far apart."""

from __future__ import annotations

import random

import pytest

import ggtok
from tests.support.llamacpp import LlamaCpp
from tests.support.samples import times
from tests.support.vocabularies import fixture

NEAR = " '?!.,smrevtdl\n\0"


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3", "wpm"])
def test_before_punctuation(name: str, llama: LlamaCpp) -> None:
    vocab, tok = llama.load(fixture(name)), ggtok.load(fixture(name))
    rng = random.Random(name)
    lists = []
    for _ in range(times(600, of=6000)):
        some = rng.sample(NEAR, rng.randrange(2, 7))
        stretches = rng.randrange(1, 12)
        text = "".join(
            "x" * rng.choice((0, 0, 1, 30, 31, 32, 33, 100))
            + "".join(rng.choice(some) for _ in range(rng.randrange(5)))
            for _ in range(stretches)
        )
        lists.append(tok.encode(text, add_special=False))
    for flags in (False, True), (True, True), (False, False):
        theirs = vocab.detokenize_many(lists, *flags)
        for ids, text in zip(lists, theirs, strict=True):
            assert tok.decode_bytes(ids, remove_special=flags[0], unparse_special=flags[1]) == text
    pieces = tok.vocab_bytes("keep")
    joined = [b"".join(pieces[id] for id in ids) for ids in lists]
    assert sum(a != b for a, b in zip(joined, theirs, strict=True)) > len(lists) / 20


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
@pytest.mark.parametrize("name", ["bpe-qwen2", "spm", "ugm", "rwkv"])
def test_any_ids(name: str, llama: LlamaCpp) -> None:
    vocab, tok = llama.load(fixture(name)), ggtok.load(fixture(name))
    rng = random.Random(name)
    lists = [rng.choices(range(tok.n_tokens), k=rng.randrange(200)) for _ in range(100)]
    for flags in (False, True), (True, True), (False, False):
        for ids, text in zip(lists, vocab.detokenize_many(lists, *flags), strict=True):
            assert tok.decode_bytes(ids, remove_special=flags[0], unparse_special=flags[1]) == text


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_the_first_id_that_is_no_token_is_named() -> None:
    tok = ggtok.load(fixture("bpe-qwen2"))
    for at in (0, 1, 31, 255, 256, 257, 700):
        for bad in (-1, tok.n_tokens, 2**31 - 1, -(2**31)):
            ids = [5] * 900
            ids[at] = ids[800] = bad
            with pytest.raises(ggtok.TokenIdError, match=rf"ids\[{at}\] is {bad}"):
                tok.decode(ids)
