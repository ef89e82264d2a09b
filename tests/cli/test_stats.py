"""``ggtok stats``: the library's statistics by file and script, for one model or several."""

from __future__ import annotations

import gzip
import json
import re
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import stats_command as command
from tests.cli.command import LLAMA3
from tests.support.vocabularies import fixture

SPM = str(fixture("spm"))


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    folder = tmp_path / "texts"
    folder.mkdir()
    (folder / "a.txt").write_text("The kettle isn't on.\n" * 20, encoding="utf-8")
    (folder / "b.md").write_text("Привет, мир! 你好\n", encoding="utf-8")
    (folder / "c.txt.gz").write_bytes(gzip.compress(b"zipped text\n"))
    (folder / "d.bin").write_bytes(b"\0\1\2")
    return folder


def test_json_is_what_the_library_counts(run, texts: Path) -> None:
    result = run("stats", LLAMA3, str(texts), "--json", "--exclude", "*.gz", "-q")
    assert result.status == 0, result.errors
    contents = {str(texts / name): (texts / name).read_bytes() for name in ("a.txt", "b.md")}
    assert json.loads(result.out) == {LLAMA3: ggtok.load(LLAMA3).stats(contents).to_dict()}


def test_table(run, texts: Path) -> None:
    result = run("stats", LLAMA3, str(texts))
    assert result.status == 0
    assert "1 binary file not measured: " in str(result.warnings)
    assert "d.bin" in str(result.warnings)
    lines = result.out.decode().splitlines()
    assert lines[0].split() == ["TOKENS", "BYTES", "BYTES/TOKEN", "ONE-TOKEN", "WORDS"]
    names = [re.split(r"  +", line)[0] for line in lines[1:-1]]
    assert names[:4] == [*(str(texts / n) for n in ("a.txt", "b.md", "c.txt.gz")), "total"]
    assert {"Latin", "Cyrillic", "Han", "punctuation and symbols"} <= set(names)
    assert "different tokens in the text" in lines[-1]
    one = run("stats", LLAMA3, str(texts / "a.txt"))
    assert one.out.decode().splitlines()[1].startswith("total")


def test_models_side_by_side(run, texts: Path) -> None:
    path = str(texts / "a.txt")
    result = run("stats", LLAMA3, SPM, path, "--vocabulary", "-q")
    assert result.status == 0, result.errors
    lines = result.out.decode().splitlines()
    assert lines[:2] == [f"A: {LLAMA3}", f"B: {SPM}"]
    values = [ggtok.load(m).stats([(texts / "a.txt").read_bytes()]).total for m in (LLAMA3, SPM)]
    cells = [f"{row.bytes_per_token:.2f}" for row in values]
    best = "A" if values[0].bytes_per_token > values[1].bytes_per_token else "B"
    [total] = [line.split() for line in lines if line.startswith("total")]
    assert total == ["total", *cells, best]
    assert any(line.startswith("VOCABULARY") for line in lines)
    with_option = run("stats", "-m", LLAMA3, SPM, path, "--vocabulary", "-q")
    assert with_option.out == result.out


def test_standard_input_and_parts(run, monkeypatch: pytest.MonkeyPatch) -> None:
    text = b"a line of text\n" * 100 + b"x" * 300
    whole = run("stats", LLAMA3, "--json", "-q", stdin=text)
    monkeypatch.setattr(command, "_PART", 64)
    assert run("stats", LLAMA3, "--json", "-q", stdin=text).out == whole.out
    assert list(json.loads(whole.out)[LLAMA3]["texts"]) == ["standard input"]


def test_only_the_vocabulary(run) -> None:
    result = run("stats", LLAMA3, "--vocabulary", "-q")
    assert result.status == 0
    assert b"Latin" in result.out


def test_errors(run, texts: Path, tmp_path: Path) -> None:
    for argv, message in (
        (("stats", LLAMA3, LLAMA3, str(texts)), "a model is named twice"),
        (("stats", LLAMA3, SPM), "standard input can be measured for one model only"),
        (("stats", LLAMA3, str(tmp_path / "missing")), "No such file"),
        (("stats", str(texts / "a.txt")), "no model"),
        (("stats", LLAMA3, str(texts), "--plot", "-"), "can't write to standard output"),
    ):
        result = run(*argv, "-q")
        assert (result.status, result.out) == (2, b""), argv
        assert message in str(result.errors)


@pytest.mark.full
def test_plot(run, texts: Path, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    for name in ("out.svg", "out.png", "out.PDF"):
        out = tmp_path / name
        result = run("stats", LLAMA3, SPM, str(texts), "--plot", str(out), "-q")
        assert result.status == 0, result.errors
        assert out.stat().st_size > 1000
    text = (tmp_path / "out.svg").read_text()
    for label in ("Bytes per token by script", "Cyrillic", "a.txt", "bpe-llama3.gguf", "spm.gguf"):
        assert label in text
    again = tmp_path / "again.svg"
    run("stats", LLAMA3, SPM, str(texts), "--plot", str(again), "-q")
    # The layout's coordinates differ in the last bits, on which the ids of clipping paths depend.
    clip = re.compile(r"\bp[0-9a-f]{10}\b")
    assert clip.sub("", again.read_text()) == clip.sub("", text)
    for name, message in (("x.txt", "a picture ends with"), ("no/x.svg", "doesn't exist")):
        result = run("stats", LLAMA3, str(texts), "--plot", str(tmp_path / name), "-q")
        assert result.status == 2
        assert message in str(result.errors)


@pytest.mark.full
def test_a_plot_never_replaces_its_source(run, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "text.svg"
    picture.write_text("<svg>Some text.</svg>")
    result = run("stats", LLAMA3, str(picture), "--plot", str(picture), "-q")
    assert result.status == 2 and "text.svg is the source itself" in str(result.errors)
    assert picture.read_text() == "<svg>Some text.</svg>"


def test_plot_without_matplotlib(run, texts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    result = run("stats", LLAMA3, str(texts), "--plot", "x.svg", "-q")
    assert result.status == 2
    assert "pip install 'ggtok[plot]'" in str(result.errors)
