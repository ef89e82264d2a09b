"""Vocabularies come back from the folders that they are exported to."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import pytest

import ggtok
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.export.to_tokenizer_json import changed_types
from ggtok.vocabularies.spelling import UNUSED
from ggtok.vocabularies.vocabulary import Vocabulary
from tests.support.vocabularies import OTHERS, REAL, fixture, fixture_names, real

FOUND_WHOLE = ggtok.TokenAttr.CONTROL | ggtok.TokenAttr.USER_DEFINED | ggtok.TokenAttr.UNKNOWN
CHAT = "{% for m in messages %}{{ m.content }}{% endfor %}"


def round_trip(v: Vocabulary, folder: Path) -> Vocabulary | None:
    """Exports a vocabulary to a folder and converts the folder; returns None if the export says
    that a folder can't represent the vocabulary."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ggtok.VocabWarning)
        try:
            v.save_pretrained(folder, inexact=True)
        except ggtok.VocabError:
            return None
        reported = any("doesn't know unused tokens" in str(w.message) for w in caught)
        assert reported == (UNUSED in v.types)
        return convert_source(str(folder), pre=v.pre, arch=None, lines=0)


def is_found(tok: ggtok.Tokenizer, id: int) -> tuple[bool, bool]:
    """Whether llama.cpp looks for the token in texts, and whether it shows the token's text."""
    attr = tok.token_attr(id)
    return bool(attr & FOUND_WHOLE), bool(attr & ggtok.TokenAttr.USER_DEFINED)


def check(v: Vocabulary, back: Vocabulary) -> None:
    """Checks that the vocabulary is the same for llama.cpp."""
    assert back.texts == v.texts and back.model == v.model
    ours, theirs = back.tokenizer(), v.tokenizer()
    # A folder doesn't say which tokens are unused, nor, in BPE, which are unknown tokens: these are
    # control tokens afterwards, which llama.cpp finds in texts and hides just the same.
    wrong = [
        id
        for id in range(len(v))
        if is_found(ours, id) != is_found(theirs, id) and v.types[id] != UNUSED
    ]
    assert wrong == []
    differing: dict[tuple[int, int], list[int]] = {}
    for id, types in enumerate(zip(v.types, back.types, strict=True)):
        if types[0] != types[1]:
            differing.setdefault(types, []).append(id)
    assert differing == changed_types(v)  # which `ggtok export` reports
    if v.model == "t5":  # the only scores in tokenizer.json
        assert list(back.scores or ()) == list(v.scores or ())
    assert ours.eog_ids == theirs.eog_ids
    for name in "bos", "eos", "eot", "eom", "unk", "sep", "pad", "mask", "fim_pre", "fim_sep":
        id = v.special_ids.get(name)
        if id is not None and theirs.token_attr(id) & FOUND_WHOLE:
            assert getattr(ours, f"{name}_id") == id, name
    assert back.chat_template == v.chat_template
    if v.merge_texts is not None and v.model != "bert":
        assert list(back.merge_texts or ()) == list(dict.fromkeys(v.merge_texts))
    assert isinstance(back.report, ConversionReport)


@pytest.mark.parametrize("name", fixture_names())
def test_fixtures(name: str, tmp_path: Path) -> None:
    v = ggtok.vocabulary(fixture(name)) if name != "none" else None
    if v is None:
        return
    back = round_trip(v, tmp_path / "hf")
    if back is not None:
        check(v, back)


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real(name: str, tmp_path: Path) -> None:
    v = ggtok.vocabulary(real(name))
    back = round_trip(v, tmp_path / "hf")
    if back is not None:
        check(v, back)


def test_ends_and_names_come_back(tmp_path: Path) -> None:
    """EOT, EOM and FIM tokens without well-known texts, which only keys name."""
    v = ggtok.vocabulary(fixture("bpe-llama3"))
    control = [id for id, type in enumerate(v.types) if type == 3]
    names = dict(zip(("eot", "eom", "fim_pre", "fim_mid"), control[2:], strict=False))
    v = replace(v, special_ids={**v.special_ids, **names}, chat_template=CHAT)
    back = round_trip(v, tmp_path / "hf")
    assert back is not None
    assert {name: back.special_ids.get(name) for name in names} == names
    assert back.tokenizer().eog_ids == v.tokenizer().eog_ids
    assert back.chat_template == CHAT
    again = ggtok.vocabulary(back.gguf())
    assert again.special_ids == back.special_ids


def test_more_ends_than_keys_are_reported(tmp_path: Path) -> None:
    v = ggtok.vocabulary(fixture("bpe-llama3"))
    v.save_pretrained(tmp_path, inexact=True)
    (tmp_path / "generation_config.json").write_text(json.dumps({"eos_token_id": [5, 6, 7, 8]}))
    back = convert_source(str(tmp_path), pre=None, arch=None, lines=0)
    lost = [id for id in (5, 6, 7, 8) if not back.tokenizer().is_eog(id)]
    assert lost and "llama.cpp doesn't stop at" in str(back.report)
    assert "ends" in {row.name for row in back.report.differences}  # type: ignore[attr-defined]
