"""Runs each recipe in docs/integrations.md whose library is installed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.adapters import recipes
from tests.docs.pages import blocks

_, SECTIONS = recipes.sections()
# Recipes that only tests.adapters.recipes runs, because they import torch or replace a library.
HEAVY = ("lm-evaluation-harness", "llama-cpp-python", "xgrammar")


@pytest.mark.full
@pytest.mark.parametrize(
    "section", [s for s in SECTIONS if s.name not in HEAVY], ids=lambda section: section.name
)
def test_a_recipe_prints_what_the_page_shows(
    section: recipes.Section, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not recipes.is_installed(section.name):
        pytest.skip(f"needs {recipes.PACKAGES[section.name][0]}")
    for name, value in {**recipes.ENVIRONMENT, "HF_HOME": str(tmp_path / "hf")}.items():
        monkeypatch.setenv(name, value)
    folder = tmp_path / "page"
    folder.mkdir()
    for block, shown in recipes.run(section, folder):
        assert shown == block.text, f"{section.name}, line {block.line}"


def test_written_output_replaces_only_that_of_the_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other recipes on the page may have the same example."""
    old, new = ">>> 1 + 1\n1\n", ">>> 1 + 1\n2\n"
    example = f"```python\n{old}```\n"
    text = f"Top.\n\n## semchunk\n\n{example}\n## chonkie\n\n{example}"
    page = tmp_path / "page.md"
    page.write_text(text)
    monkeypatch.setattr(recipes, "PAGE", page)
    monkeypatch.setattr(recipes, "is_installed", lambda name: True)
    monkeypatch.setattr(recipes, "run_page", lambda page, _: [(b, new) for b in blocks(page)])
    assert recipes._run_all(["chonkie"], write=True) == 1
    assert page.read_text() == text[: text.rindex(old)] + new + "```\n"


def test_every_recipe_is_run_and_says_whether_bos_counts() -> None:
    assert [section.name for section in SECTIONS] == list(recipes.PACKAGES)
    for section in SECTIONS:
        assert re.search(r"\bBOS\b", section.text), section.name
        assert "Traceback" not in section.text
