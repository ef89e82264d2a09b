"""Folders in the shapes of repositories become what transformers makes of them."""

from __future__ import annotations

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.vocabularies import spelling
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert.package_facts import PackageFacts
from ggtok.vocabularies.convert.source_formats import convert_source
from ggtok.vocabularies.vocabulary import Vocabulary
from tests.making.folders import oracle
from tests.making.folders.shapes import MUTATIONS, N, Shape, shapes

SHAPES = shapes()
KNOWN = [shape for shape in SHAPES if not shape.refused and not shape.rule]


@cache
def recorded() -> dict[str, dict[str, Any]]:
    return oracle.recorded()


def convert(folder: Path, lines: int = 0) -> tuple[Vocabulary, ConversionReport]:
    v = convert_source(str(folder), pre=None, arch=None, lines=lines)
    assert isinstance(v.report, ConversionReport)
    return v, v.report


def check(shape: Shape, v: Vocabulary, answer: dict[str, Any]) -> None:
    """Checks a conversion against what transformers knows, except for differences that the report
    names."""
    facts = PackageFacts.of_answer(answer["facts"])
    said = facts.disagreements(v)
    assert [each for each in said if not any(part in each for part in shape.says)] == []
    texts, tok = oracle.texts_for(facts), v.tokenizer()
    ours = tok.encode_batch(texts, add_special=False, parse_special=True)
    wrong = [t for t, a, b in zip(texts, ours, answer["ids"], strict=True) if a != b]
    if not shape.differs:
        assert wrong == []
    named = {row.name for row in v.report.differences} | {"loader"}  # type: ignore[attr-defined]
    assert shape.differs <= named


@pytest.mark.parametrize("shape", KNOWN, ids=lambda shape: shape.name)
def test_recorded(shape: Shape, tmp_path: Path) -> None:
    check(shape, convert(shape.write(tmp_path))[0], recorded()[shape.name])


def test_there_are_many_shapes() -> None:
    assert len(SHAPES) >= 60 and len({shape.name for shape in SHAPES}) == len(SHAPES)


@pytest.mark.full
@pytest.mark.parametrize("shape", KNOWN, ids=lambda shape: shape.name)
def test_live(shape: Shape) -> None:
    """The recorded answers are those of the installed transformers."""
    live, known = oracle.answer(shape), recorded()[shape.name]
    ours, theirs = PackageFacts.of_answer(live["facts"]), PackageFacts.of_answer(known["facts"])
    assert ours == theirs and live["ids"] == known["ids"]


@pytest.mark.parametrize("shape", [s for s in SHAPES if s.refused], ids=lambda shape: shape.name)
def test_refused(shape: Shape, tmp_path: Path) -> None:
    with pytest.raises(ggtok.GGTokError) as e:
        convert(shape.write(tmp_path))
    assert shape.refused is not None and shape.refused in str(e.value)


# ---- folders that transformers can't read without the repository's code ----


def named(name: str) -> Shape:
    return next(shape for shape in SHAPES if shape.name == name)


def test_kimi(tmp_path: Path) -> None:
    """tokenization_kimi.py reserves 256 ids after the ranks: listed tokens, and reserved ones."""
    v, _ = convert(named("Kimi").write(tmp_path))
    assert (len(v), v.pre) == (N + 256, "kimi-k2")
    assert v.special_ids | {"eom": 302} == {
        "bos": 300,
        "eos": 301,
        "pad": 555,
        "eom": 302,
        **{name: id for name, id in v.special_ids.items() if name == "eot"},
    }
    assert [v.texts[id] for id in (300, 303, 554, 555)] == [
        *(b"[BOS]", b"<|reserved_token_303|>", b"<|reserved_token_554|>", b"[PAD]"),
    ]
    assert set(v.types[N:]) == {spelling.CONTROL}
    tok = v.tokenizer()
    assert tok.encode("a<|im_end|>", parse_special=True)[-1] == 302 and tok.is_eog(302)


@pytest.mark.parametrize("name", ["tokenizer.model.v3", "source.spm", "tok.bpe", "vocabulary"])
def test_contents_decide(name: str, tmp_path: Path) -> None:
    """A SentencePiece model and tiktoken's ranks are recognized whatever their names are."""
    model = named("Mistral, tokenizer.model.v3").files["tokenizer.model.v3"]
    (tmp_path / name).write_bytes(model)
    v = ggtok.convert(tmp_path / name)
    assert v.model == "llama"
    assert convert(tmp_path)[0].texts == v.texts
    (tmp_path / name).write_bytes(named("Llama 3, original").files["tokenizer.model"])
    assert len(ggtok.convert(tmp_path / name, pre="llama-bpe")) == N


def test_other_files_are_named(tmp_path: Path) -> None:
    """Files that aren't tokenizers are named, whatever they are called."""
    for data, reason in (
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\n", "a Git LFS pointer"),
        (b"<!DOCTYPE html><html>", "a web page"),
        (b"PK\3\4....", "a zip archive"),
        (b"\x80\4K\1.", "a pickle"),
        (b"\0" * 64, "a file of zeros"),
    ):
        for name in "tokenizer.json", "tokenizer.model", "tokenizer_config.json":
            shape = named("token in the configuration only").write(tmp_path)
            (shape / name).write_bytes(data)
            path = shape if name != "tokenizer.model" else shape / name
            with pytest.raises(
                ggtok.VocabError, match=f"{name}: not a tokenizer's file but {reason}"
            ):
                ggtok.convert(path)


# ---- mutations ----

# The mutants of which transformers 5 makes something else than ggtok, which convert reports: ids
# that the configuration states for a SentencePiece model (transformers 4 and llama.cpp's converter
# use them), a class whose own EOS replaces that of the file, and user-defined pieces that
# additional_special_tokens make transformers forget.
REPORTED = {
    ("another id in the configuration", "InternLM"),
    ("another token as EOS", "T5"),
    ("another token as EOS", "XLM-RoBERTa"),
    ("more special tokens", "Llama 2 with a user-defined token"),
}


@pytest.mark.full
@pytest.mark.parametrize("mutation", MUTATIONS)
def test_mutations(mutation: str, tmp_path: Path) -> None:
    """A mutated folder becomes what transformers makes of it, is refused, or the report names the
    difference. It is never silently another vocabulary."""
    for i, shape in enumerate(KNOWN):
        files = MUTATIONS[mutation](shape.files)
        if files is None:
            continue
        folder = tmp_path / str(i)
        folder.mkdir()
        mutant = Shape(shape.name, files, differs=shape.differs, says=shape.says)
        try:
            answer = oracle.answer(mutant)
        except Exception:  # transformers can't load it, so nothing is known
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                v, _ = convert(mutant.write(folder))
        except ggtok.GGTokError:
            continue
        said = PackageFacts.of_answer(answer["facts"]).disagreements(v)
        unnamed = [each for each in said if not any(part in each for part in mutant.says)]
        # The check of a conversion says the same and refuses the vocabulary.
        assert bool(unnamed) == ((mutation, shape.name) in REPORTED), (shape.name, unnamed)
