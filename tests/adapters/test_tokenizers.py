"""Tests that tokenizers_tokenizer has the interface of the library tokenizers, and returns the same
results (if that library is installed)."""

from __future__ import annotations

import itertools
import json
import pickle
from typing import Any

import pytest

import ggtok
from ggtok import adapters
from ggtok.vocabularies.export.to_tokenizer_json import exact_tokenizer_json
from tests.adapters.calls import OTHERS, TEXTS
from tests.support.full import Lazy
from tests.support.vocabularies import fixture, fixture_names, real

tokenizers = Lazy("tokenizers")
TYPED = [name for name in fixture_names() if name not in ("none", "big-endian")]
SPECIAL = "Zoë <|eot_id|></s>[SEP] 日本"


def load_pair(name: str) -> tuple[ggtok.Tokenizer, adapters.TokenizersTokenizer]:
    tok = ggtok.load(fixture(name))
    return tok, adapters.tokenizers_tokenizer(tok)


@pytest.mark.parametrize("name", TYPED)
def test_ids_and_offsets_equal_ggtoks(name: str) -> None:
    tok, own = load_pair(name)
    for text, parse in itertools.product([*TEXTS, SPECIAL], (True, False)):
        own.encode_special_tokens = not parse
        found = own.encode(text)
        ids, spans = tok.encode_with_offsets(text, parse_special=parse, unit="char")
        assert found.ids == ids
        before, after = own._core.before, own._core.after
        middle = slice(len(before), len(ids) - len(after))
        assert found.offsets[middle] == list(map(tuple, spans.tolist()))[middle]
        inner = range(middle.start, middle.stop)
        assert found.special_tokens_mask == [int(i not in inner) for i in range(len(ids))]
        assert found.attention_mask == [1] * len(ids)
        plain = own.encode(text, add_special_tokens=False)
        assert plain.ids == tok.encode(text, add_special=False, parse_special=parse)
        assert [own.token_to_id(token) for token in plain.tokens] == plain.ids
        assert len(plain.word_ids) == len(plain) == len(plain.ids)
        assert plain.word_ids == sorted(plain.word_ids)  # type: ignore[type-var]
    both = own.encode_batch(TEXTS)
    assert [one.ids for one in both] == tok.encode_batch(TEXTS, parse_special=False)
    assert own.num_special_tokens_to_add(False) == len(tok.encode(""))


def test_tokens_map_to_ids_and_back() -> None:
    tok, own = load_pair("bpe-llama3")
    assert own.get_vocab_size() == len(own.get_vocab()) == tok.n_tokens
    assert own.token_to_id("<|eot_id|>") == tok.eot_id
    assert own.token_to_id("no such token") is None
    assert own.id_to_token(tok.n_tokens) is own.id_to_token(-1) is None
    assert own.id_to_token(0) == "!"
    assert repr(own).startswith("<ggtok.adapters.TokenizersTokenizer of <ggtok.Tokenizer ")
    unpickled = pickle.loads(pickle.dumps(own))
    assert unpickled.encode(SPECIAL).ids == own.encode(SPECIAL).ids
    assert repr(unpickled.encode("Hello")) == f"Encoding(num_tokens={len(tok.encode('Hello'))})"


def test_decode_skips_special_and_invalid_ids() -> None:
    tok, own = load_pair("bpe-llama3")
    ids = own.encode(SPECIAL).ids
    assert own.decode(ids) == SPECIAL.replace("<|eot_id|>", "")
    assert own.decode([*ids, tok.n_tokens, -1], skip_special_tokens=False) == tok.decode(ids)
    assert own.decode_batch([ids, []]) == [own.decode(ids), ""]
    tok, own = load_pair("spm")
    assert own.decode(own.encode(" a b").ids) == " a b"
    tok, own = load_pair("wpm")
    assert own.decode(own.encode("it 's").ids, skip_special_tokens=False) == tok.decode(
        tok.encode("it 's")
    )


def test_positions_map_between_tokens_characters_and_words() -> None:
    """The methods that map between tokens, characters and words work for a pair of texts."""
    _, own = load_pair("wpm")
    found = own.encode("it is", "so it")
    sequences = found.sequence_ids
    assert found.n_sequences == 2
    assert found.type_ids == [0] * sequences.index(1) + [1] * (len(found) - sequences.index(1))
    first, second = sequences.index(0), sequences.index(1)
    assert found.token_to_sequence(second) == 1
    assert found.token_to_sequence(0) is found.token_to_sequence(len(found)) is None
    assert found.token_to_chars(first) == found.offsets[first]
    assert found.token_to_chars(0) is found.token_to_word(0) is None
    assert found.char_to_token(0) == first
    assert found.char_to_token(0, 1) == second
    assert found.char_to_token(2) is None  # a space that WPM drops
    assert found.token_to_word(second) == found.char_to_word(0, 1) == 0
    assert found.char_to_word(99) is found.word_to_tokens(99) is found.word_to_chars(99) is None
    assert found.word_to_tokens(1) == (found.char_to_token(3), found.char_to_token(4) + 1)  # type: ignore[operator]
    assert found.word_to_chars(1) == (3, 5)


def test_truncation_and_padding_are_applied() -> None:
    tok, own = load_pair("bpe-llama3")
    text = TEXTS[2]
    assert own.truncation is own.padding is None
    own.enable_truncation(8, stride=2)
    assert own.truncation == {
        "max_length": 8,
        "stride": 2,
        "strategy": "longest_first",
        "direction": "right",
    }
    cut = own.encode(text)
    whole = tok.encode(text)
    assert cut.ids == whole[:8]
    assert cut.overflowing[0].ids == whole[:1] + whole[6:13]
    own.enable_padding(pad_id=tok.eot_id or 0, pad_token="<|eot_id|>", length=10)
    assert own.padding == {
        "length": 10,
        "direction": "right",
        "pad_id": tok.eot_id,
        "pad_type_id": 0,
        "pad_token": "<|eot_id|>",
        "pad_to_multiple_of": None,
    }
    padded = own.encode(text)
    assert padded.ids == [*cut.ids, tok.eot_id, tok.eot_id]
    assert padded.tokens[-1] == "<|eot_id|>"
    assert padded.word_ids[-1] is None
    assert len(padded.overflowing[-1]) == 10
    own.no_padding()
    own.no_truncation()
    assert own.encode(text).ids == whole
    with pytest.raises(ggtok.InvalidValueError, match="stride is 8, but max_length only 8"):
        own.enable_truncation(8, stride=8)
    with pytest.raises(ggtok.InvalidValueError, match="strategy must be one of longest_first"):
        own.enable_truncation(8, strategy="last")
    with pytest.raises(ggtok.InvalidValueError, match="direction must be one of left, right"):
        own.enable_padding(direction="up")
    own.enable_truncation(4, strategy="only_second")
    with pytest.raises(ggtok.InvalidValueError, match="needs a pair of texts"):
        own.encode(text)
    with pytest.raises(ggtok.InvalidValueError, match="the second text has only"):
        own.encode(text, "a")
    own.enable_truncation(4, stride=3)
    with pytest.raises(ggtok.InvalidValueError, match="less than the 3 tokens"):
        own.encode(text)


@pytest.mark.parametrize("item", [5, b"bytes", ("a", "b", "c"), None])
def test_wrong_items_raise_errors(item: Any) -> None:
    _, own = load_pair("bpe-llama3")
    with pytest.raises(ggtok.InvalidTypeError, match="each item must be a text or a pair"):
        own.encode_batch([item])
    with pytest.raises(ggtok.InvalidTypeError, match="each item must be a list of words"):
        own.encode_batch(["text"], is_pretokenized=True)


def test_to_str_returns_the_exported_json() -> None:
    _, own = load_pair("bpe-llama3")
    assert json.loads(own.to_str()) == json.loads(own.to_str(pretty=True))
    _, own = load_pair("rwkv")
    with pytest.raises(ggtok.VocabError, match="model 'rwkv' isn't supported"):
        own.to_str()
    _, own = load_pair("ugm")
    with pytest.raises(ggtok.VocabError, match="ids of texts with repeated"):
        own.to_str()
    with open(fixture("bpe-llama3"), "rb") as file:
        from_memory = ggtok.load(bytearray(file.read()))
    with pytest.raises(ggtok.VocabError, match="loaded from memory other than bytes"):
        adapters.tokenizers_tokenizer(from_memory).to_str()


# ---- comparison with the real library ----

METHODS = (
    "ids type_ids tokens offsets attention_mask special_tokens_mask word_ids sequence_ids".split()
)


def values(encoding: Any, names: list[str]) -> Any:
    """Returns the attributes of an encoding and of its overflowing encodings. (In tokenizers, each
    of these has a list of overflowing encodings, too, which is ignored.)"""
    return [[getattr(e, name) for name in names] for e in (encoding, *encoding.overflowing)]


@pytest.mark.full
@pytest.mark.parametrize("name", ["bpe-llama3", "bpe-qwen2", "bpe-gpt2", "wpm", "llama-spm"])
def test_results_equal_tokenizers(name: str) -> None:
    pytest.importorskip("tokenizers")
    path = fixture(name) if name in TYPED else real(name)
    tok = ggtok.load(path)
    own = adapters.tokenizers_tokenizer(tok)
    theirs = tokenizers.Tokenizer.from_str(own.to_str())
    pad = {"pad_id": 1, "pad_token": own.id_to_token(1), "pad_type_id": 1}
    names = METHODS
    if tok.vocab_type == "WPM":  # tokenizers' normalizer shifts offsets: docs/converting.md
        names = [name for name in names if name != "offsets"]
    if tok.vocab_type == "SPM":
        # In tokenizers, the whole text is one word, and an inserted space has an offset.
        names = [name for name in names if name not in ("offsets", "word_ids")]
    truncations = [None, {"max_length": 9, "stride": 2}, {"max_length": 9, "direction": "left"}]
    pads = [None, pad, {**pad, "length": 12, "direction": "left"}, {**pad, "pad_to_multiple_of": 8}]
    pairs = list(zip(TEXTS, OTHERS, strict=True))
    words: list[Any] = [text.split() for text in TEXTS if text]
    for cut, padding, add, split in itertools.product(
        truncations, pads, (True, False), (False, True)
    ):
        for each in own, theirs:
            each.no_truncation() if cut is None else each.enable_truncation(**cut)
            each.no_padding() if padding is None else each.enable_padding(**padding)
            each.encode_special_tokens = split
        for batch, pretokenized in ([*TEXTS, SPECIAL], False), (pairs, False), (words, True):
            options = {"add_special_tokens": add, "is_pretokenized": pretokenized}
            for a, b in zip(
                own.encode_batch(batch, **options),
                theirs.encode_batch(batch, **options),
                strict=True,
            ):
                # tokenizers loses sequence_ids when it truncates and, without special tokens, when
                # it pads.
                compared = [
                    name for name in names if name != "sequence_ids" or not (cut or padding)
                ]
                assert values(a, compared) == values(b, compared)
    own.no_padding(), theirs.no_padding(), own.no_truncation(), theirs.no_truncation()
    for text, pair in pairs:
        a, b = own.encode(text, pair), theirs.encode(text, pair)
        positions = range(-1, max(len(a), len(text)) + 2)
        if "offsets" in names:
            for at, sequence in itertools.product(positions, (0, 1)):
                if at >= 0:
                    assert a.char_to_token(at, sequence) == b.char_to_token(at, sequence)
                    assert a.token_to_sequence(at) == b.token_to_sequence(at)
                    assert a.token_to_chars(at) == b.token_to_chars(at)
                    assert a.char_to_word(at, sequence) == b.char_to_word(at, sequence)
                    assert a.word_to_tokens(at, sequence) == b.word_to_tokens(at, sequence)
                    assert a.word_to_chars(at, sequence) == b.word_to_chars(at, sequence)
        for skip in True, False:
            assert own.decode(a.ids, skip) == theirs.decode(a.ids, skip)
    assert own.get_vocab() == theirs.get_vocab()
    assert own.get_vocab_size() == theirs.get_vocab_size()
    for pair in True, False:
        assert own.num_special_tokens_to_add(pair) == theirs.num_special_tokens_to_add(pair)


def test_exact_json_needs_no_other_library() -> None:
    assert exact_tokenizer_json(ggtok.vocabulary(fixture("bpe-llama3"))).startswith(b"{")
