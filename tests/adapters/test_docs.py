"""Runs the examples in docs/constrained.md and docs/files.md if the libraries are installed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.pages import ROOT, run_page, surroundings

PACKAGES = {
    "constrained.md": ["llguidance", "lmformatenforcer", "outlines_core"],
    "files.md": ["pyarrow", "polars", "duckdb", "datasets"],
}


@pytest.mark.full
@pytest.mark.parametrize("name", PACKAGES)
def test_examples_print_what_the_page_shows(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in PACKAGES[name]:
        pytest.importorskip(package, exc_type=ImportError)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    surroundings(tmp_path)
    monkeypatch.chdir(tmp_path)
    for block, shown in run_page(ROOT / "docs" / name, tmp_path, also="needs Arrow"):
        assert shown == block.text, f"{name}, line {block.line}"
