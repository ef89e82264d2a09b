"""Decoding removes the spaces before punctuation that llama.cpp removes, or keeps all spaces."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import numpy as np
import pytest

import ggtok
from tests.chat.llamaserver import Servers
from tests.support.llamacpp import LlamaCpp
from tests.support.samples import times
from tests.support.vocabularies import fixture, fixture_names, real

Load = Callable[[str], ggtok.Tokenizer]
NEAR = " '?!.,smrevtdl\n\0"
# Real BPE vocabularies for which llama_detokenize removes spaces.
CLEANED = "llama-bpe gemma-4 gpt-2 falcon starcoder mpt refact aquila gpt-neox".split()
CODE = "ls ./x ? ok !"
PLAIN = "{% for m in messages %}{{ m.content }}{% endfor %}"


@pytest.mark.parametrize("name", ["bpe-gpt2", "bpe-llama3", "wpm"])
def test_spaces_before_punctuation_are_removed_as_in_llama_cpp(name: str, llama: LlamaCpp) -> None:
    vocab, tok = llama.load(fixture(name)), ggtok.load(fixture(name))
    rng = random.Random(name)
    lists = [
        tok.encode("x 're x 've x 's x 'm x 't x 'd x 'll e 'r e 'rx e 'vx", add_special=False)
    ]
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


@pytest.mark.parametrize("name", ["bpe-qwen2", "spm", "ugm", "rwkv"])
def test_any_ids_decode_as_in_llama_cpp(name: str, llama: LlamaCpp) -> None:
    vocab, tok = llama.load(fixture(name)), ggtok.load(fixture(name))
    rng = random.Random(name)
    lists = [rng.choices(range(tok.n_tokens), k=rng.randrange(200)) for _ in range(100)]
    for flags in (False, True), (True, True), (False, False):
        for ids, text in zip(lists, vocab.detokenize_many(lists, *flags), strict=True):
            assert tok.decode_bytes(ids, remove_special=flags[0], unparse_special=flags[1]) == text


def test_the_first_id_that_is_no_token_is_named() -> None:
    tok = ggtok.load(fixture("bpe-qwen2"))
    for at in (0, 1, 31, 255, 256, 257, 700):
        for bad in (-1, tok.n_tokens, 2**31 - 1, -(2**31)):
            ids = [5] * 900
            ids[at] = ids[800] = bad
            with pytest.raises(ggtok.TokenIdError, match=rf"ids\[{at}\] is {bad}"):
                tok.decode(ids)


# ---- spaces that are kept ----


def test_kept_spaces_are_those_of_the_pieces(load_fixture: Load) -> None:
    rng = random.Random(2)
    for name in fixture_names():
        tok = load_fixture(name)
        if tok.vocab_type == "NONE":
            continue
        ids = rng.choices(range(tok.n_tokens), k=300)
        for special in (True, False):
            pieces = b"".join(tok.token_to_piece(id, special=special) for id in ids)
            kept = {"unparse_special": special, "clean_spaces": False}
            assert tok.decode_bytes(ids, **kept) == pieces
            assert tok.decode_bytes(np.array(ids), **kept) == pieces
            stream = tok.stream_decoder(unparse_special=special)
            text = "".join(map(stream.feed, ids)) + stream.finish()
            assert text == pieces.decode("utf-8", "replace") == tok.decode(ids, **kept)


def test_spaces_are_removed_where_the_caller_says_so(load_fixture: Load) -> None:
    cleans, keeps, prefixes = map(load_fixture, ("bpe-llama3", "bpe-qwen2", "spm"))
    for tok, spaces, text in (
        (cleans, None, "ls./x? ok!"),
        (cleans, True, "ls./x? ok!"),
        (cleans, False, CODE),
        (keeps, None, CODE),
        (keeps, True, "ls./x? ok!"),
        (keeps, False, CODE),
        (prefixes, None, CODE),
        (prefixes, True, "ls./x? ok!"),
        (prefixes, False, " " + CODE),
    ):
        ids = tok.encode(CODE, add_special=False)
        assert tok.decode(ids, clean_spaces=spaces) == text
        assert tok.decode_batch([ids, ids], clean_spaces=spaces) == [text, text]
        stream = tok.stream_decoder(clean_spaces=spaces)
        assert stream.feed(ids) + stream.finish() == text


@pytest.mark.parametrize("name", CLEANED)
def test_real_vocabularies_that_remove_spaces(name: str) -> None:
    tok = ggtok.load(real(name))
    ids = tok.encode(CODE, add_special=False)
    assert tok.decode(ids) == "ls./x? ok!"
    assert tok.decode(ids, clean_spaces=False) == CODE
    stream = tok.stream_decoder(tok.encode("$"))
    assert "".join(map(stream.feed, ids)) + stream.finish() == CODE


@pytest.mark.full
@pytest.mark.parametrize("name", ["bpe-llama3", "spm"])
def test_the_server_keeps_spaces(name: str, llama: LlamaCpp, load_fixture: Load) -> None:
    tok = load_fixture(name)
    with Servers(fixture(name)) as servers, servers.start(PLAIN) as server:
        for text in (CODE, " it 's the end , is n't it ?", "a\n b .\u00e9 !"):
            request = {
                "prompt": "the",
                "grammar": f"root ::= {json.dumps(text, ensure_ascii=False)}",
                "n_predict": 100,
                "return_tokens": True,
            }
            status, answer = server.post("/completion", request)
            assert status == 200, answer
            assert answer["content"] == text
            prompt = server.ids("the")
            options = {"unparse_special": False, "stop_at_eog": True}
            stream = tok.stream_decoder(prompt, **options)
            assert "".join(map(stream.feed, answer["tokens"])) + stream.finish() == text
            for ids in (answer["tokens"], tok.encode(text), prompt):
                status, shown = server.post("/detokenize", {"tokens": ids})
                assert status == 200 and shown["content"] == tok.decode(ids, clean_spaces=False)
