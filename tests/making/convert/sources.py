"""Small sources, created with their own libraries."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies.patterns import CHAIN_OF_PRE
from tests.support.full import Lazy
from tests.support.vocabularies import fixture

sentencepiece: Any = Lazy("sentencepiece")
Tokenizer: Any = Lazy("tokenizers", "Tokenizer")
models: Any = Lazy("tokenizers.models")
pre_tokenizers: Any = Lazy("tokenizers.pre_tokenizers")
trainers: Any = Lazy("tokenizers.trainers")

TEXT = [line for text in (*PROSE, *CODE) for line in text.split("\n") if line]
SPECIAL = ["<|endoftext|>", "<|im_start|>"]
BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}


def split(*expressions: str) -> dict[str, Any]:
    steps: list[dict[str, Any]] = [
        {"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": False}
        for e in expressions
    ]
    return {"type": "Sequence", "pretokenizers": [*steps, {**BYTE_LEVEL, "use_regex": False}]}


@cache
def _trained() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=900,
        show_progress=False,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(TEXT, trainer)
    return str(tokenizer.to_str())


def bpe(pre: str = "gpt-2", **changes: Any) -> dict[str, Any]:
    """Returns a byte-level tokenizer.json with a published pre-tokenizer."""
    document: dict[str, Any] = json.loads(_trained())
    chain = CHAIN_OF_PRE[pre]
    document["pre_tokenizer"] = split(*(chain.published or (chain.steps,))[0])
    model = changes.pop("model", {})
    document |= changes
    document["model"] |= model
    return document


def byte_fallback(**changes: Any) -> dict[str, Any]:
    """Returns a tokenizer.json like Llama 2's."""
    v = ggtok.train("\n".join(TEXT), 2000, model="spm", min_frequency=1)
    from ggtok.vocabularies.export.to_tokenizer_json import tokenizer_json

    document: dict[str, Any] = json.loads(tokenizer_json(v, pytest.fail))
    document |= changes
    return document


def phi3(**changes: Any) -> dict[str, Any]:
    """Returns a tokenizer.json like Phi-3's, which drops spaces after most special tokens."""
    document = byte_fallback(**changes)
    n = len(document["model"]["vocab"])
    row = {**document["added_tokens"][0], "special": True}
    for i, text in enumerate(("<|endoftext|>", "<|user|>")):
        document["model"]["vocab"][text] = n + i
        document["added_tokens"].append({**row, "id": n + i, "content": text})
    for row in document["added_tokens"]:
        row["rstrip"] = row["content"] in ("</s>", "<|user|>")
    return document


def unigram_with_mask() -> dict[str, Any]:
    """Returns a tokenizer.json like XLM-RoBERTa's, which drops spaces before <mask>."""
    texts = sorted({c for line in TEXT for c in line.replace(" ", "\u2581")})
    vocab = [["<unk>", 0.0], ["<mask>", 0.0], *([c, -5.0] for c in [*texts, "\u2581the"])]
    special = dict.fromkeys(("single_word", "rstrip", "normalized"), False) | {"special": True}
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    return {
        "version": "1.0",
        "added_tokens": [{"id": 1, "content": "<mask>", "lstrip": True, **special}],
        "pre_tokenizer": {**metaspace, "split": True},
        "model": {"type": "Unigram", "unk_id": 0, "vocab": vocab},
    }


def gemma4() -> ggtok.Vocabulary:
    """Returns the fixture, with merges of newlines, and without merges whose parts or results
    aren't tokens."""
    v = ggtok.vocabulary(fixture("bpe-gemma4"))
    known = set(v.texts)
    merges = [pair for pair in v.merge_texts or () if {*pair, b"".join(pair)} <= known]
    newlines = [(b"\n", b"\n"), (b"\n\n", b"\n")]
    return replace(v, merge_texts=[*newlines, *merges])


def wordpiece(**changes: Any) -> dict[str, Any]:
    texts = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "##"]
    letters = [chr(c) for c in range(0x21, 0x7F)] + list("äöüßé你好мир")
    texts += letters + ["##" + c for c in letters] + ["the", "##ing", "hello", "world", "##s"]
    normalizer = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}
    return {
        "version": "1.0",
        "added_tokens": [
            {"id": id, "content": texts[id], "special": True, "normalized": False}
            | dict.fromkeys(("single_word", "lstrip", "rstrip"), False)
            for id in range(4)
        ],
        "normalizer": {**normalizer, "strip_accents": None, "lowercase": True},
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {"type": "BertProcessing", "sep": ["[SEP]", 2], "cls": ["[CLS]", 1]},
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {text: id for id, text in enumerate(dict.fromkeys(texts))},
        },
        **changes,
    }


def spm(kind: str, **options: Any) -> bytes:
    """Returns the file of a SentencePiece model."""
    options = {"vocab_size": 1500, "byte_fallback": kind == "bpe", **options}
    options.setdefault("hard_vocab_limit", False)
    options.setdefault("normalization_rule_name", "identity")
    return _spm(kind, json.dumps(options, sort_keys=True))


@cache
def _spm(kind: str, options: str) -> bytes:
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(TEXT),
        model_writer=model,
        model_type=kind,
        minloglevel=2,
        **json.loads(options),
    )
    return model.getvalue()


def ranks() -> dict[bytes, int]:
    v = ggtok.train("\n".join(TEXT), 800, rule="bytes", min_frequency=1)
    return {token: id - 1 for id, token in enumerate(v.tokens) if id}


def tiktoken_file(of: dict[bytes, int] | None = None) -> bytes:
    rows = (ranks() if of is None else of).items()
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for token, rank in rows)


def tekken(**changes: Any) -> dict[str, Any]:
    (pattern,) = CHAIN_OF_PRE["tekken"].published[0]
    of = ranks()
    config = {
        "pattern": pattern,
        "num_vocab_tokens": len(of),
        "default_vocab_size": len(of) + 20,
        "default_num_special_tokens": 30,
        "version": "v3",
    }
    rows = [
        {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
        for token, rank in of.items()
    ]
    return {"config": config, "vocab": rows, **changes}


def write(path: Path, data: bytes | str | dict[str, Any]) -> Path:
    if isinstance(data, dict):
        data = json.dumps(data)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return path
