"""Keys of newer builds of llama.cpp: none is ignored in silence."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from gguf.constants import Keys

import ggtok
from ggtok.native import knows_key
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

GGML = "tokenizer.ggml."
# All keys in llama.cpp b11739's library (strings "tokenizer.ggml.*"); b11549 lacks normalizer.nfc.
B11739 = [
    GGML + name
    for name in (
        "model pre tokens token_type token_type_count scores merges bos_token_id eos_token_id "
        "eot_token_id eom_token_id unknown_token_id seperator_token_id padding_token_id "
        "cls_token_id mask_token_id add_bos_token add_eos_token add_sep_token add_space_prefix "
        "remove_extra_whitespaces precompiled_charsmap normalizer.lowercase "
        "normalizer.strip_accents normalizer.nfc fim_pre_token_id fim_suf_token_id "
        "fim_mid_token_id fim_pad_token_id fim_rep_token_id fim_sep_token_id suppress_tokens "
        "prefix_token_id suffix_token_id middle_token_id"
    ).split()
]
# Keys of b12211, and others that no build reads.
UNKNOWN = ["metaspace.prepend_scheme", "dna_auto_tags", "clean_spaces", "escape_whitespaces", "x"]


def warnings_of(gguf: GGUF) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ggtok.load(gguf.dump())
    return [str(warning.message) for warning in caught]


def unknown_keys(gguf: GGUF) -> list[str]:
    return [text for text in warnings_of(gguf) if "doesn't know" in text]


def test_all_keys_of_llama_cpp_and_gguf_are_known() -> None:
    named = [key for key in vars(Keys.Tokenizer).values() if str(key).startswith(GGML)]
    assert len(named) > 25
    for key in [*B11739, *named]:
        assert knows_key(key), key


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "wpm", "ugm", "rwkv", "plamo2", "test"])
def test_a_key_of_another_type_of_vocabulary_warns_nobody(name: str) -> None:
    gguf = GGUF.read(fixture(name))
    gguf.set(GGML + "token_type_count", 2, "u32")
    gguf.set(GGML + "cls_token_id", 1, "u32")
    gguf.set(GGML + "normalizer.nfc", False)
    gguf.set("tokenizer.huggingface.json", "{}")
    gguf.set("tokenizer.rwkv.world", "x")
    types = gguf.array(GGML + "token_type")
    gguf.set(GGML + "token_type", [min(int(type), 6) for type in types], "i32")
    assert not unknown_keys(gguf)


@pytest.mark.parametrize("key", UNKNOWN)
def test_an_unknown_key_is_named(key: str) -> None:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set(GGML + key, True)
    assert not knows_key(GGML + key)
    assert unknown_keys(gguf) == [
        f"this version doesn't know the key '{GGML}{key}': ids may differ from those of newer "
        "builds of llama.cpp; use a newer ggtok"
    ]


def test_many_unknown_keys_have_few_warnings() -> None:
    gguf = GGUF.read(fixture("spm-bytes"))
    for i in range(1000):
        gguf.set(f"{GGML}new.{i}", i)
    found = unknown_keys(gguf)
    assert len(found) == 17
    assert found[-1] == "this version doesn't know 984 more keys 'tokenizer.ggml.*'"
    assert not unknown_keys(GGUF.read(fixture("none")))


def test_an_unknown_type_of_token_is_named() -> None:
    gguf = GGUF.read(fixture("bpe-llama3"))
    types = gguf.array(GGML + "token_type")
    gguf.set(GGML + "token_type", [*types[:-2], 9, 7], "i32")
    assert unknown_keys(gguf) == [
        f"key '{GGML}token_type': this version doesn't know the type 9 of token {len(types) - 2} "
        "(one of 2 such tokens): ids may differ from those of newer builds of llama.cpp; use a "
        "newer ggtok"
    ]


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_values_of_keys_without_effect_change_no_ids(llama: LlamaCpp, tmp_path: Path) -> None:
    """The reference gives the same ids for any value of the keys that have no effect."""
    text = "Hello, world <s> caf\u00e9".encode()
    for name in ("spm-bytes", "wpm"):
        want = ggtok.load(fixture(name)).encode(text)
        for value in (0, 3, 99):
            gguf = GGUF.read(fixture(name))
            gguf.set(GGML + "cls_token_id", value, "u32")
            gguf.set(GGML + "token_type_count", value, "u32")
            path = gguf.write(tmp_path / f"{name}-{value}.gguf")
            assert llama.load(path).tokenize(text, True, False) == want
