"""Folders are compared with transformers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok import cli
from ggtok.vocabularies.contents import ConversionReport
from ggtok.vocabularies.convert import originals, vocab_files
from tests.making.convert import sources

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")


def report_of(v: ggtok.Vocabulary) -> ConversionReport:
    assert isinstance(v.report, ConversionReport)
    return v.report


def folder(path: Path, document: dict[str, Any] | None = None, **config: Any) -> Path:
    """Creates a folder with vocab.json and merges.txt, or with a tokenizer.json."""
    if document is None:
        model = sources.bpe()["model"]
        merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
        sources.write(path / "vocab.json", model["vocab"])
        sources.write(path / "merges.txt", "#version: 0.2\n" + "\n".join(merges) + "\n")
    else:
        sources.write(path / "tokenizer.json", document)
    sources.write(path / "tokenizer_config.json", config)
    return path


@pytest.mark.parametrize("class_", ["GPT2Tokenizer", "Qwen2Tokenizer"])
def test_transformers_judges_a_folder(class_: str, tmp_path: Path) -> None:
    report = report_of(ggtok.convert(folder(tmp_path, tokenizer_class=class_)))
    assert (report.judge, report.compared, report.unexplained) == ("transformers", 300, ())
    assert "tokens and 300 lines: none differs" in str(report) and report.disagreements == ()
    alone = report_of(ggtok.convert(tmp_path / "vocab.json"))
    assert alone.judge == "tokenizers"


def test_bert(tmp_path: Path) -> None:
    texts = sources.wordpiece()["model"]["vocab"]
    sources.write(tmp_path / "vocab.txt", "".join(f"{text}\n" for text in texts))
    config = {"tokenizer_class": "DistilBertTokenizer", "do_lower_case": False}
    sources.write(tmp_path / "tokenizer_config.json", config)
    report = report_of(ggtok.convert(tmp_path))
    assert (report.judge, report.unexplained) == ("transformers", ())


def test_a_class_that_is_read_wrongly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    """tokenizers agrees with ggtok's wrong rules for the class, since it loads the document that
    ggtok creates by them. Only the comparison with transformers detects the error."""
    wrong = vocab_files._CLASSES["GPT2Tokenizer"]._replace(pre="qwen2")
    monkeypatch.setitem(vocab_files._CLASSES, "GPT2Tokenizer", wrong)
    source, out = folder(tmp_path, tokenizer_class="GPT2Tokenizer"), tmp_path / "x.gguf"
    v = ggtok.convert(source)
    report = report_of(v)
    assert report.judge == "transformers" and 0 < len(report.unexplained) <= report.differing
    with pytest.raises(
        ggtok.VocabError, match=r"for no known reason.*inexact=True \(--inexact\) writes"
    ):
        v.save(out)
    assert cli.main(["convert", str(source), "-o", str(out)]) == 1 and not out.exists()
    shown = capfdbinary.readouterr()
    assert b"for no known reason, such as" in shown.out and b"x.gguf: not written" in shown.err
    assert cli.main(["convert", str(source), "-o", str(out), "--inexact"]) == 1 and out.exists()
    assert b"warning: " in capfdbinary.readouterr().err


def test_a_class_that_has_its_own_rules(tmp_path: Path) -> None:
    """LlamaTokenizer in transformers 5 adds spaces by rules that tokenizer.json doesn't contain."""
    document = sources.byte_fallback()
    report = report_of(ggtok.convert(folder(tmp_path, document, tokenizer_class="LlamaTokenizer")))
    assert report.judge == "transformers" and report.unexplained == ()
    (loader,) = [row for row in report.differences if row.name == "loader"]
    assert loader.lines and f"{report.differing} lines differ" in str(report)


def test_a_folder_that_transformers_cannot_load(tmp_path: Path) -> None:
    sources.write(tmp_path / "tokenizer_config.json", {"tokenizer_class": "BertModel"})
    sources.write(tmp_path / "tokenizer.json", sources.bpe())
    report = report_of(ggtok.convert(tmp_path))
    assert report.judge == "tokenizers"
    assert "transformers can't load the source: tokenizer_class 'BertModel'" in str(report)


def test_a_folder_with_code_of_its_own(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text("raise SystemExit")
    config = {"tokenizer_class": "OwnTokenizer", "auto_map": {"AutoTokenizer": ["own.Own", None]}}
    report = report_of(ggtok.convert(folder(tmp_path, sources.bpe(), **config)))
    assert report.judge == "tokenizers" and "transformers can't load" in str(report)


def test_sentencepiece(tmp_path: Path) -> None:
    """Control tokens in texts aren't compared, because sentencepiece doesn't parse them."""
    options = {"remove_extra_whitespaces": False}
    sources.write(tmp_path / "tokenizer.model", sources.spm("bpe", **options))
    sources.write(tmp_path / "tokenizer_config.json", {"tokenizer_class": "LlamaTokenizer"})
    report = report_of(ggtok.convert(tmp_path))
    assert report.judge == "transformers" and report.compared < 300
    assert report.unexplained == ()


def test_without_the_files_own_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If the files' own package is missing, no line counts as unexplained, since the differences in
    the report may explain all of them."""
    monkeypatch.setattr(originals, "is_installed", lambda name: name == "transformers")
    sources.write(tmp_path / "tokenizer.model", sources.spm("unigram"))
    sources.write(tmp_path / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer"})
    report = report_of(ggtok.convert(tmp_path))
    assert report.judge == "transformers" and report.unexplained == ()


def test_rwkv_has_no_package(tmp_path: Path) -> None:
    rows = [f"{id} {chr(id + 96)!r} 1\n" for id in range(1, 27)]
    sources.write(tmp_path / "rwkv_vocab_v20230424.txt", "".join(rows))
    report = report_of(ggtok.convert(tmp_path))
    assert report.compared == 0 and "transformers can't load" in str(report)


def test_json(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    source = folder(tmp_path, tokenizer_class="GPT2Tokenizer")
    out = tmp_path / "x.gguf"
    assert cli.main(["convert", str(source), "-o", str(out), "--json"]) == 0
    data = json.loads(capfdbinary.readouterr().out)
    assert (data["judge"], data["compared"], data["differing"]) == ("transformers", 300, 0)
    assert out.exists()
