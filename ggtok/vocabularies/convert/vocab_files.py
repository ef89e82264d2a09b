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
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

from ggtok.errors import VocabError, not_found
from ggtok.vocabularies.convert.folder import SourceFolder
from ggtok.vocabularies.convert.source_files import (
    MAX_TOKENS,
    field,
    read_text,
)
from ggtok.vocabularies.convert.tokenizer_classes import DEFAULTS
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson
from ggtok.vocabularies.patterns import CHAIN_OF_PRE

# ---- BPE ----

T = TypeVar("T")

MERGES = {"vocab.json": "merges.txt", "encoder.json": "vocab.bpe"}
_SUFFIX = "</w>"  # marks the ends of words in vocabularies such as CLIP's, XLM's and GPT-1's


class _Class(NamedTuple):
    """The rules of a tokenizer class in transformers.

    Attributes:
        pre: the name of the pre-tokenizer with its expressions, or None for GPT-2's.
        normalizer: the class's normalizer.
        around: the tokens added before and after a text, which have ids 0 and 2.
    """

    pre: str | None = None
    normalizer: dict[str, Any] | None = None
    around: tuple[str, str] | None = None


_ROBERTA = _Class(around=("<s>", "</s>"))
_CLASSES = {
    "GPT2Tokenizer": _Class(),
    "CodeGenTokenizer": _Class(),
    "WhisperTokenizer": _Class(),
    "Qwen2Tokenizer": _Class("qwen2", {"type": "NFC"}),
    "RobertaTokenizer": _ROBERTA,
    "BartTokenizer": _ROBERTA,
    "LEDTokenizer": _ROBERTA,
    "LongformerTokenizer": _ROBERTA,
    "MvpTokenizer": _ROBERTA,
}


def bpe_source_of(
    path: str, vocab: dict[str, Any], folder: SourceFolder, pre: str | None
) -> TokenizerJson:
    """Returns a tokenizer.json equivalent to the files.

    Args:
        path: the file with the tokens.
        vocab: its contents.
    """
    base, name = os.path.split(path)
    merges = os.path.join(base, MERGES.get(name, "merges.txt"))
    if not os.path.isfile(merges):
        raise not_found(f"{path}: {os.path.basename(merges)} is missing in the same folder")
    folder = _with_class(folder, "GPT2Tokenizer")
    row = class_row(path, folder, _CLASSES)
    merged = _merges(merges)
    _refuse_suffix(merges, merged)
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": row.normalizer,
        "pre_tokenizer": _pre_tokenizer(row, folder),
        "post_processor": _post_processor(row),
        "decoder": None,
        "model": {"type": "BPE", "vocab": vocab, "merges": merged},
    }
    return TokenizerJson(document, folder, pre, name=name)


def _with_class(folder: SourceFolder, name: str) -> SourceFolder:
    """Returns the folder, with this tokenizer class if its files don't name one."""
    return folder if folder.tokenizer_class else folder.of_class(name)


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


def class_row(path: str, folder: SourceFolder, rows: dict[str, T]) -> T:
    """Returns the row for the folder's tokenizer class.

    Raises:
        VocabError: the class isn't supported.
    """
    name = folder.tokenizer_class
    if name not in rows:
        known = ", ".join(rows)
        raise VocabError(
            f"{path}: tokenizer_class {name!r} isn't supported without a tokenizer.json "
            f"(supported: {known})"
        )
    return rows[name]


def _pre_tokenizer(row: _Class, folder: SourceFolder) -> dict[str, Any]:
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


# ---- WordPiece ----

# Classes in transformers that tokenize like BERT's.
_BERT_CLASSES: dict[str, None] = dict.fromkeys(
    name for name, special in DEFAULTS.items() if special == DEFAULTS["BertTokenizer"]
)


def wordpiece_source_of(path: str, text: str, folder: SourceFolder) -> TokenizerJson:
    """Returns a tokenizer.json equivalent to the file, whose contents are `text`, and the
    configuration."""
    folder = _with_class(folder, "BertTokenizer")
    class_row(path, folder, _BERT_CLASSES)
    vocab = _vocab(path, text)
    config, where = folder.tokenizer_config, "tokenizer_config.json"
    texts = {name: token.text for name, token in folder.named.items()}
    for name in ("unk", "sep", "cls"):
        if texts.get(name) not in vocab:
            raise VocabError(
                f"{path}: {texts.get(name)!r} is not a token, so this isn't a vocabulary of BERT's "
                "WordPiece"
            )
    document: dict[str, Any] = {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
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
            **{name: [texts[name], vocab[texts[name]]] for name in ("sep", "cls")},
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
    return TokenizerJson(document, folder, name=os.path.basename(path))


def _vocab(path: str, text: str) -> dict[str, int]:
    """Returns the ids by text, in the order of the lines. The last of duplicate texts counts, as in
    transformers."""
    if text.count("\n") > MAX_TOKENS:
        raise VocabError(f"{path}: more than {MAX_TOKENS} tokens: too large for a vocabulary")
    lines = enumerate(io.StringIO(text, newline=None))
    vocab = {token.rstrip("\n"): id for id, token in lines}
    vocab.pop("", None)
    return vocab
