"""Folders with small vocabularies, in the shapes of real repositories.

Each shape has the files that such a repository has, with the same keys and the same division
between files. The vocabularies are trained here, so the folders need no other package.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from ggtok.vocabularies.contents import Differs
from ggtok.vocabularies.convert.sentencepiece_model import (
    CHAR,
    UNIGRAM,
    SentencePiece,
    SentencePieceModel,
    write_model,
)
from ggtok.vocabularies.export.to_sentencepiece import sentencepiece
from ggtok.vocabularies.export.to_tokenizer_json import tokenizer_json
from ggtok.vocabularies.patterns import CHAIN_OF_PRE
from ggtok.vocabularies.spelling import from_characters

Json = dict[str, Any]
Files = dict[str, Any]  # contents by name: bytes, text, or a JSON value

_TEXT = "\n".join((*PROSE, *CODE)).encode("ascii", "ignore").decode()
_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
TEMPLATE = "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
PLAIN = dict.fromkeys(("lstrip", "rstrip", "single_word", "normalized"), False)


@dataclass(frozen=True)
class Shape:
    """A folder.

    Attributes:
        name: the repository or model with this shape.
        files: the folder's files.
        refused: the error's message, for a tokenizer that llama.cpp doesn't support.
        differs: the names of the differences that the report must have, because of which ids of
            texts may differ from transformers'.
        rule: who reads such a folder, if it needs code of the repository.
        says: parts of sentences in which the report may disagree with transformers.
    """

    name: str
    files: Files
    refused: str | None = None
    differs: frozenset[str] = frozenset()
    rule: str | None = None
    says: tuple[str, ...] = ()

    def write(self, folder: Path) -> Path:
        for name, value in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            if isinstance(value, bytes):
                path.write_bytes(value)
            else:
                text = value if isinstance(value, str) else json.dumps(value)
                path.write_text(text, encoding="utf-8")
        return folder


# ---- vocabularies ----


@cache
def _trained(model: str) -> ggtok.Vocabulary:
    """Returns a vocabulary of pieces with byte fallback ("spm"), or of N byte-level tokens."""
    if model == "spm":
        return ggtok.train(_TEXT, 420, model="spm", min_frequency=1)
    v = ggtok.train(_TEXT, N + 1, min_frequency=1)
    return replace(v, texts=v.texts[1:], types=v.types[1:], special_ids={})


N = 300  # the tokens of a byte-level vocabulary; added tokens follow


def token(id: int, content: str, special: bool = True, **flags: bool) -> Json:
    return {"id": id, "content": content, **PLAIN, "special": special, **flags}


def decoder(*tokens: Json) -> Json:
    """Returns an added_tokens_decoder."""
    return {str(row["id"]): {k: v for k, v in row.items() if k != "id"} for row in tokens}


def bpe(pre: str, *added: Json, **changes: Any) -> Json:
    """Returns a byte-level tokenizer.json with the published pre-tokenizer of a model."""
    v, chain = _trained("gpt2"), CHAIN_OF_PRE[pre]
    steps = (chain.published or (chain.steps,))[0]
    split = [
        {"type": "Split", "pattern": {"Regex": e}, "behavior": "Isolated", "invert": False}
        for e in steps
    ]
    document = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": list(added),
        "normalizer": None,
        "pre_tokenizer": {"type": "Sequence", "pretokenizers": [*split, _LEVEL]},
        "post_processor": {**_LEVEL, "add_prefix_space": True},
        "decoder": {**_LEVEL, "add_prefix_space": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": "",
            "end_of_word_suffix": "",
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": any(row.ignore_merges for row in chain.pres if row.name == pre),
            "vocab": {text.decode(): id for id, text in enumerate(v.texts)},
            "merges": [[left.decode(), right.decode()] for left, right in v.merge_texts or ()],
        },
    }
    model = {**document["model"], **changes.pop("model", {})}
    return {**document, **changes, "model": model}


def begins_with(text: str, id: int) -> Json:
    """Returns the post_processor that adds a token before a text."""
    return {
        "type": "TemplateProcessing",
        "single": [
            {"SpecialToken": {"id": text, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
        ],
        "pair": [
            {"SpecialToken": {"id": text, "type_id": 0}},
            {"Sequence": {"id": "A", "type_id": 0}},
            {"Sequence": {"id": "B", "type_id": 1}},
        ],
        "special_tokens": {text: {"id": text, "ids": [id], "tokens": [text]}},
    }


def ends_with(text: str, id: int) -> Json:
    """Returns the post_processor that adds a token after a text."""
    processor = begins_with(text, id)
    return {**processor, "single": processor["single"][::-1], "pair": processor["pair"][::-1]}


def slow_bpe(*added: str) -> Files:
    """Returns vocab.json and merges.txt."""
    v = _trained("gpt2")
    texts = [*(text.decode() for text in v.texts), *added]
    merges = [f"{left.decode()} {right.decode()}" for left, right in v.merge_texts or ()]
    return {
        "vocab.json": {text: id for id, text in enumerate(texts)},
        "merges.txt": "\n".join(["#version: 0.2", *merges, ""]),
    }


def _fail(reason: str) -> None:
    raise AssertionError(reason)


def spm_json(**changes: Any) -> Json:
    """Returns a byte-fallback tokenizer.json with a space before texts, as Llama 2's."""
    document: Json = json.loads(tokenizer_json(_trained("spm"), _fail))  # type: ignore[arg-type]
    return {**document, **changes}


@cache
def spm_model() -> bytes:
    return sentencepiece(_trained("spm"), Differs(allowed=False))


def pieces(model: SentencePieceModel, *more: SentencePiece) -> bytes:
    return write_model(replace(model, pieces=[*model.pieces, *more]))


@cache
def _unigram() -> SentencePieceModel:
    text = sorted({c for c in _TEXT if c.isprintable() and c != " " and ord(c) < 0x500})
    words = ["\u2581the", "\u2581and", "\u2581of", "ing", "\u2581to", "er", "\u2581"]
    rows = [
        SentencePiece(b"<unk>", 0.0, 2),
        SentencePiece(b"<s>", 0.0, 3),
        SentencePiece(b"</s>", 0.0, 3),
    ]
    rows += [SentencePiece(word.encode(), -2.0 - i / 8, 1) for i, word in enumerate(words)]
    rows += [SentencePiece(c.encode(), -6.0 - i / 64, 1) for i, c in enumerate(text)]
    return SentencePieceModel(rows, UNIGRAM, normalizer=b"identity")


def unigram_json(specials: tuple[str, ...], unk_id: int, **changes: Any) -> Json:
    vocab = [[text, 0.0] for text in specials]
    vocab += [[p.text.decode(), p.score] for p in _unigram().pieces[3:]]
    metaspace = {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always"}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [token(id, text) for id, text in enumerate(specials)],
        "normalizer": None,
        "pre_tokenizer": {
            "type": "Sequence",
            "pretokenizers": [{"type": "WhitespaceSplit"}, {**metaspace, "split": True}],
        },
        "post_processor": None,
        "decoder": None,
        "model": {"type": "Unigram", "unk_id": unk_id, "vocab": vocab, "byte_fallback": False},
        **changes,
    }


BERT = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BERT += [chr(c) for c in range(0x21, 0x7F) if chr(c) not in "[]"]
BERT += ["##" + c for c in "abcdefghijklmnopqrstuvwxyz0123456789"]
BERT += ["the", "##ing", "hello", "world", "[", "]"]


def wordpiece(lower: bool = True) -> Json:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [token(id, text) for id, text in enumerate(BERT[:5])],
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": True,
            "strip_accents": None,
            "lowercase": lower,
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "TemplateProcessing",
            "single": [
                {"SpecialToken": {"id": "[CLS]", "type_id": 0}},
                {"Sequence": {"id": "A", "type_id": 0}},
                {"SpecialToken": {"id": "[SEP]", "type_id": 0}},
            ],
            "pair": [],
            "special_tokens": {
                text: {"id": text, "ids": [BERT.index(text)], "tokens": [text]}
                for text in ("[CLS]", "[SEP]")
            },
        },
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
        "model": {
            "type": "WordPiece",
            "unk_token": "[UNK]",
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": {text: id for id, text in enumerate(BERT)},
        },
    }


@cache
def ranks() -> bytes:
    """Returns tiktoken's ranks: bytes and merges in order."""
    import base64

    v = ggtok.train(_TEXT, N + 1, rule="bytes", min_frequency=1)
    rows = [base64.b64encode(from_characters(text) or b"") for text in v.texts[1:]]
    return b"".join(b"%s %d\n" % (row, id) for id, row in enumerate(rows))


# ---- the shapes ----

_FAST = "PreTrainedTokenizerFast"
_PRE, _LOADER = "pre-tokenizer", "loader"


def _llama3(*added: Json, **config: Any) -> Files:
    tokens = [token(N, "<|begin_of_text|>"), token(N + 1, "<|eot_id|>"), *added]
    processor = begins_with("<|begin_of_text|>", N)
    names = {"bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>"}
    return {
        "tokenizer.json": bpe("llama-bpe", *tokens, post_processor=processor),
        "tokenizer_config.json": {
            "tokenizer_class": _FAST,
            **names,
            "added_tokens_decoder": decoder(*tokens),
            **config,
        },
    }


def _qwen(pre: str = "qwen2", **config: Any) -> Files:
    tokens = [token(N, "<|endoftext|>"), token(N + 1, "<|im_start|>"), token(N + 2, "<|im_end|>")]
    return {
        "tokenizer.json": bpe(pre, *tokens, normalizer={"type": "NFC"}),
        "tokenizer_config.json": {
            "tokenizer_class": "Qwen2Tokenizer",
            "bos_token": None,
            "eos_token": "<|im_end|>",
            "pad_token": "<|endoftext|>",
            "unk_token": None,
            "added_tokens_decoder": decoder(*tokens),
            "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
            "chat_template": TEMPLATE,
            **config,
        },
        "generation_config.json": {"eos_token_id": [N + 2, N]},
    }


def _generic(*added: Json, pre: str = "gpt-2", **config: Any) -> Files:
    """Returns a folder of a fine-tune: one end token, and what the configuration says."""
    tokens = [token(N, "<|endoftext|>"), *added]
    return {
        "tokenizer.json": bpe(pre, *tokens),
        "tokenizer_config.json": {
            "tokenizer_class": _FAST,
            "bos_token": "<|endoftext|>",
            "eos_token": "<|endoftext|>",
            **config,
        },
    }


def _simple(pre: str, class_: str, bos: str | None, eos: str, **config: Any) -> Files:
    """Returns a folder of a byte-level model that begins texts with BOS, if there is one."""
    texts = dict.fromkeys(text for text in (bos, eos) if text is not None)
    tokens = [token(N + i, text) for i, text in enumerate(texts)]
    changes = {} if bos is None else {"post_processor": begins_with(bos, N)}
    return {
        "tokenizer.json": bpe(pre, *tokens, **changes),
        "tokenizer_config.json": {
            "tokenizer_class": class_,
            "bos_token": bos,
            "eos_token": eos,
            "unk_token": None,
            "pad_token": eos,
            "added_tokens_decoder": decoder(*tokens),
            **config,
        },
    }


def _llama2(class_: str = "LlamaTokenizer", **config: Any) -> Json:
    tokens = [token(0, "<unk>"), token(1, "<s>"), token(2, "</s>")]
    return {
        "tokenizer_class": class_,
        "bos_token": "<s>",
        "eos_token": "</s>",
        "unk_token": "<unk>",
        "add_bos_token": True,
        "add_eos_token": False,
        "added_tokens_decoder": decoder(*tokens),
        **config,
    }


def _spm_added(*texts: str, special: bool = True, **flags: bool) -> list[Json]:
    n = len(_trained("spm"))
    return [token(n + i, text, special, **flags) for i, text in enumerate(texts)]


def shapes() -> list[Shape]:
    n = len(_trained("spm"))
    u = len(_unigram().pieces)
    mistral = _spm_added("[INST]", "[/INST]", "[TOOL_CALLS]")
    with_mistral = {"added_tokens": [*spm_json()["added_tokens"], *mistral]}
    phi3 = [
        token(0, "<unk>"),
        token(1, "<s>"),
        token(2, "</s>", False, rstrip=True),
        *_spm_added("<|endoftext|>"),
        *[{**row, "id": row["id"] + 1} for row in _spm_added("<|user|>", "<|end|>", rstrip=True)],
    ]
    first = {
        "type": "Metaspace",
        "replacement": "\u2581",
        "prepend_scheme": "first",
        "split": False,
    }
    gemma = {
        "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"},
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"String": " "},
            "behavior": "MergedWithPrevious",
            "invert": False,
        },
    }
    whisper = {f"<|{name}|>": N + 1 + i for i, name in enumerate(("startoftranscript", "en", "de"))}
    t5 = ("<pad>", "</s>", "<unk>")
    xlmr = ("<s>", "<pad>", "</s>", "<unk>")
    kimi = decoder(
        token(300, "[BOS]"), token(301, "[EOS]"), token(302, "<|im_end|>"), token(555, "[PAD]")
    )
    return [
        # ---- byte-level BPE ----
        Shape("Llama 3", _llama3(), differs=frozenset({_PRE})),
        Shape(
            "Llama 3.1 Instruct",
            {
                **_llama3(token(N + 2, "<|eom_id|>"), chat_template=TEMPLATE),
                "special_tokens_map.json": {"bos_token": "<|begin_of_text|>"},
                "generation_config.json": {"eos_token_id": [N + 1, N + 2]},
                "config.json": {
                    "model_type": "llama",
                    "vocab_size": N + 3,
                    "eos_token_id": [N + 1],
                },
            },
            differs=frozenset({_PRE}),
        ),
        Shape("Qwen 2.5", _qwen()),
        Shape("Qwen 3", {**_qwen(), "chat_template.jinja": TEMPLATE + "{# 3 #}"}),
        Shape(
            "Qwen 3 with model_type",
            {**_qwen(), "config.json": {"model_type": "qwen3", "vocab_size": N + 8}},
        ),
        Shape(
            "Qwen 2, slow files",
            {
                **slow_bpe(),
                "tokenizer_config.json": {
                    "tokenizer_class": "Qwen2Tokenizer",
                    "eos_token": "<|im_end|>",
                    "added_tokens_decoder": decoder(
                        token(N, "<|endoftext|>"), token(N + 1, "<|im_end|>")
                    ),
                },
            },
        ),
        Shape(
            "DeepSeek V3",
            _simple("deepseek-v3", "LlamaTokenizerFast", "<b>", "<e>", add_bos_token=True),
        ),
        Shape("gpt-oss", _simple("gpt-4o", _FAST, None, "<|return|>")),
        Shape("Phi 4", _simple("dbrx", "GPT2Tokenizer", "<|endoftext|>", "<|im_end|>")),
        Shape(
            "GLM 4",
            {
                **_simple("glm4", _FAST, None, "<|endoftext|>"),
                "config.json": {"model_type": "glm4", "eos_token_id": [N]},
            },
        ),
        Shape("OLMo", _simple("olmo", "GPTNeoXTokenizer", None, "<|endoftext|>")),
        Shape(
            "Command R",
            _simple(
                "command-r",
                "CohereTokenizer",
                "<BOS_TOKEN>",
                "<|END_OF_TURN_TOKEN|>",
                pad_token=None,
                cls_token=None,
                sep_token=None,
                mask_token=None,
            ),
            differs=frozenset({_LOADER}),
        ),
        Shape("Falcon", _simple("falcon", _FAST, None, "<|endoftext|>")),
        Shape(
            "StarCoder 2", _simple("starcoder", "GPT2Tokenizer", "<|endoftext|>", "<|endoftext|>")
        ),
        Shape("SmolLM", _simple("smollm", "GPT2Tokenizer", "<|im_start|>", "<|im_end|>")),
        Shape("Bloom", _simple("bloom", "BloomTokenizerFast", "<s>", "</s>")),
        Shape("Mistral Nemo", _simple("tekken", _FAST, "<s>", "</s>"), differs=frozenset({_PRE})),
        Shape("MiniCPM 5", _simple("minicpm5", _FAST, "<s>", "</s>")),
        Shape("Seed Coder", _simple("seed-coder", _FAST, "<s>", "</s>")),
        Shape("Hunyuan", _simple("hunyuan", _FAST, None, "<eos>")),
        Shape(
            "GPT-2",
            {
                "tokenizer.json": bpe("gpt-2", token(N, "<|endoftext|>")),
                "config.json": {
                    "model_type": "gpt2",
                    "vocab_size": N + 1,
                    "bos_token_id": N,
                    "eos_token_id": N,
                },
            },
        ),
        Shape(
            "GPT-2, slow files",
            {
                **slow_bpe("<|endoftext|>"),
                "config.json": {"model_type": "gpt2", "vocab_size": N + 1},
            },
        ),
        Shape(
            "RoBERTa, slow files",
            {
                **slow_bpe("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
                "config.json": {"model_type": "roberta"},
            },
        ),
        Shape(
            "BART, slow files",
            {
                **slow_bpe("<s>", "<pad>", "</s>", "<unk>", "<mask>"),
                "tokenizer_config.json": {"tokenizer_class": "BartTokenizer"},
            },
        ),
        Shape(
            "Whisper, slow files",
            {
                **slow_bpe("<|endoftext|>"),
                "added_tokens.json": whisper,
                "special_tokens_map.json": {
                    "bos_token": "<|endoftext|>",
                    "eos_token": "<|endoftext|>",
                    "additional_special_tokens": list(whisper),
                },
                "tokenizer_config.json": {"tokenizer_class": "WhisperTokenizer"},
            },
            says=("around a text",),
        ),
        # ---- byte fallback ----
        Shape(
            "Llama 2",
            {"tokenizer.json": spm_json(), "tokenizer_config.json": _llama2()},
            differs=frozenset({_LOADER}),
        ),
        Shape(
            "Llama 2, legacy",
            {"tokenizer.json": spm_json(), "tokenizer_config.json": _llama2(legacy=True)},
            differs=frozenset({_LOADER}),
        ),
        Shape(
            "TinyLlama",
            {
                "tokenizer.json": spm_json(normalizer=None, pre_tokenizer=first),
                "tokenizer_config.json": _llama2(legacy=False),
            },
            differs=frozenset({"space-prefix"}),
        ),
        Shape(
            "Mistral v1",
            {
                "tokenizer.json": spm_json(),
                "tokenizer_config.json": _llama2(),
                "config.json": {"model_type": "mistral", "vocab_size": n},
            },
        ),
        Shape(
            "Mistral v3",
            {
                "tokenizer.json": spm_json(**with_mistral),
                "tokenizer_config.json": {
                    **_llama2(),
                    "added_tokens_decoder": decoder(*spm_json()["added_tokens"], *mistral),
                },
                "config.json": {"model_type": "mistral", "vocab_size": n + 3},
            },
        ),
        Shape(
            "Gemma",
            {
                "tokenizer.json": spm_json(**gemma),
                "tokenizer_config.json": {
                    "tokenizer_class": "GemmaTokenizer",
                    "bos_token": "<s>",
                    "eos_token": "</s>",
                    "pad_token": None,
                    "mask_token": None,
                    "unk_token": "<unk>",
                },
            },
        ),
        Shape(
            "Phi 3",
            {
                "tokenizer.json": spm_json(added_tokens=phi3),
                "tokenizer_config.json": {
                    **_llama2(),
                    "eos_token": "<|endoftext|>",
                    "added_tokens_decoder": decoder(*phi3),
                },
                "generation_config.json": {"eos_token_id": [n, n + 2]},
                "config.json": {"model_type": "phi3"},
            },
        ),
        Shape(
            "Yi",
            {
                "tokenizer.json": spm_json(),
                "tokenizer_config.json": {
                    **_llama2(_FAST),
                    "additional_special_tokens": ["<|im_start|>", "<|im_end|>"],
                },
            },
        ),
        # ---- SentencePiece models ----
        Shape(
            "Llama 2, SentencePiece",
            {"tokenizer.model": spm_model(), "tokenizer_config.json": _llama2(legacy=True)},
            differs=frozenset({_LOADER}),
        ),
        Shape(
            "Llama 2 with a user-defined token",
            {
                "tokenizer.model": pieces(_read(spm_model()), SentencePiece(b"<sep>", 0.0, 4)),
                "tokenizer_config.json": _llama2(),
            },
            differs=frozenset({_LOADER, "user-defined"}),
        ),
        Shape(
            "Vicuna",
            {
                "tokenizer.model": spm_model(),
                "added_tokens.json": {"<pad>": n},
                "special_tokens_map.json": {
                    "bos_token": "<s>",
                    "eos_token": "</s>",
                    "pad_token": "<pad>",
                    "unk_token": "<unk>",
                },
                "tokenizer_config.json": {"tokenizer_class": "LlamaTokenizer"},
            },
            differs=frozenset({_LOADER}),
        ),
        Shape(
            "InternLM",
            {
                "tokenizer.model": spm_model(),
                "tokenizer_config.json": _llama2(
                    added_tokens_decoder=decoder(
                        token(0, "<unk>"),
                        token(1, "<s>"),
                        token(2, "</s>"),
                        *_spm_added("<|im_start|>", "<|im_end|>"),
                    )
                ),
            },
            differs=frozenset({_LOADER}),
        ),
        Shape(
            "Mistral, tokenizer.model.v3",
            {"tokenizer.model.v3": spm_model(), "tokenizer_config.json": _llama2()},
            rule="mistral-common",
        ),
        Shape(
            "T5, SentencePiece",
            {
                "spiece.model": write_model(_unigram()),
                "tokenizer_config.json": {
                    "tokenizer_class": "T5Tokenizer",
                    "extra_ids": 0,
                    "additional_special_tokens": [],
                    "eos_token": "</s>",
                    "unk_token": "<unk>",
                    "pad_token": "<s>",
                },
            },
            rule="sentencepiece",
        ),
        Shape(
            "XLM-RoBERTa, SentencePiece",
            {
                "sentencepiece.bpe.model": write_model(_unigram()),
                "config.json": {"model_type": "xlm-roberta"},
                "tokenizer_config.json": {"tokenizer_class": "XLMRobertaTokenizer"},
            },
            rule="fairseq",
        ),
        # ---- Unigram and WordPiece ----
        Shape(
            "T5",
            {
                "tokenizer.json": unigram_json(t5, 2, post_processor=ends_with("</s>", 1)),
                "tokenizer_config.json": {
                    "tokenizer_class": "T5Tokenizer",
                    "extra_ids": 0,
                    "eos_token": "</s>",
                    "unk_token": "<unk>",
                    "pad_token": "<pad>",
                    "additional_special_tokens": [],
                },
            },
            differs=frozenset({_PRE}),
        ),
        Shape(
            "Unigram, plain class",
            {
                "tokenizer.json": unigram_json(t5, 2),
                "tokenizer_config.json": {
                    "tokenizer_class": _FAST,
                    "eos_token": "</s>",
                    "unk_token": "<unk>",
                    "pad_token": "<pad>",
                },
            },
            differs=frozenset({_PRE}),
        ),
        Shape(
            "XLM-RoBERTa",
            {
                "tokenizer.json": unigram_json(
                    xlmr,
                    3,
                    added_tokens=[
                        *[token(i, t) for i, t in enumerate(xlmr)],
                        token(u + 1, "<mask>", lstrip=True),
                    ],
                    post_processor={
                        "type": "RobertaProcessing",
                        "sep": ["</s>", 2],
                        "cls": ["<s>", 0],
                        "trim_offsets": True,
                        "add_prefix_space": True,
                    },
                ),
                "config.json": {"model_type": "xlm-roberta"},
                "tokenizer_config.json": {
                    "tokenizer_class": "XLMRobertaTokenizer",
                    "mask_token": {
                        **PLAIN,
                        "lstrip": True,
                        "content": "<mask>",
                        "__type": "AddedToken",
                    },
                },
            },
            differs=frozenset({_PRE}),
        ),
        Shape(
            "BERT",
            {
                "tokenizer.json": wordpiece(),
                "tokenizer_config.json": {"do_lower_case": True},
                "config.json": {"model_type": "bert"},
            },
        ),
        Shape(
            "BERT, vocab.txt",
            {
                "vocab.txt": "\n".join([*BERT, ""]),
                "tokenizer_config.json": {
                    "tokenizer_class": "BertTokenizer",
                    "do_lower_case": True,
                },
            },
        ),
        Shape(
            "DistilBERT, cased",
            {
                "vocab.txt": "\n".join([*BERT, ""]),
                "tokenizer_config.json": {"do_lower_case": False},
                "config.json": {"model_type": "distilbert"},
            },
        ),
        Shape(
            "WordPiece, plain class",
            {
                "tokenizer.json": wordpiece(),
                "tokenizer_config.json": {
                    "tokenizer_class": _FAST,
                    "cls_token": "[CLS]",
                    "sep_token": "[SEP]",
                    "unk_token": "[UNK]",
                    "pad_token": "[PAD]",
                    "mask_token": "[MASK]",
                },
            },
        ),
        # ---- tiktoken ----
        Shape(
            "Llama 3, original",
            {
                "tokenizer.model": ranks(),
                "tokenizer_config.json": {
                    "tokenizer_class": _FAST,
                    "bos_token": "<|begin_of_text|>",
                    "eos_token": "<|eot_id|>",
                    "added_tokens_decoder": decoder(
                        token(300, "<|begin_of_text|>"), token(303, "<|eot_id|>")
                    ),
                },
            },
            differs=frozenset({_PRE}),
        ),
        Shape(
            "Kimi",
            {
                "tiktoken.model": ranks(),
                "tokenizer_config.json": {
                    "tokenizer_class": "TikTokenTokenizer",
                    "bos_token": "[BOS]",
                    "eos_token": "[EOS]",
                    "pad_token": "[PAD]",
                    "added_tokens_decoder": kimi,
                    "additional_special_tokens": ["<|im_end|>"],
                    "auto_map": {"AutoTokenizer": ["tokenization_kimi.TikTokenTokenizer", None]},
                },
                "generation_config.json": {"eos_token_id": 302},
            },
            rule="kimi",
        ),
        # ---- what fine-tunes do with the configuration ----
        Shape(
            "token in the configuration only",
            _generic(
                added_tokens_decoder=decoder(token(N, "<|endoftext|>"), token(N + 1, "<tool>"))
            ),
        ),
        Shape(
            "sparse ids",
            _generic(
                added_tokens_decoder=decoder(token(N, "<|endoftext|>"), token(N + 9, "<tool>"))
            ),
        ),
        Shape(
            "additional_special_tokens",
            _generic(
                additional_special_tokens=[
                    "<a>",
                    {**PLAIN, "content": "<b>", "__type": "AddedToken"},
                ]
            ),
        ),
        Shape("extra_special_tokens, list", _generic(extra_special_tokens=["<a>", "<b>"])),
        Shape(
            "extra_special_tokens, dict",
            _generic(extra_special_tokens={"image_token": "<image>", "boi_token": "<boi>"}),
        ),
        Shape("padding outside the vocabulary", _generic(pad_token="[PAD]")),
        Shape("EOS outside the vocabulary", _generic(eos_token="<|im_end|>")),
        Shape(
            "special in the configuration only",
            _generic(
                token(N + 1, "<x>", False),
                added_tokens_decoder=decoder(token(N, "<|endoftext|>"), token(N + 1, "<x>")),
            ),
        ),
        Shape(
            "ordinary in the configuration only",
            _generic(
                token(N + 1, "<x>"),
                added_tokens_decoder=decoder(token(N, "<|endoftext|>"), token(N + 1, "<x>", False)),
            ),
        ),
        Shape(
            "special_tokens_map.json decides",
            {
                **_generic(),
                "special_tokens_map.json": {
                    "eos_token": {**PLAIN, "content": "<|end|>"},
                    "pad_token": "<|endoftext|>",
                },
            },
        ),
        Shape(
            "added_tokens.json", {**_generic(), "added_tokens.json": {"<x>": N + 1, "<y>": N + 2}}
        ),
        Shape(
            "several ends in config.json",
            {
                **_generic(token(N + 1, "<e1>"), token(N + 2, "<e2>")),
                "config.json": {"model_type": "llama", "eos_token_id": [N, N + 1, N + 2]},
            },
        ),
        Shape(
            "templates in files",
            {
                **_generic(chat_template="old"),
                "chat_template.jinja": TEMPLATE,
                "additional_chat_templates/tool_use.jinja": "{{ tools }}",
            },
        ),
        Shape(
            "templates in a list",
            _generic(
                chat_template=[
                    {"name": "default", "template": TEMPLATE},
                    {"name": "rag", "template": "x"},
                ]
            ),
        ),
        Shape(
            "multimodal",
            {
                **_generic(image_token="<image>"),
                "config.json": {
                    "model_type": "llava",
                    "text_config": {"model_type": "llama", "vocab_size": N + 2},
                },
            },
        ),
        Shape(
            "tokenizer.json alone",
            {"tokenizer.json": bpe("gpt-2", token(N, "<|endoftext|>"))},
            rule="tokenizers",
        ),
        # ---- refused ----
        Shape(
            "CLIP",
            {
                "tokenizer.json": bpe("gpt-2", model={"end_of_word_suffix": "</w>"}),
                "config.json": {"model_type": "clip"},
            },
            refused="end_of_word_suffix",
        ),
        Shape(
            "CLIP, slow files",
            {**slow_bpe(), "tokenizer_config.json": {"tokenizer_class": "CLIPTokenizer"}},
            refused="tokenizer_class 'CLIPTokenizer'",
        ),
        Shape(
            "SentencePiece of characters",
            {"tokenizer.model": write_model(replace(_unigram(), model_type=CHAR))},
            refused="doesn't support char",
        ),
        Shape(
            "WordLevel",
            {
                "tokenizer.json": {
                    **wordpiece(),
                    "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
                }
            },
            refused="doesn't support 'WordLevel'",
        ),
        Shape(
            "MBart",
            {
                "sentencepiece.bpe.model": write_model(_unigram()),
                "tokenizer_config.json": {"tokenizer_class": "MBartTokenizer"},
            },
            refused="numbers its pieces",
        ),
        Shape(
            "an unknown pre-tokenizer",
            {
                "tokenizer.json": {
                    **bpe("gpt-2"),
                    "pre_tokenizer": {
                        "type": "Sequence",
                        "pretokenizers": [
                            {
                                "type": "Split",
                                "pattern": {"Regex": "x+"},
                                "behavior": "Isolated",
                                "invert": False,
                            },
                            _LEVEL,
                        ],
                    },
                }
            },
            refused="no pre-tokenizer of llama.cpp",
        ),
    ]


def _read(data: bytes) -> SentencePieceModel:
    from ggtok.vocabularies.convert.sentencepiece_model import read_model

    return read_model(data)


# ---- mutations: ten ways in which files of a folder come to disagree ----

Mutation = Callable[[Files], Files | None]  # None if the shape lacks what the mutation changes


def _config(files: Files, **changes: Any) -> Files:
    config = {**files.get("tokenizer_config.json", {}), **changes}
    return {**files, "tokenizer_config.json": config}


def _without(files: Files, name: str) -> Files | None:
    return {k: v for k, v in files.items() if k != name} if name in files else None


def _moved(files: Files) -> Files | None:
    """Moves the last added token of tokenizer.json to the configuration."""
    document = files.get("tokenizer.json")
    rows = document["added_tokens"] if document else []
    if not rows or rows[-1]["content"] in _texts_of_model(document):
        return None
    kept = {**files, "tokenizer.json": {**document, "added_tokens": rows[:-1]}}
    old = files.get("tokenizer_config.json", {}).get("added_tokens_decoder", {})
    return _config(kept, added_tokens_decoder={**old, **decoder(rows[-1])})


def _texts_of_model(document: Json) -> set[str]:
    vocab = document["model"]["vocab"]
    return set(vocab if isinstance(vocab, dict) else [row[0] for row in vocab])


def _flipped(files: Files) -> Files | None:
    document = files.get("tokenizer.json")
    if not document or not document["added_tokens"]:
        return None
    rows = [{**row, "special": not row["special"]} for row in document["added_tokens"]]
    return {**files, "tokenizer.json": {**document, "added_tokens": rows}}


def _renumbered(files: Files) -> Files | None:
    old = files.get("tokenizer_config.json", {}).get("added_tokens_decoder")
    if not old:
        return None
    last = max(map(int, old))
    moved = {str(last + 7 if int(id) == last else int(id)): row for id, row in old.items()}
    return _config(files, added_tokens_decoder=moved)


MUTATIONS: dict[str, Mutation] = {
    "no tokenizer_config.json": lambda files: _without(files, "tokenizer_config.json"),
    "no config.json": lambda files: _without(files, "config.json"),
    "a token moves to the configuration": _moved,
    "flags are flipped": _flipped,
    "another id in the configuration": _renumbered,
    "a new padding token": lambda files: _config(files, pad_token="<new-pad>"),
    "another token as EOS": lambda files: _config(files, eos_token="<new-eos>"),
    "more special tokens": lambda files: _config(files, additional_special_tokens=["<n1>", "<n2>"]),
    "other ends": lambda files: {**files, "generation_config.json": {"eos_token_id": [5, 6, 7, 8]}},
    "a template in a file": lambda files: {**files, "chat_template.jinja": "{{ messages }}"},
}
