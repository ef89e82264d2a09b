"""Converts a GGUF vocabulary to the formats that the other tokenizers read.

Tokens, merges, scores and types come from the file. The results lack features that would slow down
the other tokenizers without changing an id: normalizers that llama.cpp doesn't have, control tokens
(which are found only with parse_special), and padding tokens such as "[PAD151646]".
"""

from __future__ import annotations

import base64
import json
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tests.bench import patterns, sentencepiece_model
from tests.support.patch import GGUF

_CONTROL, _USER_DEFINED, _BYTE = 3, 4, 6
_PADDING = re.compile(r"\[PAD\d+\]")
_SPACE = "\u2581"


class NoConversionError(Exception):
    """The format can't represent this vocabulary; the message explains why."""


@dataclass(frozen=True)
class Files:
    """The paths of a vocabulary in each format."""

    gguf: Path
    json: Path
    tiktoken: Path
    sentencepiece: Path


@dataclass(frozen=True)
class _Source:
    gguf: GGUF
    model: str
    pre: str
    tokens: list[str]
    types: list[int]

    def scores(self) -> list[float]:
        values = self.gguf.array("tokenizer.ggml.scores")
        return [float(value) for value in values]

    def id(self, name: str, default: int) -> int:
        key = f"tokenizer.ggml.{name}_token_id"
        value = self.gguf.get(key) if key in self.gguf else default
        assert isinstance(value, int)
        return value

    def merges(self) -> list[list[str]]:
        pairs = []
        for merge in self.gguf.strings("tokenizer.ggml.merges"):
            text = merge.decode()
            at = text.find(" ", 1)
            pairs.append([text[:at], text[at + 1 :]])
        return pairs


def _read(path: Path) -> _Source:
    gguf = GGUF.read(path)

    def text(key: str) -> str:
        value = gguf.get(key) if key in gguf else b""
        assert isinstance(value, bytes)
        return value.decode()

    types = "tokenizer.ggml.token_type"
    return _Source(
        gguf,
        text("tokenizer.ggml.model"),
        text("tokenizer.ggml.pre"),
        [token.decode("utf-8", "replace") for token in gguf.strings("tokenizer.ggml.tokens")],
        [int(t) for t in gguf.array(types)] if types in gguf else [],
    )


def convert(gguf: Path, folder: Path, control: bool = False) -> tuple[Files, dict[str, str]]:
    """Writes the vocabulary to a folder, in every format that can represent it.

    Args:
        control: whether control tokens become added tokens, so that they are found in text.

    Returns:
        The paths, and the reason for each format that can't represent the vocabulary.
    """
    files = Files(
        gguf,
        folder / "tokenizer.json",
        folder / "ranks.tiktoken",
        folder / "sentencepiece.model",
    )
    source = _read(gguf)
    refused: dict[str, str] = {}
    for name, write in (("json", _json), ("tiktoken", _tiktoken), ("sentencepiece", _spm)):
        try:
            data = write(source, control)
            getattr(files, name).write_bytes(data)
        except NoConversionError as error:
            refused[name] = str(error)
    return files, refused


# ---- tokenizer.json ----


def _json(source: _Source, control: bool) -> bytes:
    builders = {"gpt2": _bpe, "gemma4": _gemma, "llama": _spm_bpe, "bert": _wpm, "t5": _ugm}
    if source.model not in builders:
        raise NoConversionError(f"no tokenizer.json for model {source.model}")
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added(source, control),
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": None,
        "decoder": None,
    }
    document |= builders[source.model](source)
    return json.dumps(document, ensure_ascii=False).encode()


def _added(source: _Source, control: bool) -> list[dict[str, Any]]:
    wanted = {_USER_DEFINED, _CONTROL} if control else {_USER_DEFINED}
    return [
        {
            "id": id,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": type == _CONTROL,
        }
        for id, (token, type) in enumerate(zip(source.tokens, source.types, strict=False))
        if type in wanted and not _PADDING.fullmatch(token)
    ]


def _bpe_model(source: _Source, merges: list[list[str]], **more: object) -> dict[str, Any]:
    return {
        "type": "BPE",
        "dropout": None,
        "unk_token": None,
        "continuing_subword_prefix": None,
        "end_of_word_suffix": None,
        "fuse_unk": False,
        "byte_fallback": False,
        "ignore_merges": False,
        **more,
        "vocab": {token: id for id, token in enumerate(source.tokens)},
        "merges": merges,
    }


def _bpe(source: _Source) -> dict[str, Any]:
    pre = patterns.pre_tokenizer(source.pre)
    if pre is None:
        raise NoConversionError(f"no expression here for pre-tokenizer {source.pre}")
    ignore = source.pre in patterns.IGNORE_MERGES
    return {
        "pre_tokenizer": pre,
        "decoder": {**patterns.BYTE_LEVEL, "use_regex": True},
        "model": _bpe_model(source, source.merges(), ignore_merges=ignore),
    }


def _replace(pattern: dict[str, str], content: str) -> dict[str, Any]:
    return {"type": "Replace", "pattern": pattern, "content": content}


_ESCAPE = _replace({"String": " "}, _SPACE)
# The decoder in published tokenizer.json files of SentencePiece models. One of the compared
# tokenizers recognizes such models by their decoder.
_SPM_DECODER = {
    "type": "Sequence",
    "decoders": [
        _replace({"String": _SPACE}, " "),
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ],
}


def _gemma(source: _Source) -> dict[str, Any]:
    unk = source.tokens[source.id("unknown", 0)]
    return {
        "normalizer": _ESCAPE,
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
        "decoder": _SPM_DECODER,
        "model": _bpe_model(
            source, source.merges(), unk_token=unk, fuse_unk=True, byte_fallback=True
        ),
    }


def _spm_bpe(source: _Source) -> dict[str, Any]:
    prepend = {"type": "Prepend", "prepend": _SPACE}
    unk = source.tokens[source.id("unknown", 0)]
    return {
        "normalizer": {"type": "Sequence", "normalizers": [prepend, _ESCAPE]},
        "decoder": _SPM_DECODER,
        "model": _bpe_model(
            source, _merges_by_score(source), unk_token=unk, fuse_unk=True, byte_fallback=True
        ),
    }


def _merges_by_score(source: _Source) -> list[list[str]]:
    """Returns merges equivalent to SentencePiece's rule: the joined piece with the best score
    first."""
    ids = {token: id for id, token in enumerate(source.tokens)}
    ranked = []
    for token, score in zip(source.tokens, source.scores(), strict=True):
        for i in range(1, len(token)):
            left, right = token[:i], token[i:]
            if left in ids and right in ids:
                ranked.append((-score, ids[left], ids[right], left, right))
    ranked.sort()
    return [[left, right] for *_, left, right in ranked]


def _wpm(source: _Source) -> dict[str, Any]:
    # Reverses llama.cpp's conversion, which prefixes tokens that begin a word with U+2581, and
    # removes ## from the other tokens.
    vocab = {}
    for id, (token, type) in enumerate(zip(source.tokens, source.types, strict=True)):
        if token.startswith(_SPACE):
            token = token[1:]
        elif type != _CONTROL:
            token = "##" + token
        vocab[token] = id
    unk = source.tokens[source.id("unknown", 100)]
    vocab[unk] = source.id("unknown", 100)
    return {
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": True,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": unk,
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }


def _charsmap(source: _Source) -> bytes:
    key = "tokenizer.ggml.precompiled_charsmap"
    return bytes(int(b) & 0xFF for b in source.gguf.array(key)) if key in source.gguf else b""


def _ugm(source: _Source) -> dict[str, Any]:
    normalizers = [_replace({"Regex": " {2,}"}, " ")]
    if charsmap := _charsmap(source):
        packed = base64.b64encode(charsmap).decode()
        normalizers.insert(0, {"type": "Precompiled", "precompiled_charsmap": packed})
    metaspace = {
        "type": "Metaspace",
        "replacement": _SPACE,
        "prepend_scheme": "always",
        "split": True,
    }
    return {
        "normalizer": {"type": "Sequence", "normalizers": normalizers},
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, metaspace],
        },
        "decoder": metaspace,
        "model": {
            "type": "Unigram",
            "unk_id": source.id("unknown", 2),
            "vocab": list(map(list, zip(source.tokens, source.scores(), strict=True))),
            "byte_fallback": False,
        },
    }


# ---- tiktoken ----


@cache
def _bytes_of_mapped() -> dict[str, int]:
    """Returns the inverse of GPT-2's byte map."""
    kept = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    mapped = {chr(byte): byte for byte in kept}
    rest = (byte for byte in range(256) if byte not in kept)
    return mapped | {chr(256 + n): byte for n, byte in enumerate(rest)}


def _tiktoken(source: _Source, control: bool) -> bytes:
    """Returns the contents of a file: one line with the regular expression, one with the special
    tokens as JSON, and one for each other token."""
    chain = patterns.CHAINS.get(source.pre, ()) if source.model == "gpt2" else ()
    if len(chain) != 1:
        raise NoConversionError("tiktoken is byte-level BPE with one expression")
    table = _bytes_of_mapped()
    special = {t["content"]: t["id"] for t in _added(source, control)}
    lines = [patterns.TIKTOKEN.get(chain[0], chain[0]), json.dumps(special)]
    for id, (token, type) in enumerate(zip(source.tokens, source.types, strict=True)):
        if type not in (_CONTROL, _USER_DEFINED) and all(c in table for c in token):
            data = base64.b64encode(bytes(table[c] for c in token))
            lines.append(f"{data.decode()} {id}")
    return "\n".join(lines).encode()


# ---- SentencePiece ----


def _spm(source: _Source, control: bool) -> bytes:
    kinds = {"llama": sentencepiece_model.BPE, "t5": sentencepiece_model.UNIGRAM}
    if source.model not in kinds:
        raise NoConversionError("not a SentencePiece vocabulary")
    texts = [token.encode() for token in source.tokens]
    types = [_USER_DEFINED if control and t == _CONTROL else t for t in source.types]
    unk_id = source.id("unknown", 0)
    types[unk_id] = sentencepiece_model.UNKNOWN
    return sentencepiece_model.model(
        kinds[source.model],
        list(zip(texts, source.scores(), types, strict=True)),
        unk_id,
        _charsmap(source),
        add_dummy_prefix=True,
        remove_extra_whitespaces=source.model == "t5",
        byte_fallback=_BYTE in types,
    )
