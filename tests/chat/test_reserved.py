"""No message produces a control token, in any kind of vocabulary and in any spelling.

Claim partition.4.
"""

from __future__ import annotations

import random
import warnings
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.native import PARSE_SPECIAL, PLAIN_USER_DEFINED
from tests.chat.reserved import (
    CONTROL,
    NORMAL,
    USER_DEFINED,
    VOCABULARIES,
    random_text,
    reserved_ids,
)
from tests.support.beginnings import beginning
from tests.support.llamacpp import LlamaCpp
from tests.support.patch import GGUF
from tests.support.samples import sampled, times
from tests.support.vocabularies import NEWER, fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")

REAL = ["llama-spm", "phi-3", "llama-bpe", "qwen2", "gemma-4", "gpt-neox", "bert-bge"]
NAMES = [*VOCABULARIES, *REAL]
PARSE = PARSE_SPECIAL


@cache
def vocabulary(name: str) -> tuple[GGUF, ggtok.Tokenizer, frozenset[int]]:
    gguf = VOCABULARIES[name]() if name in VOCABULARIES else GGUF.parse(beginning(name).gguf())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(gguf.dump())
    return gguf, tok, reserved_ids(gguf, tok)


@cache
def texts_of(tok: ggtok.Tokenizer, ids: frozenset[int]) -> list[str]:
    return [tok.token_text(id).decode("utf-8", "replace") for id in sorted(ids)]


@cache
def unknown_of(tok: ggtok.Tokenizer) -> set[int]:
    """Returns the unknown token, which any text may produce, unless that token ends generation."""
    unk = tok.unk_id
    return set() if unk is None or unk in tok.eog_ids else {unk}


@cache
def spelled_by_one(tok: ggtok.Tokenizer, reserved: frozenset[int]) -> bool:
    """Whether a reserved token is a single character or byte, whose text may have no other
    token."""
    return tok.vocab_type == "TEST" or any(
        len(text) == 1 or len(text.encode()) == 1 for text in texts_of(tok, reserved)
    )


def encoded(
    tok: ggtok.Tokenizer,
    reserved: frozenset[int],
    parts: list[tuple[str, bool]],
    flags: int = PARSE,
) -> list[int] | None:
    """Returns the ids of trusted and untrusted parts; None if they are rejected, which is allowed
    only for some vocabularies."""
    ranges: list[tuple[int, int]] = []
    at = 0
    for text, trusted in parts:
        n = len(text.encode())
        if trusted and n and ranges and ranges[-1][1] == at:
            ranges[-1] = (ranges[-1][0], at + n)
        elif trusted and n:
            ranges.append((at, at + n))
        at += n
    try:
        whole = "".join(text for text, _ in parts)
        return tok._loaded.encode_parts(whole, flags, ranges)[0]
    except ggtok.InvalidValueError:
        assert spelled_by_one(tok, reserved)
        return None


# ---- messages never produce reserved tokens ----


@pytest.mark.parametrize("name", sampled(NAMES, 3))
@settings(max_examples=times(20, of=60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_messages_give_no_reserved_token(name: str, seed: int) -> None:
    _, tok, reserved = vocabulary(name)
    chooser = random.Random(seed)
    texts = [*texts_of(tok, reserved), "plain"]
    ids = encoded(tok, reserved, [(random_text(chooser, texts), False)])
    assert not reserved.intersection(ids or []) - unknown_of(tok)


@cache
def stripped_pieces(tok: ggtok.Tokenizer, ids: frozenset[int]) -> dict[int, bytes]:
    return {id: tok.token_to_piece(id).strip() for id in ids}


# The model "test" doesn't look up texts; it only hashes bytes.
@pytest.mark.parametrize("name", sampled([name for name in NAMES if name != "test"], 3))
@settings(max_examples=times(20, of=60), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_template_and_message_together_give_no_reserved_token(name: str, seed: int) -> None:
    """The template writes one part of a token's text, and a message the other part."""
    _, tok, reserved = vocabulary(name)
    chooser = random.Random(seed)
    text = chooser.choice([*texts_of(tok, reserved), "plain"])
    cut = chooser.randint(0, len(text))
    parts = [(text[:cut], True), (text[cut:], False)]
    if chooser.randrange(2):
        parts = [(text[:cut], False), (text[cut:], True)]
    trusted_parts = [part for part, trusted in parts if trusted]
    around = random_text(chooser, ["plain", "text"])
    parts = [(around, False), *parts, (around, False)]
    ids = encoded(tok, reserved, parts)
    # A part of one token's text may contain another token's text, as it is or normalized.
    trusted_texts = [
        spelling.encode() for part in trusted_parts for spelling in (part, part.lower())
    ]
    pieces = stripped_pieces(tok, reserved).items()
    allowed = {id for id, piece in pieces if any(piece in text for text in trusted_texts)}
    assert not reserved.intersection(ids or []) - unknown_of(tok) - allowed


@pytest.mark.parametrize("name", sampled(NAMES, 3))
@settings(max_examples=times(10, of=30), deadline=None)
@given(seed=st.integers(0, 2**32))
def test_what_is_trusted_is_parsed(name: str, seed: int) -> None:
    _, tok, reserved = vocabulary(name)
    text = random_text(random.Random(seed), [*texts_of(tok, reserved), "plain"])
    ids = tok.encode(text, add_special=False, parse_special=True)
    assert encoded(tok, reserved, [(text, True)]) == ids
    assert encoded(tok, reserved, [(text, True)], PARSE | PLAIN_USER_DEFINED) == ids


# ---- tokens that are EOS by default ----

EOS = "tokenizer.ggml.eos_token_id"
TEMPLATE = "{{ messages[0].content }}"


def without_eos(name: str, text: str | None = None, kind: int = NORMAL) -> GGUF:
    """Returns a vocabulary whose file names no EOS, so that llama.cpp's default applies."""
    gguf = GGUF.read(fixture(name))
    if EOS in gguf:
        gguf.remove(EOS)
    tok = ggtok.load(gguf.dump())
    assert tok.eos_id is not None
    types = gguf.array("tokenizer.ggml.token_type")
    types[tok.eos_id] = kind
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    if text is not None:
        tokens = gguf.strings("tokenizer.ggml.tokens")
        tokens[tok.eos_id] = text.encode()
        gguf.set("tokenizer.ggml.tokens", tokens, "str")
    return gguf


def default_eos(gguf: GGUF) -> tuple[ggtok.Tokenizer, int, str]:
    tok = ggtok.load(gguf.dump())
    eos = tok.eos_id
    assert eos is not None and tok.is_eog(eos)
    return tok, eos, tok.token_to_piece(eos).decode()


def chat(tok: ggtok.Tokenizer, text: str) -> list[int]:
    return tok.encode_chat([{"role": "user", "content": text}], template=TEMPLATE)


@pytest.mark.parametrize(
    ("name", "text"),
    [("bpe-gpt2", None), ("bpe-gpt2", "\u0120tea"), ("spm", "tea"), ("ugm", "tea")],
)
def test_plain_text_that_is_eos_by_default_stays_text(name: str, text: str | None) -> None:
    """In GPT-2's vocabulary, for example, the default EOS is ",", which ordinary text needs."""
    gguf = without_eos(name, text)
    with pytest.warns(
        ggtok.VocabWarning, match="the file names no EOS token .* llama.cpp's default"
    ):
        ggtok.load(gguf.dump())
    tok, eos, piece = default_eos(gguf)
    assert eos in tok.special_ids and tok.vocab_bytes()[eos] == b""
    message = f"one{piece} two{piece}{piece}."
    assert chat(tok, message) == tok.encode(message)
    if text is None:
        assert chat(tok, message).count(eos) == 3


@pytest.mark.parametrize("key", [EOS, "tokenizer.ggml.eot_token_id", "tokenizer.ggml.bos_token_id"])
def test_an_eos_that_a_key_names_is_reserved(key: str) -> None:
    gguf = without_eos("bpe-gpt2")
    _, eos, piece = default_eos(gguf)
    gguf.set(key, eos, "u32")
    tok, same, _ = default_eos(gguf)
    assert same == eos and eos in tok.special_ids
    with pytest.raises(ggtok.InvalidValueError, match="only by the control token"):
        chat(tok, piece)


@pytest.mark.parametrize(
    ("text", "kind"),
    [("<stop>", NORMAL), ("[stop]", NORMAL), ("stop", CONTROL), ("stop", USER_DEFINED)],
)
def test_a_default_eos_that_looks_special_is_reserved(text: str, kind: int) -> None:
    gguf = without_eos("plamo2", text, kind)  # any text can be a token in PLaMo
    tok, eos, _ = default_eos(gguf)
    assert eos in tok.special_ids
    assert eos in tok.encode(text, parse_special=True)
    assert eos not in chat(tok, f"{text} a{text}")


# ---- all other ids are llama.cpp's ----


def without_reserved(gguf: GGUF, reserved: frozenset[int]) -> GGUF:
    """Returns the vocabulary without the texts of reserved tokens, and without merges that produce
    them."""
    new = GGUF.parse(gguf.dump())
    tokens = new.strings("tokenizer.ggml.tokens")
    reserved_texts = {tokens[id] for id in reserved}
    for id in reserved:
        tokens[id] = f"\ue123\ue124{id}".encode()
    new.set("tokenizer.ggml.tokens", tokens, "str")
    if "tokenizer.ggml.merges" in new:
        merges = new.strings("tokenizer.ggml.merges")
        merges = [m for m in merges if m[:1] + m[1:].replace(b" ", b"", 1) not in reserved_texts]
        if merges:
            new.set("tokenizer.ggml.merges", merges, "str")
        else:
            new.remove("tokenizer.ggml.merges")
    if "general.name" in new:
        new.set("general.name", "none")  # with phi-3's name, llama.cpp would need certain tokens
    return new


# hybriddna finds its tags by their texts; the reference reads only little-endian files, and ignores
# NFC.
@pytest.mark.parametrize(
    "name",
    sampled([n for n in NAMES if "hybriddna" not in n and n not in ("big-endian", *NEWER)], 3),
)
def test_ids_are_those_without_reserved_tokens(name: str, llama: LlamaCpp, tmp_path: Path) -> None:
    """If llama.cpp's ids for a message contain a reserved token, ggtok returns llama.cpp's ids with
    a vocabulary that lacks the reserved tokens. Otherwise, ggtok returns llama.cpp's ids."""
    gguf, tok, reserved = vocabulary(name)
    path = gguf.write(tmp_path / "usual.gguf")
    usual_vocab = llama.load(path)
    less_vocab = llama.load(without_reserved(gguf, reserved).write(tmp_path / "less.gguf"))
    chooser = random.Random(name)
    user = ggtok.TokenAttr.USER_DEFINED
    special = [
        tok.token_text(id).decode("utf-8", "replace")
        for id in range(tok.n_tokens)
        if id not in reserved and tok.token_attr(id) & user
    ]
    texts = [random_text(chooser, [*texts_of(tok, reserved), "plain"]) for _ in range(150)]
    # Excludes texts with user-defined tokens, which would divide the text first.
    texts = [text for text in texts if text and not any(s in text for s in special)]
    raw = [text.encode() for text in texts]
    usual = usual_vocab.survivors(raw, False, False)
    less = less_vocab.survivors(raw, False, False)
    for text, ids, less_ids in zip(texts, usual, less, strict=True):
        if ids is None or less_ids is None:
            continue  # llama.cpp crashes on the text
        ours = encoded(tok, reserved, [(text, False)])
        if ours is not None:
            assert ours == (less_ids if reserved.intersection(ids) else ids), text
    if name.endswith((" ends", ", merges")):  # raw text produces reserved tokens
        assert any(reserved.intersection(ids or []) for ids in usual)
    usual_vocab.free()
    less_vocab.free()
