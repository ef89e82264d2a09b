"""Converts Unigram in a tokenizer.json to llama.cpp's "t5"."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from ggtok.errors import UnknownPreTokenizerError, VocabError
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import Difference
from ggtok.vocabularies.convert import structure
from ggtok.vocabularies.convert.draft import Draft, Json, leading_space, unigram_fallback
from ggtok.vocabularies.convert.source_files import expect_type, field, token_id, utf8
from ggtok.vocabularies.convert.tokenizer_json import TokenizerJson, add_added
from ggtok.vocabularies.gguf_writer import CHARSMAP

_WHITE_SPACE = Difference(
    "pre-tokenizer",
    "the source splits text at all white space: llama.cpp only at spaces",
    without=lambda line: " ".join(line.split()),
)
_BYTE_TEXT = re.compile("<0x[0-9A-F]{2}>")
_BYTE_TEXTS = Difference(
    "byte-texts",
    "texts such as '<0x41>' are byte tokens in the source only",
    without=lambda line: _without(_BYTE_TEXT, line),
)
_SPACES = {"Regex": " {2,}"}  # the pattern of a Replace normalizer


def read_unigram(source: TokenizerJson, draft: Draft) -> None:
    """Reads tokens with their scores."""
    draft.model, draft.pre, draft.scores = "t5", "default", {}
    draft.filler_score = -10000.0
    fallback = field(source.model, "byte_fallback", bool, "model", False)
    for id, row in enumerate(field(source.model, "vocab", list, "model")):
        where = f"model.vocab[{id}]"
        pair = expect_type(row, list, where)
        if len(pair) != 2:
            raise VocabError(f"{where}: is not a pair of a text and a score")
        text = utf8(expect_type(pair[0], str, where + "[0]"), where)
        kind = spelling.NORMAL
        if fallback and spelling.is_byte_token(text):
            kind = spelling.BYTE
        draft.set(id, text, kind, expect_type(pair[1], float, where + "[1]"))
    unk = source.model.get("unk_id")
    if unk is not None:
        id = token_id(unk, "model.unk_id")
        if id not in draft.texts:
            raise VocabError(f"model.unk_id: {id} is not a token")
        draft.types[id] = spelling.UNKNOWN
        draft.special_ids["unk"] = id
    scores = dict(draft.scores)
    add_added(source, draft)
    draft.scores |= scores
    if unk is not None and all(row["id"] != unk for row in source.added):
        draft.differences.append(_unknown_text(draft.texts[unk].decode("utf-8", "replace")))
    if fallback:
        draft.differences.append(unigram_fallback(_without_fallback))
        draft.differences.append(_BYTE_TEXTS)
    _normalizers(source, draft)
    _spaces(source, draft)


def _normalizers(source: TokenizerJson, draft: Draft) -> None:
    draft.flags["remove_extra_whitespaces"] = False
    others = []
    for row in structure.normalizers_of(source.document.get("normalizer")):
        kind = field(row, "type", str, "normalizer")
        if kind == "Precompiled":
            draft.keys[CHARSMAP] = _charsmap(row)
        elif row.get("pattern") == _SPACES:
            draft.flags["remove_extra_whitespaces"] = True
        elif not _is_known(row):
            others.append(kind)
    if others:
        draft.differences.append(
            Difference(
                "normalizer",
                f"llama.cpp doesn't do what {', '.join(others)} does",
                change=_without_others,
            )
        )


def _is_known(row: Json) -> bool:
    """Whether llama.cpp supports this normalizer."""
    return row["type"] in ("Precompiled", "Strip") or row.get("pattern") == _SPACES


def _without_others(document: Json) -> None:
    rows = structure.normalizers_of(document["normalizer"])
    document["normalizer"] = {"type": "Sequence", "normalizers": list(filter(_is_known, rows))}


def _without(pattern: re.Pattern[str], line: str) -> str:
    """Removes what matches from a line, until nothing does."""
    before = ""
    while line != before:
        before, line = line, pattern.sub("", line)
    return line


def _unknown_text(text: str) -> Difference:
    pattern = re.compile(re.escape(text))
    return Difference(
        "unknown-text",
        f"llama.cpp parses {text!r} in a text as a special token, after which it adds a space",
        without=lambda line: _without(pattern, line),
    )


def _without_fallback(document: Json) -> None:
    document["model"]["byte_fallback"] = False


def _charsmap(row: dict[str, Any]) -> bytes:
    text = field(row, "precompiled_charsmap", str, "normalizer")
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise VocabError("normalizer.precompiled_charsmap: is not base64") from None


def _spaces(source: TokenizerJson, draft: Draft) -> None:
    prefix = True
    for row, at in structure.entries(
        source.document.get("pre_tokenizer"), "pretokenizers", "pre_tokenizer"
    ):
        kind = field(row, "type", str, at)
        if kind == "Metaspace":
            prefix = (
                row.get("prepend_scheme") != "never" and row.get("add_prefix_space") is not False
            )
        elif kind == "WhitespaceSplit":
            draft.flags["remove_extra_whitespaces"] = True
            if CHARSMAP not in draft.keys:
                draft.differences.append(_WHITE_SPACE)
        else:
            raise UnknownPreTokenizerError(
                f"{at}: {kind}: llama.cpp's Unigram vocabularies don't split text like this"
            )
    draft.flags["add_space_prefix"] = prefix
    if prefix and not draft.flags["remove_extra_whitespaces"]:
        draft.differences.append(leading_space([str(row.get("content")) for row in source.added]))
