"""Converts the files of slow tokenizers: ``vocab.json`` with ``merges.txt``, and ``vocab.txt``.

The first two (in older folders ``encoder.json`` and ``vocab.bpe``) are BPE, the last is BERT's
WordPiece with one line per token. The files don't say how text is split and normalized, but the
class in tokenizer_config.json does. The files are converted to the tokenizer.json that Hugging Face
would create from them. Unknown classes are refused, because their files may look the same but have
a different meaning.
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ggtok.errors import VocabError, not_found
from ggtok.vocabularies.convert.draft import content_of
from ggtok.vocabularies.convert.reading import (
    MAX_TOKENS,
    Folder,
    field,
    read_object,
    read_text,
    token_id,
)
from ggtok.vocabularies.convert.tokenizer_json import Source
from ggtok.vocabularies.patterns import CHAIN_OF_PRE

# ---- BPE ----

T = TypeVar("T")

_END = "<|endoftext|>"
MERGES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}
_SUFFIX = "</w>"  # marks the ends of words in vocabularies such as CLIP's, XLM's and GPT-1's


class _Class(NamedTuple):
    """The rules of a tokenizer class in transformers.

    Attributes:
        special: the default special tokens.
        pre: the name of the pre-tokenizer with its expressions, or None for GPT-2's.
        normalizer: the class's normalizer.
        around: the tokens added before and after a text, which have ids 0 and 2.
    """

    special: Mapping[str, Any]
    pre: str | None = None
    normalizer: dict[str, Any] | None = None
    around: tuple[str, str] | None = None


_GPT2 = _Class(dict.fromkeys(("bos", "eos", "unk"), _END))
_ROBERTA = _Class(
    {
        "bos": "<s>",
        "eos": "</s>",
        "unk": "<unk>",
        "sep": "</s>",
        "pad": "<pad>",
        "cls": "<s>",
        "mask": {"content": "<mask>", "lstrip": True},
    },
    around=("<s>", "</s>"),
)
_CLASSES = {
    "": _GPT2,  # for folders that name no class
    "GPT2Tokenizer": _GPT2,
    "CodeGenTokenizer": _GPT2,
    "Qwen2Tokenizer": _Class(dict.fromkeys(("eos", "unk", "pad"), _END), "qwen2", {"type": "NFC"}),
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": _ROBERTA,
    "LEDTokenizer": _ROBERTA,
    "LongformerTokenizer": _ROBERTA,
    "MvpTokenizer": _ROBERTA,
}
_NAMES = ("bos", "eos", "unk", "sep", "pad", "cls", "mask")
_CONDITIONS = ("single_word", "lstrip", "rstrip", "normalized")


def bpe_source_of(path: str, folder: Folder, pre: str | None) -> Source:
    """Returns a tokenizer.json equivalent to the files."""
    base, name = os.path.split(path)
    merges = os.path.join(base, MERGES[name])
    if not os.path.isfile(merges):
        raise not_found(f"{path}: {MERGES[name]} is missing in the same folder")
    row = class_row(path, folder, _CLASSES)
    vocab, merged = read_object(path), _merges(merges)
    _refuse_suffix(merges, merged)
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_rows(folder, vocab, row.special),
        "normalizer": row.normalizer,
        "pre_tokenizer": _pre_tokenizer(row, folder),
        "post_processor": _post_processor(row),
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": merged},
    }
    return Source(document, folder, pre, special=special_texts(folder, vocab, row.special))


def _merges(path: str) -> list[str]:
    text = read_text(path)
    if text.count("\n") > MAX_TOKENS:
        raise VocabError(f"{path}: more than {MAX_TOKENS} merges: too large for a vocabulary")
    lines = text.split("\n")
    if lines and lines[0].startswith("#version"):
        lines = lines[1:]
    return [line.removesuffix("\r") for line in lines if line.strip()]


def _refuse_suffix(path: str, merges: Sequence[str]) -> None:
    """Raises VocabError for merges of characters with a suffix that marks the ends of words."""
    pairs = [merge.split(" ") for merge in merges]
    results = {"".join(pair) for pair in pairs}
    for number, pair in enumerate(pairs, 1):
        for part in pair:
            if len(part) > len(_SUFFIX) and part.endswith(_SUFFIX) and part not in results:
                raise VocabError(
                    f"{path}: merge {number} has {part!r}: words end with {_SUFFIX!r} "
                    "(end_of_word_suffix), which llama.cpp's BPE doesn't support"
                )


def class_row(path: str, folder: Folder, rows: dict[str, T]) -> T:
    """Returns the row for the folder's tokenizer class (without "Fast"), or the row for "" if the
    folder names no class.

    Raises:
        VocabError: the class isn't supported.
    """
    name = folder.tokenizer_class.removesuffix("Fast")
    if name not in rows:
        known = ", ".join(filter(None, rows))
        raise VocabError(
            f"{path}: tokenizer_class {name!r} isn't supported without a tokenizer.json "
            f"(supported: {known})"
        )
    return rows[name]


def _pre_tokenizer(row: _Class, folder: Folder) -> dict[str, Any]:
    space = field(folder.tokenizer_config, "add_prefix_space", bool, "tokenizer_config.json", False)
    level = {"type": "ByteLevel", "add_prefix_space": space, "trim_offsets": True}
    if row.pre is None:
        return {**level, "use_regex": True}
    (pattern,) = CHAIN_OF_PRE[row.pre].published[0]
    split = {
        "type": "Split",
        "pattern": {"Regex": pattern},
        "behavior": "Isolated",
        "invert": False,
    }
    return {"type": "Sequence", "pretokenizers": [split, {**level, "use_regex": False}]}


def _post_processor(row: _Class) -> dict[str, Any] | None:
    if row.around is None:
        return None
    before, after = row.around
    return {"type": "RobertaProcessing", "sep": [after, 2], "cls": [before, 0]}


def _special(folder: Folder, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the special tokens by name, each as a text or an object. They come from the
    configuration or else from the class's defaults."""
    config = folder.tokenizer_config
    return {name: config.get(f"{name}_token", defaults.get(name)) for name in _NAMES}


def special_texts(
    folder: Folder, vocab: Mapping[str, Any], defaults: Mapping[str, Any]
) -> dict[str, str]:
    """Returns the texts of the special tokens in the vocabulary, by llama.cpp's names."""
    texts = {name: content_of(entry) for name, entry in _special(folder, defaults).items()}
    known = {name: text for name, text in texts.items() if text is not None and text in vocab}
    first = known.pop("cls", None)
    return known if first is None else {"bos": first, **known}


def added_rows(
    folder: Folder, vocab: Mapping[str, Any], defaults: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Returns the added tokens for the equivalent tokenizer.json.

    They come from added_tokens.json and then from tokenizer_config.json, which has more details.
    """
    rows: dict[int, dict[str, Any]] = {}
    for id, entry in folder.added():
        rows[id] = _added_row(id, entry)
    for entry in _special(folder, defaults).values():
        named = content_of(entry)
        if named is not None and named in vocab:
            id = token_id(vocab[named], f"vocab: {named!r}")
            rows.setdefault(id, {**_added_row(id, entry), "special": True})
    return list(rows.values())


def _added_row(id: int, entry: Any) -> dict[str, Any]:
    """Creates a row of added_tokens from a text, or from an object with conditions."""
    if isinstance(entry, dict):
        conditions = {name: entry.get(name, False) for name in _CONDITIONS}
        row = {"content": entry.get("content"), "special": entry.get("special", False)}
        return {"id": id, **row, **conditions}
    return {"id": id, "content": entry, "special": False, **dict.fromkeys(_CONDITIONS, False)}


# ---- WordPiece ----

# Classes in transformers that tokenize like BERT's.
_BERT_CLASSES = dict.fromkeys(
    (
        "",  # for folders that name no class
        "BertTokenizer",
        "ConvBertTokenizer",
        "DistilBertTokenizer",
        "ElectraTokenizer",
        "LayoutLMTokenizer",
        "LxmertTokenizer",
        "MobileBertTokenizer",
        "RetriBertTokenizer",
        "SqueezeBertTokenizer",
    )
)
_TOKENS = {name: f"[{name.upper()}]" for name in ("unk", "sep", "pad", "cls", "mask")}


def wordpiece_source_of(path: str, folder: Folder) -> Source:
    """Returns a tokenizer.json equivalent to the file and the configuration."""
    class_row(path, folder, _BERT_CLASSES)
    vocab = _vocab(path)
    config, where = folder.tokenizer_config, "tokenizer_config.json"
    texts = {name: content_of(config.get(f"{name}_token", _TOKENS[name])) for name in _TOKENS}
    for name in ("unk", "sep", "cls"):
        if texts[name] not in vocab:
            raise VocabError(
                f"{path}: {texts[name]!r} is not a token, so this isn't a vocabulary of BERT's "
                "WordPiece"
            )
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added_rows(folder, vocab, _TOKENS),
        "normalizer": {
            "type": "BertNormalizer",
            "clean_text": True,
            "handle_chinese_chars": field(config, "tokenize_chinese_chars", bool, where, True),
            "strip_accents": field(config, "strip_accents", bool, where, None),
            "lowercase": field(config, "do_lower_case", bool, where, True),
        },
        "pre_tokenizer": {"type": "BertPreTokenizer"},
        "post_processor": {
            "type": "BertProcessing",
            **{name: [texts[name], vocab[str(texts[name])]] for name in ("sep", "cls")},
        },
        "decoder": None,
        "model": {
            "type": "WordPiece",
            "unk_token": texts["unk"],
            "continuing_subword_prefix": "##",
            "max_input_chars_per_word": 100,
            "vocab": vocab,
        },
    }
    return Source(document, folder, special=special_texts(folder, vocab, _TOKENS))


def _vocab(path: str) -> dict[str, int]:
    """Returns the ids by text, in the order of the lines. The last of duplicate texts counts, as in
    transformers."""
    text = read_text(path)
    if text.count("\n") > MAX_TOKENS:
        raise VocabError(f"{path}: more than {MAX_TOKENS} tokens: too large for a vocabulary")
    lines = enumerate(io.StringIO(text, newline=None))
    vocab = {token.rstrip("\n"): id for id, token in lines}
    vocab.pop("", None)
    return vocab
