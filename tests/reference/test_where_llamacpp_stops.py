"""What ggtok returns or raises where llama.cpp crashes (docs/exactness.md).

Each row has a file, a text, and ggtok's result: ids, another text with the same ids, or an error.
The reference build must still crash on the text; otherwise the case belongs in tests.parity.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import ggtok
from tests.support.llamacpp import LlamaCpp, LlamaCppDied
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

Patch = Callable[[GGUF], None]

ABOVE = b"\xf5\x90\x80\x80"  # four bytes that decode to a value above U+10FFFF
BAD = "\ufffd".encode()


def keys(**values: object) -> Patch:
    """Sets tokenizer.ggml.* keys (None removes the key)."""

    def patch(gguf: GGUF) -> None:
        for key, value in values.items():
            if value is None:
                gguf.remove(f"tokenizer.ggml.{key}")
            else:
                gguf.set(f"tokenizer.ggml.{key}", value)

    return patch


def first_tokens(n: int) -> Patch:
    """Keeps only the first n tokens, so that llama.cpp's default ids of special tokens are out of
    range."""

    def patch(gguf: GGUF) -> None:
        for key in ("tokens", "token_type", "scores"):
            if f"tokenizer.ggml.{key}" in gguf:
                keys(**{key: gguf.array(f"tokenizer.ggml.{key}")[:n]})(gguf)
        for name in ("bos", "eos", "unknown", "padding", "mask", "cls", "seperator"):
            gguf.remove(f"tokenizer.ggml.{name}_token_id")

    return patch


def rename(old: bytes, new: bytes, type: int = 1) -> Patch:
    def patch(gguf: GGUF) -> None:
        texts = gguf.strings("tokenizer.ggml.tokens")
        types = gguf.array("tokenizer.ggml.token_type")
        types[texts.index(old)] = type
        texts[texts.index(old)] = new
        keys(tokens=texts, token_type=types)(gguf)

    return patch


def charsmap(units: slice = slice(None), text: slice = slice(None)) -> Patch:
    """Truncates the charsmap's array and its replacements."""

    def patch(gguf: GGUF) -> None:
        key = "tokenizer.ggml.precompiled_charsmap"
        blob = struct.pack(f"{len(gguf.array(key))}B", *gguf.array(key))
        (size,) = struct.unpack_from("<I", blob)
        array = b"".join([blob[i : i + 4] for i in range(4, 4 + size, 4)][units])
        gguf.set(key, [*struct.pack("<I", len(array)), *array, *blob[4 + size :][text]])

    return patch


@dataclass(frozen=True)
class Row:
    base: str
    text: bytes
    # Ids, a text with the same ids, or the message of a VocabError.
    expected: bytes | list[int] | str
    patches: tuple[Patch, ...] = ()
    add_special: bool = False
    live: bool = True  # whether to run the reference (False: it would loop forever)


NO_BOS = "adds BOS to texts, but has no such token"

ROWS = {
    "no BOS: BPE": Row(
        "bpe-gpt2", b"a", NO_BOS, (keys(pre="glm4", add_bos_token=True, bos_token_id=None),), True
    ),
    "no BOS: gemma4": Row("bpe-gemma4", b"a", NO_BOS, (keys(bos_token_id=None),), True),
    "no BOS: SPM": Row("spm", b"", NO_BOS, (first_tokens(1),), True),
    "no BOS: UGM": Row("ugm-plain", b"a", NO_BOS, (keys(bos_token_id=None),), True),
    "no CLS: WPM": Row("wpm", b"", NO_BOS, (first_tokens(90),), True),
    "no EOS: gemma4": Row(
        "bpe-gemma4",
        b"a",
        "adds EOS to texts, but has no such token",
        (keys(eos_token_id=None, add_eos_token=True),),
        True,
    ),
    "no SEP: WPM": Row(
        "wpm",
        b"a",
        "adds SEP to texts, but has no such token",
        (first_tokens(90), keys(bos_token_id=2)),
        True,
    ),
    "above U+10FFFF: BPE": Row("bpe-gpt2", b"a" + ABOVE + b"b", b"a" + 4 * BAD + b"b"),
    "above U+10FFFF: raw BPE": Row("bpe-gemma4", b"a" + ABOVE + b"b", b"a" + 4 * BAD + b"b"),
    "above U+10FFFF: hybriddna": Row("bpe-hybriddna", b"a" + ABOVE, b"a" + 4 * BAD),
    "above U+10FFFF: whitespace": Row("bpe-whitespace", b"a" + ABOVE, b"a" + 4 * BAD),
    "above U+10FFFF: WPM": Row("wpm", b"the k" + ABOVE + b"ettle", b"the kettle"),
    "charsmap: a link out of the array": Row(
        "ugm", "\uff41".encode(), "precompiled_charsmap", (charsmap(units=slice(300)),)
    ),
    "charsmap: a replacement outside the text": Row(
        "ugm", "\uff5e".encode(), "precompiled_charsmap", (charsmap(text=slice(40)),)
    ),
    "charsmap: a replacement without an end": Row(
        "ugm", "\uff5e".encode(), "precompiled_charsmap", (charsmap(text=slice(-1)),)
    ),
    "RWKV: a token begins here, none ends": Row(
        "rwkv", b"a qq", b"a \xff\xff", (rename(b"q", b"qqq"),), live=False
    ),
    "SPM: no token for a byte": Row(
        "spm", b"a\x07b", [259, 0, 630], (rename(b"<0x07>", b"seven"),)
    ),
    "no vocabulary": Row("none", b"a", "no vocabulary"),
    "whitespace with model gpt2": Row("bpe-gpt2", b"a  b", b"a b", (keys(pre="whitespace"),)),
    "a long word": Row("bpe-gpt2", b"a" * 200_000, [64] * 200_000, (keys(pre="deepseek-llm"),)),
}


@pytest.fixture
def gguf(row: str) -> GGUF:
    gguf = GGUF.read(fixture(ROWS[row].base))
    for patch in ROWS[row].patches:
        patch(gguf)
    return gguf


@pytest.mark.parametrize("row", ROWS)
def test_ggtok_returns_ids_or_raises(row: str, gguf: GGUF) -> None:
    r = ROWS[row]
    tok = ggtok.load(gguf.dump())
    if isinstance(r.expected, str):
        with pytest.raises(ggtok.VocabError, match=r.expected):
            tok.encode(r.text, add_special=r.add_special)
        return
    expected = (
        tok.encode(r.expected, add_special=False) if isinstance(r.expected, bytes) else r.expected
    )
    assert tok.encode(r.text, add_special=r.add_special) == expected


@pytest.mark.parametrize("row", [row for row in ROWS if ROWS[row].live])
def test_llama_cpp_still_crashes(row: str, gguf: GGUF, llama: LlamaCpp, tmp_path: Path) -> None:
    vocab = llama.load(gguf.write(tmp_path / "patched.gguf"))
    with pytest.raises(LlamaCppDied):
        vocab.tokenize(ROWS[row].text, ROWS[row].add_special, False)


@pytest.mark.parametrize("name", ["spm", "ugm", "ugm-plain", "rwkv", "plamo2", "plamo3", "test"])
def test_above_the_last_code_point(name: str, llama: LlamaCpp) -> None:
    """These models don't crash on characters above U+10FFFF: they keep the bytes, or encode them
    one by one."""
    text = b"a" + ABOVE + b"b \xf7\xbf\xbf\xbf"
    theirs = llama.load(fixture(name)).tokenize(text, False, False)
    assert ggtok.load(fixture(name)).encode(text, add_special=False) == theirs


def test_damage_that_a_text_does_not_reach() -> None:
    """Only texts that reach the damaged part of the charsmap fail."""
    gguf = GGUF.read(fixture("ugm"))
    sound = ggtok.load(gguf.dump())
    charsmap(text=slice(40))(gguf)
    assert ggtok.load(gguf.dump()).encode("the kettle") == sound.encode("the kettle")


def test_a_missing_bos_matters_only_if_it_is_added() -> None:
    gguf = GGUF.read(fixture("ugm-plain"))
    ids = ggtok.load(gguf.dump()).encode("the", add_special=False)
    gguf.remove("tokenizer.ggml.bos_token_id")
    assert ggtok.load(gguf.dump()).encode("the", add_special=False) == ids


def test_unknown_bytes_without_an_unknown_token(llama: LlamaCpp, tmp_path: Path) -> None:
    """Without an unknown token, RWKV encodes unknown bytes as -1, and llama.cpp crashes when it
    detokenizes -1."""
    gguf = GGUF.read(fixture("rwkv"))
    gguf.remove("tokenizer.ggml.unknown_token_id")
    path = gguf.write(tmp_path / "patched.gguf")
    tok, vocab = ggtok.load(path), llama.load(path)
    ids = tok.encode(b"a\xff")
    assert ids[1:] == [-1]
    assert vocab.tokenize(b"a\xff", False, False) == ids
    with pytest.raises(ggtok.TokenIdError):
        tok.decode(ids)
    with pytest.raises(LlamaCppDied):
        vocab.detokenize(ids, False, False)
