"""Tokenizer.stats equals counting one character and one token at a time."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable

import pytest

import ggtok
from ggtok.text import measure as module
from ggtok.text.stats import Row
from tests.support.vocabularies import fixture_names

Load = Callable[[str], ggtok.Tokenizer]

TEXTS = {
    "english": "The kettle isn't on; 42 don't.\n\n  It's café time\t!",
    "mixed": "Привет, мир! Καλημέρα 你好世界 カタカナ ひらがな 한국어 नमस्ते \U0001f600 e\u0301x ٣٤",
    "empty": "",
    "spaces": " \n\t ",
}
ORDER = {name: i for i, name in enumerate(module.NAMES)}


def kind_of(c: str) -> str:
    if c.isspace():
        return "white space"
    category = unicodedata.category(c)[0]
    if category == "N":
        return "digits"
    if category not in "LM":
        return "punctuation and symbols"
    if c in "\u0301\u0300":
        return "marks"
    if category == "M" and "DEVANAGARI" in unicodedata.name(c):
        return "Devanagari"
    scripts = {"CJK": "Han"}
    first = unicodedata.name(c).split()[0]
    return scripts.get(first, first.title())


def greatest(kinds: list[str]) -> str:
    return max(kinds, key=ORDER.__getitem__)


def counted(tok: ggtok.Tokenizer, text: str) -> dict[str, Row]:
    data = text.encode()
    kinds = [kind_of(c) for c in text for _ in c.encode()]
    rows: dict[str, Row] = {}
    _, spans = tok.encode_with_offsets(text, add_special=False)
    spans_of = [(b, e) for b, e in spans.tolist() if b < e]
    covered: set[int] = set()
    for begin, end in spans_of:
        kind = greatest(kinds[begin:end])
        new = set(range(begin, end)) - covered
        rows.setdefault(kind, Row()).add(Row(1, len(new)))
        covered |= new
    at = 0
    while at < len(data):
        end = at
        while end < len(data) and ORDER[kinds[end]] >= ORDER["marks"]:
            end += 1
        if end == at:
            at += 1
            continue
        kind = greatest(kinds[at:end])
        if kind != "marks":
            space = at and kinds[at - 1] == "white space"
            inside = [(b, e) for b, e in spans_of if b < end and e > at]
            single = inside in ([(at, end)], [(at - 1, end)] if space else [])
            rows.setdefault(kind, Row()).add(Row(words=1, single=single))
        at = end
    return rows


@pytest.mark.parametrize("name", fixture_names())
def test_stats_equal_simple_counts(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    if tok.vocab_type == "NONE":
        with pytest.raises(ggtok.VocabError):
            tok.stats(TEXTS)
        return
    stats = tok.stats(TEXTS)
    scripts: dict[str, Row] = {}
    for label, text in TEXTS.items():
        total = Row()
        for kind, row in counted(tok, text).items():
            scripts.setdefault(kind, Row()).add(row)
            total.add(row)
        assert stats.texts[label] == total, label
    assert stats.scripts == scripts
    assert stats.total.tokens == sum(row.tokens for row in scripts.values())
    used = {id for text in TEXTS.values() for id in tok.encode(text, add_special=False)}
    assert stats.used == len(used)
    assert stats.unused == tok.n_tokens - len(used | tok.special_ids)
    pieces = [tok.token_to_piece(id) for id in range(tok.n_tokens) if id not in tok.special_ids]
    assert stats.vocabulary_lengths == Counter(map(len, pieces))
    assert sum(stats.vocabulary_scripts.values()) == sum(map(bool, pieces))
    json.dumps(stats.to_dict())
    assert "bytes/token" in str(stats)


def test_iterables_and_parts(load_fixture: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    tok = load_fixture("bpe-llama3")
    named = tok.stats(TEXTS)
    listed = tok.stats(iter(TEXTS.values()), threads=2)
    assert listed.texts == {}
    assert (listed.total, listed.scripts) == (named.total, named.scripts)
    lines = "a line of text \N{SNOWMAN}\n" * 50
    whole = tok.stats([lines])
    monkeypatch.setattr(module, "_PART", 64)
    assert tok.stats([lines]) == whole
    # A text without line ends is divided, too.
    assert tok.stats(["\N{SNOWMAN}" * 100]).total.bytes == 300


def test_bytes_that_are_not_utf8(load_fixture: Load) -> None:
    tok = load_fixture("bpe-llama3")
    stats = tok.stats([b"a\xff\xfe b"])
    assert stats.total.bytes == 5
    assert stats.scripts["Latin"].words == 2


def test_only_the_vocabulary(load_fixture: Load) -> None:
    stats = load_fixture("spm").stats()
    assert stats.total == Row()
    assert stats.vocabulary_scripts["Latin"] > 10


def test_wrong_arguments(load_fixture: Load) -> None:
    tok = load_fixture("spm")
    for texts in ("text", b"text", 1, [1]):
        with pytest.raises(ggtok.InvalidTypeError):
            tok.stats(texts)  # type: ignore[arg-type]
