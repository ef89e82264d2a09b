"""What docs/site generates for the website. `.ci/run` tests everything else with `mkdocs build`."""

from __future__ import annotations

import importlib
import re
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import ggtok
from ggtok.cli import commands
from tests.docs.pages import OTHERS, PAGES, ROOT

DESIGN = sorted((ROOT / "docs" / "design").glob("*.md"))


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, ModuleType]]:
    """Imports the modules hooks and reference, which aren't in a package."""
    monkeypatch.syspath_prepend(str(ROOT / "docs" / "site"))
    yield importlib.import_module("hooks"), importlib.import_module("reference")
    del sys.modules["hooks"], sys.modules["reference"]


def test_the_navigation_has_every_page_once(site: Any) -> None:
    hooks, reference = site
    home, *sections = hooks.navigation(hooks.INDEX.read_text("utf-8"))
    assert home == "README.md"
    titles = [title for section in sections for title in section]
    assert titles == ["Tutorial", "How-to guides", "Reference", "Explanation", "To change ggtok"]
    named = [page for section in sections for pages in section.values() for page in pages]
    pages = {hooks.at_site(p.relative_to(ROOT).as_posix()) for p in [*PAGES, *OTHERS, *DESIGN]}
    assert sorted(named) == sorted((pages - {"README.md"}) | set(reference.PAGES))


def test_links_lead_to_the_sites_pages(site: Any) -> None:
    hooks, _ = site

    class Page:
        class file:  # noqa: N801
            src_uri = "design/blocks.md"

    text = "[a](../files.md#x) [`b/`](../../cext/) [c](../../cext/ggtok.h) [d](../../SECURITY.md)\n"
    code = "```\n[a](../files.md)\n```\n"
    assert hooks.on_page_markdown(text + code, Page, None, None) == (
        "[a](../files.md#x) `b/` [c](../source/cext/ggtok.h.md) [d](../project/SECURITY.md)\n"
        + code
    )


def test_the_reference_has_all_public_names(site: Any) -> None:
    _, reference = site
    page = reference.module_page("ggtok")
    for name in ggtok.__all__:
        assert (f'"{name}"' in page) == (not name.startswith("__")), name
    assert set(reference.MODULES) <= {
        page.removeprefix("reference/")[:-3] for page in reference.PAGES
    }


def test_the_reference_has_every_command(site: Any) -> None:
    _, reference = site
    page = reference.command_page()
    assert re.findall(r"^## (\w+)$", page, re.M) == list(commands.SUMMARIES)
    assert page.count("```text\nusage: ggtok ") == 1 + len(commands.SUMMARIES)
