"""Runs each recipe in docs/integrations.md whose library is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adapters import recipes

_, SECTIONS = recipes.sections()
# Recipes that only tests.adapters.recipes runs, because they import torch or replace a library.
HEAVY = ("lm-evaluation-harness", "llama-cpp-python", "xgrammar")


@pytest.mark.full
@pytest.mark.parametrize(
    "section", [s for s in SECTIONS if s.name not in HEAVY], ids=lambda section: section.name
)
def test_recipe(section: recipes.Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if not recipes.is_installed(section.name):
        pytest.skip(f"needs {recipes.PACKAGES[section.name][0]}")
    for name, value in {**recipes.ENVIRONMENT, "HF_HOME": str(tmp_path / "hf")}.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "page"
    folder.mkdir()
    for block, shown in recipes.run(section, folder):
        assert shown == block.text, f"{section.name}, line {block.line}"


def test_every_recipe_is_run_and_says_whether_bos_counts() -> None:
    assert [section.name for section in SECTIONS] == list(recipes.PACKAGES)
    for section in SECTIONS:
        assert re.search(r"\bBOS\b", section.text), section.name
        assert "Traceback" not in section.text
