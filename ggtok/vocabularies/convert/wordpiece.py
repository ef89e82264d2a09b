"""Converts WordPiece in a tokenizer.json to llama.cpp's "bert"."""

from __future__ import annotations

import itertools
import re
import unicodedata

from ggtok.errors import VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.draft import Draft, Json
from ggtok.vocabularies.convert.source_files import field, utf8
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson, add_added, vocab_of
from ggtok.vocabularies.wordpiece_json import UNLIMITED, wordpiece_steps

_MARK = "\u2581".encode()
_KEYS = "tokenizer.ggml.normalizer."
# Characters that are punctuation either in Unicode 8 (as in tokenizers' BertPreTokenizer) or in
# Unicode 15.1, but not in both.
_PUNCTUATION = re.compile(
    "["
    "\u061d\u09fd\u0a76\u0c77\u0c84\u166d\u1b7d\u1b7e\u2e43-\u2e4f\u2e52-\u2e5d\U00010ead"
    "\U00010f55-\U00010f59\U00010f86-\U00010f89\U000111c9\U0001144b-\U0001144f"
    "\U0001145a\U0001145b\U0001145d\U00011660-\U0001166c\U000116b9\U0001183b"
    "\U00011944-\U00011946\U000119e2\U00011a3f-\U00011a46\U00011a9a-\U00011a9c"
    "\U00011a9e-\U00011aa2\U00011b00-\U00011b09\U00011c41-\U00011c45\U00011c70\U00011c71"
    "\U00011ef7\U00011ef8\U00011f43-\U00011f4f\U00011fff\U00012ff1\U00012ff2"
    "\U00016e97-\U00016e9a\U00016fe2\U0001e95e\U0001e95f"
    "]"
)
_BERT: Json = {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True}


def read_wordpiece(source: TokenizerJson, draft: Draft) -> None:
    """Reads tokens. In llama.cpp, a word's first token starts with U+2581, and the others have no
    prefix."""
    key = "continuing_subword_prefix"
    prefix = utf8(field(source.model, key, str, "model", "##"), f"model.{key}")
    exported = None if prefix else _exported_flags(source)
    vocab = vocab_of(source)
    draft.model = "bert"
    for id, text in vocab.items():
        data = utf8(text, f"model.vocab: token {id}")
        if exported is None:
            goes_on = data.startswith(prefix)
            data = data[len(prefix) :] if goes_on else _MARK + data
        draft.set(id, data, spelling.NORMAL)
    unk = field(source.model, "unk_token", str, "model", "[UNK]")
    unk_id = next((id for id, text in vocab.items() if text == unk), None)
    if unk_id is None:
        raise VocabError(f"model.unk_token: {unk!r} is not a token")
    draft.special_ids["unk"] = unk_id
    _name_unnamed(draft, vocab)
    add_added(source, draft)
    if exported is None:
        _normalizer(source, draft)
    else:
        draft.keys |= exported
        if source.model.get("max_input_chars_per_word") != UNLIMITED:
            draft.differences.append(
                Difference(
                    "wordpiece", "llama.cpp has no limit on words", change=_remove_word_limit
                )
            )


def _exported_flags(source: TokenizerJson) -> dict[str, object]:
    """Returns the flags of a vocabulary exported by ggtok, in which U+2581 marks the beginnings of
    words."""
    document = source.document
    steps = structure.normalizers_of(document.get("normalizer"))
    if steps and steps[0].get("type") == "Prepend":
        mapped = any(step.get("type") == "Precompiled" for step in steps)
        for strip, lower in itertools.product((True, False), repeat=2):
            if mapped != (strip or lower):
                continue
            written = wordpiece_steps(strip, lower)
            if all(document.get(key) == written[key] for key in ("normalizer", "pre_tokenizer")):
                return {_KEYS + "lowercase": lower, _KEYS + "strip_accents": strip}
    raise VocabError(
        "model.continuing_subword_prefix: is empty: llama.cpp needs one, unless the normalizer and "
        "the pre_tokenizer mark words exactly as ggtok's export does (have they been changed?)"
    )


def _name_unnamed(draft: Draft, vocab: dict[int, str]) -> None:
    """Keeps the text of a token that is only a prefix such as ##, which no word produces."""
    for id, text in draft.texts.items():
        if not text:
            draft.texts[id], draft.types[id] = vocab[id].encode(), spelling.UNUSED


def _normalizer(source: TokenizerJson, draft: Draft) -> None:
    """Sets the flags of llama.cpp's normalizer, and adds differences.

    llama.cpp normalizes like BertNormalizer, and splits text like BertPreTokenizer.
    """
    lower, accents = False, False
    rows = structure.normalizers_of(source.document.get("normalizer"))
    for row in rows:
        kind = field(row, "type", str, "normalizer")
        if kind == "BertNormalizer":
            lower = field(row, "lowercase", bool, "normalizer", True)
            accents = field(row, "strip_accents", bool, "normalizer", lower)
        elif kind == "Lowercase":
            lower = True
        elif kind == "StripAccents":
            accents = True
    draft.keys[_KEYS + "lowercase"] = lower
    draft.keys[_KEYS + "strip_accents"] = accents
    _note_steps(source, draft, rows, {**_BERT, "strip_accents": accents, "lowercase": lower})
    draft.differences.append(
        Difference(
            "wordpiece",
            "llama.cpp keeps the first code point of a decomposition, lower-cases code point by "
            "code point, knows newer punctuation, and has no limit on a word's length "
            f"({source.model.get('max_input_chars_per_word', 100)} characters in the source)",
            change=_remove_word_limit,
            without=_without_rare,
        )
    )


def _note_steps(source: TokenizerJson, draft: Draft, rows: list[Json], normalizer: Json) -> None:
    """Adds the source's differences from BertNormalizer and BertPreTokenizer."""
    if len(rows) != 1 or any(rows[0].get(key, value) != value for key, value in _BERT.items()):
        names = ", ".join(row["type"] for row in rows) or "no normalizer"
        draft.differences.append(
            Difference(
                "normalizer",
                "llama.cpp removes control characters, and splits at Chinese characters: "
                f"the source has {names} instead",
                change=lambda document: document.update(normalizer=normalizer),
            )
        )
    steps = structure.entries(
        source.document.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer"
    )
    kinds = [field(row, "type", str, at) for row, at in steps]
    if kinds != ["BertPreTokenizer"]:
        names = ", ".join(kinds) or "no pre_tokenizer"
        draft.differences.append(
            Difference(
                "pre-tokenizer",
                "llama.cpp splits text at white space and at each punctuation mark and symbol: "
                f"the source has {names} instead",
                change=lambda document: document.update(pre_tokenizer={"type": "BertPreTokenizer"}),
            )
        )


def _without_rare(line: str) -> str:
    return "".join(c for c in line if not _is_rare(c))


def _is_rare(c: str) -> bool:
    """Whether the source and llama.cpp may normalize the character differently."""
    if ord(c) < 0x80:
        return ord(c) < 0x20 or ord(c) == 0x7F
    decomposed = unicodedata.normalize("NFD", c)
    marks = [unicodedata.category(d) == "Mn" for d in decomposed]
    return (
        c == "\u2581"
        or _PUNCTUATION.match(c) is not None
        or unicodedata.category(c)[0] in "MC"
        or not all(marks[1:])
        or len(c.lower()) != 1
    )


def _remove_word_limit(document: Json) -> None:
    document["model"]["max_input_chars_per_word"] = UNLIMITED
