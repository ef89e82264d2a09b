"""Compares how ggtok and llama.cpp load a vocabulary from a file's keys.

Each row patches a small vocabulary. Special ids, flags, attributes, pieces, the EOG set, and the
ids of some texts must be equal.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests import parity
from tests.support.llamacpp import LlamaCpp, LlamaCppError
from tests.support.patch import GGUF, add_tokens
from tests.support.samples import times
from tests.support.vocabularies import fixture

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = 1, 2, 3, 4, 5, 6

Patch = Callable[[GGUF], None]


def tokens(*added: str | bytes, type: int = CONTROL) -> Patch:
    return lambda gguf: add_tokens(gguf, added, type)


def keys(**values: object) -> Patch:
    """Sets tokenizer.ggml.* keys (None removes the key)."""

    def patch(gguf: GGUF) -> None:
        for name, value in values.items():
            key = f"tokenizer.ggml.{name}"
            if value is None:
                gguf.remove(key)
            else:
                gguf.set(key, value)

    return patch


def name(text: str) -> Patch:
    return lambda gguf: gguf.set("general.name", text)


def arch(text: str) -> Patch:
    return lambda gguf: gguf.set("general.architecture", text)


def as_gpt2(gguf: GGUF) -> None:
    gguf.set("tokenizer.ggml.model", "gpt2")


def scores_as_int32(gguf: GGUF) -> None:
    scores = gguf.array("tokenizer.ggml.scores")
    gguf.set("tokenizer.ggml.scores", [round(float(score)) for score in scores], "i32")


def longer_arrays(gguf: GGUF) -> None:
    for key in ("tokenizer.ggml.scores", "tokenizer.ggml.token_type"):
        gguf.set(key, [*gguf.array(key), 1, 2, 3])


def retype(text: str, type: int) -> Patch:
    def patch(gguf: GGUF) -> None:
        types = gguf.array("tokenizer.ggml.token_type")
        types[gguf.strings("tokenizer.ggml.tokens").index(text.encode())] = type
        gguf.set("tokenizer.ggml.token_type", types)

    return patch


def rename(old: str, new: bytes) -> Patch:
    def patch(gguf: GGUF) -> None:
        texts = gguf.strings("tokenizer.ggml.tokens")
        texts[texts.index(old.encode())] = new
        gguf.set("tokenizer.ggml.tokens", texts)

    return patch


HARMONY = ("<|channel|>", "<|message|>", "<|start|>", "<|constrain|>")
ENDS = ("<|return|>", "<|call|>", "<|flush|>", "<|calls|>", "<|end|>")
EVERY_ID = {
    f"{kind}_token_id": 20 + i
    for i, kind in enumerate(
        (
            "bos eos eot eom unknown seperator padding mask fim_pre fim_suf fim_mid fim_pad "
            "fim_rep fim_sep"
        ).split()
    )
}

ROWS: dict[str, tuple[str, list[Patch]]] = {
    # special ids
    "all ids by key": ("bpe-gpt2", [keys(**EVERY_ID)]),
    "all ids by key, spm": ("spm", [keys(**EVERY_ID)]),
    "all ids by key, wpm": ("wpm", [keys(**EVERY_ID)]),
    "all ids by key, ugm": ("ugm", [keys(**EVERY_ID)]),
    "ids out of range keep the default": ("spm", [keys(bos_token_id=70_000, eos_token_id=2**31)]),
    "ids of 2^32 - 1": ("bpe-gpt2", [keys(bos_token_id=2**32 - 1, padding_token_id=2**32 - 1)]),
    "one past the last id": ("spm", [keys(eos_token_id=844, padding_token_id=843)]),
    "old FIM keys": ("bpe-gpt2", [keys(prefix_token_id=5, suffix_token_id=6, middle_token_id=7)]),
    "old FIM keys win": ("bpe-gpt2", [keys(fim_pre_token_id=4, prefix_token_id=5)]),
    "defaults of wpm out of range": (
        "wpm",
        [keys(unknown_token_id=None, mask_token_id=None)],
    ),
    "no ids at all": ("bpe-qwen2", [keys(eos_token_id=None, bos_token_id=None)]),
    "pad as newline, spm": ("spm", [rename("<0x0A>", b"zz0A"), keys(padding_token_id=9)]),
    "no pad for newline, spm": ("spm", [rename("<0x0A>", b"zz0A")]),
    "pad as newline, bpe": ("bpe-gpt2", [rename("\u010a", b"zz0A"), keys(padding_token_id=9)]),
    "newline pretokenized in a run": ("bpe-gpt2", [keys(pre="falcon")]),
    # flags
    "add bos and eos": ("bpe-gpt2", [keys(add_bos_token=True, add_eos_token=True)]),
    "add sep is a flag only": ("bpe-gpt2", [keys(add_sep_token=True)]),
    "no sep, wpm": ("wpm", [keys(add_sep_token=False, add_bos_token=False)]),
    "eos, wpm": ("wpm", [keys(add_eos_token=True, eos_token_id=3)]),
    "neither bos nor eos, spm": ("spm", [keys(add_bos_token=False, add_eos_token=False)]),
    "bos off after llama-bpe": ("bpe-llama3", [keys(add_bos_token=False)]),
    "bos cannot be off for gemma4": ("bpe-gemma4", [keys(add_bos_token=False)]),
    "space prefix off, spm": ("spm", [keys(add_space_prefix=False)]),
    "space prefix on, bpe": ("bpe-gpt2", [keys(add_space_prefix=True)]),
    "space prefix on, wpm": ("wpm", [keys(add_space_prefix=True)]),
    "space prefix off, ugm": ("ugm", [keys(add_space_prefix=False)]),
    "white space kept, ugm": ("ugm", [keys(remove_extra_whitespaces=False)]),
    "white space merged, ugm": ("ugm-plain", [keys(remove_extra_whitespaces=True)]),
    "prefix and kept white space, ugm": ("ugm-plain", [keys(add_space_prefix=True)]),
    "bos, rwkv": ("rwkv", [keys(add_bos_token=True, bos_token_id=5, add_eos_token=True)]),
    "bos, plamo2": ("plamo2", [keys(add_bos_token=True, add_eos_token=True)]),
    "space prefix, plamo2": ("plamo2", [keys(add_space_prefix=True)]),
    "bos, plamo3": ("plamo3", [keys(add_bos_token=True, add_eos_token=True)]),
    "cased, accents stripped": (
        "wpm",
        [keys(**{"normalizer.lowercase": False, "normalizer.strip_accents": True})],
    ),
    "lower-cased, accents kept": ("wpm", [keys(**{"normalizer.strip_accents": False})]),
    "whitespace, cased": ("bpe-whitespace", [keys(**{"normalizer.lowercase": False})]),
    "whitespace, no key": ("bpe-whitespace", [keys(**{"normalizer.lowercase": None})]),
    "hybriddna, escaped": ("bpe-hybriddna", [keys(pre="gemma4")]),
    "whitespace, escaped": ("bpe-whitespace", [keys(pre="gemma4")]),
    "whitespace, marked lines": ("bpe-whitespace", [keys(pre="mmbert")]),
    "whitespace, other pre": ("bpe-whitespace", [keys(pre="gpt-2")]),
    # arrays
    "no scores": ("spm", [keys(scores=None)]),
    "int32 scores": ("spm", [scores_as_int32]),
    "int32 scores, ugm": ("ugm", [scores_as_int32]),
    "no types": ("spm", [keys(token_type=None)]),
    "no types, bpe": ("bpe-gemma4", [keys(token_type=None)]),
    "arrays longer than the tokens": ("spm", [longer_arrays]),
    "empty texts and NULs": ("bpe-gpt2", [tokens("", b"\0", b"ab\0c", type=USER_DEFINED)]),
    "suppressed": ("spm", [lambda g: g.set("tokenizer.ggml.suppress_tokens", [3, 900, -2], "i32")]),
    # pre-tokenizer
    "no pre": ("bpe-gpt2", [keys(pre=None)]),
    "empty pre": ("bpe-gpt2", [keys(pre="")]),
    "gemma4 has its own": ("bpe-gemma4", [keys(pre="no such name")]),
    "pre outside bpe": ("spm", [keys(pre="no such name")]),
    "whitespace tokenizer without merges of spaces": ("bpe-gemma4", [keys(pre="whitespace")]),
    "gemma4 without a mark": ("bpe-gemma4", [rename("\u2581", b"zz2581")]),
    "gemma4 without a mark, nor all of its bytes": (
        "bpe-gemma4",
        [rename("\u2581", b"zz2581"), rename("<0x96>", b"zz96")],
    ),
    "gemma4 with a token of a space": ("bpe-gemma4", [tokens(" ", " a", "b ", type=NORMAL)]),
    "sarvam-moe on raw text": (
        "bpe-gemma4",
        [keys(pre="sarvam-moe"), as_gpt2],
    ),
    "granite-embed on raw text": (
        "bpe-gemma4",
        [keys(pre="granite-embed-multi-311m"), as_gpt2],
    ),
    "chatglm-bpe has no bos": ("bpe-qwen2", [keys(pre="chatglm-bpe", bos_token_id=None)]),
    # tokens that are recognized by their text
    "eot by key": ("bpe-ambiguous", [keys(eot_token_id=7)]),
    "fim by key": ("bpe-ambiguous", [keys(fim_pre_token_id=1, fim_pad_token_id=2)]),
    "unused control": ("bpe-gpt2", [tokens("x unused y", "<|unused|>", "[UNUSED]")]),
    "unused normal": ("bpe-gpt2", [tokens("x unused y", type=NORMAL)]),
    "harmony": ("bpe-gpt2", [tokens(*HARMONY)]),
    "harmony of every type": ("bpe-gpt2", [tokens(*HARMONY, type=UNUSED)]),
    "end is normal text": ("bpe-gpt2", [tokens(*ENDS, type=NORMAL)]),
    "end with return only": ("bpe-gpt2", [tokens("<|return|>", "<|end|>")]),
    "end with return and call": ("bpe-gpt2", [tokens("<|return|>", "<|call|>", "<|end|>")]),
    "end with calls and flush": ("bpe-gpt2", [tokens("<|calls|>", "<|flush|>", "<|end|>")]),
    "</s> with tool_response": ("bpe-gpt2", [tokens("</s>", "<|tool_response>")]),
    "</s> as eos with tool_response": (
        "bpe-gpt2",
        [tokens("</s>", "<|tool_response>"), keys(eos_token_id=757)],
    ),
    "</s> with plamo's eos": ("plamo2", [retype("</s>", CONTROL)]),
    "</s> alone": ("bpe-gpt2", [tokens("</s>", type=NORMAL)]),
    # tokens that the released library recognizes, but llama.cpp's public source doesn't
    "ifm's im_end": ("bpe-gpt2", [tokens("<|ifm|im_end|>", type=NORMAL)]),
    "plamo's fim": (
        "bpe-gpt2",
        [
            tokens("<|plamo:fim_prefix|>", "<|plamo:fim_suffix|>", type=NORMAL),
            tokens("<|plamo:fim_middle|>", "<|plamo:file_separator|>", type=NORMAL),
        ],
    ),
    "mmbert's mask": ("bpe-gemma4", [keys(pre="mmbert"), as_gpt2]),
    # token attributes that llama.cpp sets depending on the model's name
    "phi-3": ("spm-phi3", [name("PHI-3-mini")]),
    "phi3": ("spm-phi3", [name("my phi3 model")]),
    "not phi-3": ("spm-phi3", [name("phi-2")]),
    "jina mask": ("bpe-jina", [keys(pre="jina-v2-es")]),
    "jina mask beats phi-3": ("bpe-jina", [keys(pre="jina-v2-de"), name("phi-3")]),
    "no jina mask": ("bpe-gpt2", [keys(pre="jina-v2-code")]),
    "pre's name counts outside bpe": ("wpm", [keys(pre="jina-v2-code"), tokens("<mask>")]),
    "nomic's mask": ("spm", [arch("nomic-bert-moe"), tokens("<mask>")]),
    "jina-bert-v3's mask": ("spm", [arch("jina-bert-v3"), tokens("<mask>", type=NORMAL)]),
    "modern-bert": ("bpe-gpt2", [name("ModernBERT"), tokens("[MASK]")]),
    "modern-bert by name": ("bpe-gpt2", [name("a Modern-BERT"), tokens("[MASK]")]),
    "modern-bert without mask": ("bpe-gpt2", [name("modern-bert")]),
    # byte tokens (spelling)
    "byte tokens of odd spelling": (
        "spm",
        [tokens("<0x4>", "<0xG1>", "<0x-1>", "<0x 7>", "<0x+5>", "abc", "<0x61>x", type=BYTE)],
    ),
    "byte token shorter than its digits, bpe": ("bpe-gpt2", [tokens("<0x7>", type=BYTE)]),
    # types of special tokens
    "unknown tokens are special": ("bpe-gpt2", [tokens("<u1>", "<u22>", type=UNKNOWN)]),
    "user-defined in plain text": ("bpe-gpt2", [tokens("the", " the ", "e k", type=USER_DEFINED)]),
    "special tokens with spaces": ("spm-phi3", [tokens("<a b>", " <c> ", "\n", type=USER_DEFINED)]),
}


@pytest.mark.parametrize("row", ROWS)
def test_loads_as_in_llama_cpp(row: str, llama: LlamaCpp, tmp_path: Path) -> None:
    base, patches = ROWS[row]
    gguf = GGUF.read(fixture(base))
    for patch in patches:
        patch(gguf)
    compare(gguf, llama, tmp_path, 60)


def compare(gguf: GGUF, llama: LlamaCpp, folder: Path, n: int) -> None:
    result = parity.compare("patched", gguf.write(folder / "patched.gguf"), n, 5, llama=llama)
    assert not result.differences, "\n".join(result.shown)


EOT = (
    "<|eot_id|> <|im_end|> <|end|> <end_of_turn> <|endoftext|> <|end_of_text|> <EOT> _<EOT> "
    "[EOT] <\uff5cend\u2581of\u2581sentence\uff5c> <end_of_utterance>"
).split()
FIM = (
    "<|fim_prefix|> <fim-prefix> <fim_prefix> <\uff5cfim\u2581begin\uff5c> <PRE> \u2581<PRE> "
    "<|code_prefix|> <|prefix|> <|fim_suffix|> <fim-suffix> <fim_suffix> "
    "<\uff5cfim\u2581hole\uff5c> <SUF> \u2581<SUF> <|code_suffix|> <|suffix|> <|fim_middle|> "
    "<fim-middle> <fim_middle> <\uff5cfim\u2581end\uff5c> <MID> \u2581<MID> <|code_middle|> "
    "<|middle|> <|fim_pad|> <fim-pad> <fim_pad> <PAD> [PAD] <|fim_repo|> <|repo_name|> "
    "<fim-repo> <REPO> <reponame> <|file_sep|> <|plamo:fim_prefix|> <|plamo:fim_suffix|> "
    "<|plamo:fim_middle|> <|plamo:file_separator|>"
).split()
OTHER = [*HARMONY, *ENDS, "<|eom_id|>", "</s>", "[EOS]", "<eos>", "<turn|>", "<|tool_response>"]
OTHER += ["[e~[", "<|ifm|im_end|>", "<|plamo:eos|>", "x-unused", "<s>", "<unk>"]


@pytest.mark.parametrize("seed", range(times(50, of=150)))
def test_made_up_decisions(seed: int, llama: LlamaCpp, tmp_path: Path) -> None:
    """Several tokens are candidates for EOT and other roles: the order of a C++ hash map
    decides."""
    chooser = random.Random(seed)
    gguf = GGUF.read(fixture("version-2"))
    added = [
        *chooser.sample(EOT, chooser.randint(0, len(EOT))),
        *chooser.sample(FIM, chooser.randint(0, len(FIM))),
        *chooser.sample(OTHER, chooser.randint(0, len(OTHER))),
        # Add tokens until their number is near one at which the map grows: 541, 1109 or 2357.
        *(f"w{i}" for i in range(chooser.choice((0, 9, 180, 230, 400, 780, 1500, 2100)))),
    ]
    own = {"<|endoftext|>"}
    added = [text for text in dict.fromkeys(added) if text not in own]
    chooser.shuffle(added)
    texts = gguf.array("tokenizer.ggml.tokens") + [text.encode() for text in added]
    # The map is filled in the order of ids, so shuffle the candidates, too.
    chooser.shuffle(texts)
    gguf.set("tokenizer.ggml.tokens", texts)
    kinds = [NORMAL] * 5 + [CONTROL, CONTROL, USER_DEFINED, UNUSED, UNKNOWN]
    gguf.set("tokenizer.ggml.token_type", [chooser.choice(kinds) for _ in texts])
    for key in EVERY_ID:
        if chooser.random() < 0.15:
            gguf.set(f"tokenizer.ggml.{key}", chooser.randrange(len(texts) + 20))
    if chooser.random() < 0.2 and {"</s>", "<unk>", "<s>", "<|endoftext|>"} <= {*added, *own}:
        gguf.set("general.name", "phi-3")
    compare(gguf, llama, tmp_path, 12)


@pytest.mark.parametrize("seed", range(40))
def test_order_of_equal_lengths(seed: int, llama: LlamaCpp, tmp_path: Path) -> None:
    """Up to 1,000 special tokens, many of equal length, overlap: the order of std::sort decides
    which ones are found."""
    chooser = random.Random(seed)
    gguf = GGUF.read(fixture("version-2"))
    n = chooser.choice((10, 16, 17, 20, 33, 64, 100, 250, 1000))
    lengths = chooser.choice(((4,), (5, 6), (3, 4, 5, 6, 7)))
    special: dict[str, None] = {}
    while len(special) < n:
        length = chooser.choice(lengths) if len(special) < 60 else 8
        special["".join(chooser.choices("ab<|", k=length))] = None
    own = set(gguf.strings("tokenizer.ggml.tokens"))
    tokens(*(text for text in special if text.encode() not in own))(gguf)
    path = gguf.write(tmp_path / "patched.gguf")
    texts = ["".join(chooser.choices("ab<|", k=60)).encode() for _ in range(100)]
    theirs = llama.load(path).tokenize_many(texts, False, True)
    tok = parity.load(path)
    for text, ids in zip(texts, theirs, strict=True):
        assert tok.encode(text, add_special=False, parse_special=True) == ids, text


# ---- files that ggtok and llama.cpp both reject ----

PHI3_TOKENS = ["</s>", "<unk>", "<s>", "<|endoftext|>"]
REJECTED: dict[str, tuple[str, list[Patch], str]] = {
    "unknown model": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.model", "bogus")],
        "bogus",
    ),
    "no model": ("spm", [keys(model=None)], "tokenizer.ggml.model"),
    "unknown pre": ("bpe-gpt2", [keys(pre="no-such-pre")], "no-such-pre"),
    "no tokens": ("spm", [keys(tokens=None)], "tokenizer.ggml.tokens"),
    "tokens of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.tokens", [1, 2], "i32")],
        "tokenizer.ggml.tokens",
    ),
    "no merges": ("bpe-gpt2", [keys(merges=None)], "merges"),
    "merges of another type": (
        "bpe-gpt2",
        [lambda g: g.set("tokenizer.ggml.merges", [1, 2], "i32")],
        "merges",
    ),
    "scores of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.scores", [1.0] * 2000, "f64")],
        "scores",
    ),
    "too few scores": ("spm", [keys(scores=[1.0, 2.0])], "scores"),
    "types of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.token_type", [1] * 2000, "u32")],
        "token_type",
    ),
    "too few types": ("spm", [keys(token_type=[1, 2, 3])], "token_type"),
    "an id of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.bos_token_id", 1, "i32")],
        "bos_token_id",
    ),
    "a flag of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.add_bos_token", 1, "u32")],
        "add_bos_token",
    ),
    "suppress_tokens of another type": (
        "spm",
        [lambda g: g.set("tokenizer.ggml.suppress_tokens", [1], "u32")],
        "suppress_tokens",
    ),
    "duplicate texts": ("spm", [tokens("<s>")], "tokens 1 and 844"),
    "duplicate texts behind NULs": ("spm", [tokens(b"<s>\0x")], "tokens 1 and 844"),
    "charsmap of another type": (
        "ugm",
        [lambda g: g.set("tokenizer.ggml.precompiled_charsmap", [1, 2, 3, 4, 5], "i32")],
        "precompiled_charsmap",
    ),
    "charsmap too short": (
        "ugm",
        [lambda g: g.set("tokenizer.ggml.precompiled_charsmap", [1, 2], "u8")],
        "precompiled_charsmap",
    ),
    "charsmap without its array": (
        "ugm",
        [lambda g: g.set("tokenizer.ggml.precompiled_charsmap", [255, 0, 0, 0, 9], "u8")],
        "precompiled_charsmap",
    ),
    "byte token without digits": ("spm", [tokens("0x", type=BYTE)], "844|0x"),
    "plamo2 without a byte": ("plamo2", [rename("<0x41>", b"zz41")], "0x41|65"),
    **{
        f"phi-3 without {gone}": (
            "spm-phi3",
            [rename(gone, b"zz"), name("phi-3")],
            r"phi-?3",
        )
        for gone in PHI3_TOKENS
    },
}


@pytest.mark.parametrize("row", REJECTED)
def test_rejected_as_in_llama_cpp(row: str, llama: LlamaCpp, tmp_path: Path) -> None:
    base, patches, message = REJECTED[row]
    gguf = GGUF.read(fixture(base))
    for patch in patches:
        patch(gguf)
    path = gguf.write(tmp_path / "patched.gguf")
    with pytest.raises(LlamaCppError):
        llama.load(path)
    with pytest.raises(ggtok.VocabError, match=message) as caught:
        ggtok.load(path)
    assert not isinstance(caught.value, ggtok.GGUFError)


# ---- warnings ----

WARNED: dict[str, tuple[str, list[Patch], str]] = {
    "no pre": ("bpe-gpt2", [keys(pre=None)], "pre"),
    "id out of range": ("spm", [keys(bos_token_id=70_000)], "bos_token_id"),
    "control-looking": ("bpe-gpt2", [tokens("<|im_end|>", type=NORMAL)], "im_end"),
}


@pytest.mark.parametrize("row", WARNED)
def test_loading_warns(row: str, tmp_path: Path) -> None:
    base, patches, message = WARNED[row]
    gguf = GGUF.read(fixture(base))
    for patch in patches:
        patch(gguf)
    with pytest.warns(ggtok.VocabWarning, match=message):
        tok = ggtok.load(gguf.write(tmp_path / "patched.gguf"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tok.encode("no more of them <|im_end|>", parse_special=True)


def test_sound_files_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ggtok.load(fixture("bpe-gpt2"))
        ggtok.load(fixture("spm"))


# ---- facts that the reference's C API doesn't provide ----


def test_ids_without_a_getter() -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    assert tok.eom_id == tok.text_to_token("<|eom_id|>")
    assert tok.unk_id is None
    assert ggtok.load(fixture("spm")).unk_id == 0


def test_names_of_models_and_pre_tokenizers(load_fixture: Any) -> None:
    assert load_fixture("bpe-gemma4").pre == "gemma4"
    assert load_fixture("bpe-gemma4").model == "gemma4"
    assert load_fixture("bpe-neox").pre == "default"
    assert load_fixture("bpe-qwen2").pre == "qwen2"
    assert load_fixture("spm").pre is None
    assert load_fixture("wpm").pre is None
    assert load_fixture("none").vocab_type == "NONE"


def test_vocab_size_without_vocabulary(llama: LlamaCpp, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("none"))
    gguf.set("llama.vocab_size", 1234)
    path = gguf.write(tmp_path / "none.gguf")
    assert llama.load(path).facts().n_tokens == ggtok.load(path).n_tokens == 1234


def test_a_prefix_with_the_metadata_is_enough() -> None:
    data = fixture("bpe-qwen2").read_bytes()
    assert ggtok.load(data).encode("prefix") == ggtok.load(data + bytes(100)).encode("prefix")


def test_byte_orders_agree() -> None:
    big, little = ggtok.load(fixture("big-endian")), ggtok.load(fixture("version-2"))
    assert dict(big.metadata) == dict(little.metadata)
    assert big.encode("the kettle 123") == little.encode("the kettle 123")
