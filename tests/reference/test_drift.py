"""The drift script, with the installed wheel and a small fake source tree."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from ggtok.inspect.parity.compare import OVERLONG
from tests import drift
from tests.parity import Result, compare
from tests.support.llamacpp import LlamaCpp, shared_object
from tests.support.vocabularies import PRE_NAMES, fixture

SOURCE = """
if (tokenizer_pre.empty()) {
} else if (
        tokenizer_pre == "qwen2" ||
        tokenizer_pre=="tomorrow-1.5") {
    pre_type = LLAMA_VOCAB_PRE_TYPE_QWEN2;
} else if (tokenizer_model == "rwkv" || key == "no-pre-name") {
"""


@pytest.fixture(autouse=True)
def small_vocabulary(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replaces gpt-2 by a small vocabulary, because gpt-2 would make the tests take ten times as
    long. (test_parity_live tests gpt-2.)"""
    monkeypatch.setattr(drift, "real", lambda name: fixture("bpe-gpt2"))
    monkeypatch.setattr(drift, "VOCABULARIES", ["bpe-gpt2", "ugm-nfc"])
    monkeypatch.setattr(drift, "TYPES", ["bpe-llama3"])


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "llama-vocab.cpp").write_text(SOURCE)
    return tmp_path


def test_names_in_the_source_are_compared(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert drift.source_names(tree) == {"qwen2", "tomorrow-1.5"}
    assert drift.main(["--source", str(tree)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split(maxsplit=1) == ["tomorrow-1.5", "unknown to ggtok"]
    gone = [line.split()[0] for line in lines if line.endswith("known to ggtok alone")]
    assert gone == sorted(set(PRE_NAMES) - {"qwen2"})
    assert len(lines) == 2 + len(gone)


def test_source_without_drift(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "".join(f'if (tokenizer_pre == "{name}") {{}}\n' for name in PRE_NAMES)
    (tree / "src" / "llama-vocab.cpp").write_text(names)
    assert drift.main(["--source", str(tree)]) == 0
    assert capsys.readouterr().out.startswith("drift: ")


def test_source_in_another_form(tree: Path) -> None:
    (tree / "src" / "llama-vocab.cpp").write_text('{"qwen2", LLAMA_VOCAB_PRE_TYPE_QWEN2},')
    with pytest.raises(SystemExit, match="no names"):
        drift.source_names(tree)


def test_folder_of_a_wheel(llama: LlamaCpp, tmp_path: Path) -> None:
    assert drift.find_library(shared_object().parent) == shared_object()
    with pytest.raises(SystemExit, match="no shared object"):
        drift.find_library(tmp_path)


def test_every_name_is_a_candidate(llama: LlamaCpp) -> None:
    """The search finds all known names in the library, so it would find a new one, too."""
    assert drift.candidates(shared_object()) >= set(PRE_NAMES)


@pytest.mark.full
def test_installed_wheel(
    llama: LlamaCpp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Tries only a few of the candidates; all would take a minute."""
    few = set(sorted(drift.candidates(shared_object()))[::100])
    monkeypatch.setattr(drift, "candidates", lambda library: few)
    assert drift.main(["--wheel", str(shared_object().parent), "--texts", "30"]) == 0
    n = len(PRE_NAMES)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("ugm-nfc  ") and lines[0].endswith(f"({drift.NFC_IS_KNOWN})")
    assert lines[1:] == [f"drift: {n} names there, {n} here, 1 differences, 0 of them ours to fix"]


def test_a_name_we_lack_and_ids_that_changed(
    llama: LlamaCpp, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Simulates a ggtok that doesn't know qwen2, and that gives other results for viking."""

    def twisted(name: str, *args: Any, **options: Any) -> Result:
        result = compare(name, *args, **options)
        if name == "viking":
            result.same("encode(b'12')", [1, 2], [12])
        return result

    monkeypatch.setattr(drift, "compare", twisted)
    monkeypatch.setattr(drift, "VOCABULARIES", [])
    monkeypatch.setattr(drift, "candidates", lambda library: {"qwen2", "prompt"})
    monkeypatch.setattr(drift, "pre_names", lambda: ["viking", "gpt-2", "moonshot"])
    assert drift.main(["--texts", "10"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(maxsplit=1) for line in lines[:2]] == [
        ["qwen2", "unknown to ggtok"],
        ["moonshot", "known to ggtok alone"],
    ]
    assert lines[2].startswith("viking ")
    assert "1 of " in lines[2]
    assert lines[-1] == "drift: 3 names there, 3 here, 3 differences, 3 of them ours to fix"


def test_differences_in_overlong_texts_alone_are_known() -> None:
    result = Result("bpe-gpt2", comparisons=9, differences=2, overlong=2, shown=["x"])
    [row] = drift.rows_of(result)
    assert row.known == drift.OVERLONG_IS_KNOWN and "2 of 9 results differ" in row.difference
    result.same("attr 1", 4, 1)
    [row] = drift.rows_of(result)
    assert not row.known and row.difference.endswith("3 of 10 results differ, first\n    x")


def test_malformed_texts_have_every_kind_of_fault(llama: LlamaCpp) -> None:
    """On the reference, ggtok has no difference."""
    assert drift.malformed_rows(llama, 40) == []
    assert sum(OVERLONG.fullmatch(part) is not None for part in drift.MALFORMED) == 7


def test_library_that_is_no_llama_cpp(tmp_path: Path) -> None:
    nothing = tmp_path / "nothing.so"
    nothing.write_bytes(b"llama_tokenize")
    with pytest.raises(SystemExit, match="can't be driven"):
        drift.main(["--wheel", str(nothing)])
