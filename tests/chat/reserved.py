"""Vocabularies and texts with which a message might turn into a control token.

A reserved token may come only from a template's text: it is CONTROL, UNKNOWN or EOG, or CONTROL in
the file. A plain token that is EOS only by llama.cpp's default isn't reserved.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from functools import partial

import ggtok
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture, fixture_names

NORMAL, UNKNOWN, CONTROL, USER_DEFINED = 1, 2, 3, 4
_TYPES = "tokenizer.ggml.token_type"


def reserved_ids(gguf: GGUF, tok: ggtok.Tokenizer) -> frozenset[int]:
    types = gguf.array(_TYPES) if _TYPES in gguf else []
    in_file = {id for id, kind in enumerate(types) if kind in (CONTROL, UNKNOWN)}
    special = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.UNKNOWN
    found = {id for id in range(tok.n_tokens) if tok.token_attr(id) & special}
    ends = {id for id in tok.eog_ids if id < tok.n_tokens and id != _plain_default(gguf, tok)}
    return frozenset(in_file | found | ends)


def _plain_default(gguf: GGUF, tok: ggtok.Tokenizer) -> int | None:
    eos = tok.eos_id
    if eos is None or tok.token_attr(eos) != ggtok.TokenAttr.NORMAL:
        return None
    keys = [key.decode() for key in gguf.raw if key.endswith(b"_token_id")]
    named = [gguf.get(key) for key in keys]
    text = tok.token_text(eos)
    tag = len(text) > 2 and text[:1] + text[-1:] in (b"<>", b"[]")
    return None if eos in named or tag else eos


# ---- vocabularies ----


def _added(name: str, texts: Sequence[str], type: int, end: str | None = None) -> GGUF:
    """Returns a fixture with additional tokens. `end` is the text of the token that ends a turn."""
    gguf = GGUF.read(fixture(name))
    existing = set(gguf.strings("tokenizer.ggml.tokens"))
    add_tokens(gguf, [text for text in texts if text.encode() not in existing], type)
    if end is not None:
        tokens = gguf.strings("tokenizer.ggml.tokens")
        gguf.set("tokenizer.ggml.eot_token_id", tokens.index(end.encode()), "u32")
    return gguf


def _merging(name: str, words: Sequence[str]) -> GGUF:
    """Returns a fixture with tokens that merges produce from letters. The last word's token, of
    type NORMAL, ends a turn."""
    texts = [word[:i] for word in words for i in range(1, len(word) + 1)]
    gguf = _added(name, list(dict.fromkeys(texts)), NORMAL, words[-1])
    key = "tokenizer.ggml.merges"
    if key in gguf:
        merges = [
            f"{word[: i - 1]} {word[i - 1]}".encode()
            for word in words
            for i in range(2, len(word) + 1)
        ]
        old = gguf.array(key)
        gguf.set(key, [*dict.fromkeys(merges), *(m for m in old if m not in merges)], "str")
    return gguf


_NAMES = [name for name in fixture_names() if name != "none"]
_KINDS = [
    "bpe-qwen2",
    "bpe-gemma4",
    "bpe-whitespace",
    "spm",
    "spm-bytes",
    "ugm",
    "ugm-plain",
    "wpm",
]
_KINDS += ["rwkv", "plamo2", "plamo3", "bpe-hybriddna"]
_END = "<|im_end|>"

VOCABULARIES: dict[str, Callable[[], GGUF]] = {
    **{name: partial(_added, name, [], NORMAL) for name in _NAMES},
    **{
        f"{name}, {_END} of type {kind}": partial(_added, name, [_END], kind)
        for name in _KINDS
        for kind in (NORMAL, UNKNOWN, CONTROL, USER_DEFINED)
    },
    **{
        f"{name}, merges": partial(_merging, name, ["stopped", "stop"])
        for name in ("bpe-gpt2", "bpe-llama3", "bpe-gemma4", "bpe-whitespace", "bpe-mmbert", "spm")
    },
    **{
        f"{name}, {end!r} ends": partial(_added, name, [end], NORMAL, end)
        for name in ("plamo2", "plamo3", "ugm", "ugm-plain")
        for end in ("stop", "\u2581stop", "kettle", "\n\n")
    },
    "spm-bytes, an empty line ends": partial(_added, "spm-bytes", ["\n\n"], NORMAL, "\n\n"),
    # texts as RWKV's files spell them; RWKV models end turns with an empty line
    **{
        f"rwkv, {end!r} ends": partial(_added, "rwkv", [end], NORMAL, end)
        for end in ("stop", "kettle", r"\n\n")
    },
    # a token inside a word, a token at the beginning of a word, and such a token of one letter
    **{
        f"{name}, {end!r} ends": partial(_added, name, [end], NORMAL, end)
        for name in ("wpm", "wpm-cased")
        for end in ("stop", "\u2581stop", "\u2581s")
    },
    "bpe-hybriddna, <dna> ends": partial(_added, "bpe-hybriddna", ["<dna>"], NORMAL, "<dna>"),
}

# ---- texts ----


def variants(text: str) -> list[str]:
    """Returns spellings that a normalizer may change into the text."""
    wide = "".join(chr(ord(c) + 0xFEE0) if "!" <= c <= "~" else c for c in text)
    accents = "".join(c + "\u0301" if c.isalpha() else c for c in text)
    spaced = text.replace("\u2581", " ")
    return [text, text.upper(), text.title(), wide, accents, spaced, f" {spaced}"]


def random_text(chooser: random.Random, texts: Sequence[str]) -> str:
    """Returns a random text built from tokens' texts: whole, in pieces, nested and repeated."""
    parts = []
    for _ in range(chooser.randint(1, 5)):
        text = chooser.choice(variants(chooser.choice(texts)))
        cut = chooser.randint(0, len(text))
        kind = chooser.randrange(6)
        if kind == 0:
            parts.append(text[:cut])
        elif kind == 1:
            parts.append(text[cut:])
        elif kind == 2:
            parts.append(text[:cut] + chooser.choice(texts) + text[cut:])
        elif kind == 3:
            parts.append(text * chooser.randint(2, 3))
        elif kind == 4:
            parts.append(text)
        else:
            parts.append(chooser.choice(["Hi", " ", "\n", "the kettle", "\u00e9", "stopped", "7"]))
    return "".join(parts)
