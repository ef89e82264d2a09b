"""Gemma 4's vocabularies: characters, merges and byte fallback; text is split at newlines."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer

import ggtok
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert.lines import lines_for
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.pre_tokenizer_json import unmerged_run
from tests.making.convert import sources
from tests.support.llamacpp import LlamaCpp

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


@pytest.fixture
def exported(tmp_path: Path) -> Path:
    path = tmp_path / "tokenizer.json"
    sources.gemma4().save(path)
    return path


def report_of(path: Path, **options: Any) -> tuple[ggtok.Vocabulary, ConversionReport]:
    v = convert_source(str(path), **{"pre": None, "arch": None, "lines": 800} | options)
    assert isinstance(v.report, ConversionReport)
    return v, v.report


def published(path: Path) -> Path:
    """Returns a vocabulary like those in Gemma's files, which split text at spaces, although the
    normalizer replaces all spaces."""
    document = json.loads(path.read_bytes())
    document["pre_tokenizer"] = {
        "type": "Split",
        "pattern": {"String": " "},
        "behavior": "MergedWithPrevious",
        "invert": False,
    }
    return sources.write(path, document)


def test_exported_and_back(exported: Path, tmp_path: Path) -> None:
    v = sources.gemma4()
    tokenizer = Tokenizer.from_file(str(exported))
    lines = lines_for(v, 800)
    ours = v.tokenizer().encode_batch(lines, add_special=False, parse_special=True)
    theirs = [e.ids for e in tokenizer.encode_batch(lines, add_special_tokens=False)]
    assert theirs == ours
    again, report = report_of(exported)
    assert (again.model, again.pre, report.unexplained) == ("gemma4", None, ())
    assert again.merge_texts == list(dict.fromkeys(v.merge_texts or ()))
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == exported.read_bytes()


def test_it_is_recognized_by_its_architecture(exported: Path, tmp_path: Path) -> None:
    path = published(exported)
    v, report = report_of(path, arch="Gemma4ForCausalLM")
    assert v.model == "gemma4" and report.unexplained == ()
    assert "pre-tokenizer" in {difference.name for difference in report.differences}
    assert v.flags["add_bos"]
    v.save(tmp_path / "x.gguf")
    lines = [line.encode() for line in lines_for(v, 300)]
    with LlamaCpp() as llama:
        theirs = llama.load(str(tmp_path / "x.gguf")).tokenize_many(lines, True, True)
    assert ggtok.load(tmp_path / "x.gguf").encode_batch(lines, parse_special=True) == theirs
    assert ggtok.convert(path).model == "llama"
    assert ggtok.convert(path, pre="gemma4").model == "gemma4"
    document = json.loads(path.read_bytes())
    document["post_processor"] = None
    _, report = report_of(sources.write(path, document), arch="Gemma4ForCausalLM", lines=0)
    assert "always does" in str(report)
    prefix = {"type": "Prepend", "prepend": "\u2581"}
    document["normalizer"]["normalizers"].insert(0, prefix)
    with pytest.raises(ggtok.VocabError, match="puts a space before a text"):
        ggtok.convert(sources.write(path, document), arch="Gemma4ForCausalLM")


def test_newlines_that_no_merges_produce(exported: Path, tmp_path: Path) -> None:
    v = sources.gemma4()
    texts = [text.decode() for text in v.texts]
    runs = {text for text in texts if len(text) > 1 and not text.strip("\n")}
    merges = [(left.decode(), right.decode()) for left, right in v.merge_texts or ()]
    assert runs and unmerged_run(texts, merges) is None
    fewer = [pair for pair in merges if pair[0] + pair[1] not in runs]
    assert unmerged_run(texts, fewer) == min(runs, key=len)
    lacking = replace(v, merge_texts=[(a.encode(), b.encode()) for a, b in fewer])
    with pytest.raises(ggtok.VocabError, match=r"are a token in llama\.cpp, but no merges make it"):
        lacking.save(tmp_path / "tokenizer.json")
    document = json.loads(exported.read_bytes())
    model = document["model"]
    model["merges"] = [pair for pair in model["merges"] if "".join(pair) not in runs]
    _, report = report_of(sources.write(exported, document))
    (difference,) = report.differences
    assert difference.name == "ignore-merges" and difference.lines and report.unexplained == ()
