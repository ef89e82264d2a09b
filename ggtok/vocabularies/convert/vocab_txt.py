"""Converts ``vocab.txt``: BERT's WordPiece, one line per token.

The file doesn't say how text is normalized, but tokenizer_config.json does. Both are converted to
the tokenizer.json that Hugging Face would make of them.
"""

from __future__ import annotations

import io
from typing import Any

from ggtok.errors import VocabError
from ggtok.vocabularies.convert.folder import Folder
from ggtok.vocabularies.convert.reading import MAX_TOKENS, field, read_text
from ggtok.vocabularies.convert.special import content_of
from ggtok.vocabularies.convert.tokenizer_json import Source
from ggtok.vocabularies.convert.vocab_merges import added_rows, class_row, special_texts

# Classes of transformers that are equal to BERT's.
_CLASSES = dict.fromkeys(
    (
        "",  # without a class
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


def source_of(path: str, folder: Folder) -> Source:
    """The tokenizer.json that is equivalent to the file and the configuration."""
    class_row(path, folder, _CLASSES)
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
    """Ids in the order of the lines. Of duplicate texts, the last counts, as in transformers."""
    text = read_text(path)
    if text.count("\n") > MAX_TOKENS:
        raise VocabError(f"{path}: more than {MAX_TOKENS} tokens: too large for a vocabulary")
    lines = enumerate(io.StringIO(text, newline=None))
    vocab = {token.rstrip("\n"): id for id, token in lines}
    vocab.pop("", None)
    return vocab
