"""Every example in the README and in docs/ runs, and prints what the page shows."""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import pytest

from tests.docs.pages import ELSEWHERE, OTHERS, PAGES, ROOT, blocks, run_page, surroundings
from tests.support.full import full

# Languages of blocks that aren't examples: drawings, and C code, which tests/c/test_library.py
# compiles.
NOT_EXAMPLES = {"", "c", "cmake"}
# The blocks that aren't run, by page, with the reason.
NOT_RUN = {
    "README.md": [".ci/run does", ".ci/run does"],
    "docs/c.md": ["tests/c/test_library.py does"] * 2,
    "docs/cli.md": [
        *["tests/tools/test_token_budget.py does"] * 2,
        "writes to your home folder",
    ],
    "docs/javascript.md": [
        *["tests/web/test_examples.py does"] * 3,
        *["needs a browser"] * 2,
    ],
    "docs/viewing.md": ["it opens a browser"],
    "docs/files.md": [
        "needs Ray; python -m tests.distributed runs it",
        "needs Dask; python -m tests.distributed runs it",
        "needs Spark; python -m tests.distributed runs it",
        *["needs Arrow"] * 8,  # tests/adapters/test_docs.py runs these
        "tests/arrow/test_libraries.py does, on two processes",
        "needs Arrow",
    ],
    "docs/serving.md": [
        "a server, which doesn't end",
        "a server, which doesn't end",
        "needs the libraries and a server",
        "needs lm-evaluation-harness and a server",
        "needs Open WebUI; tests/server/test_recipes.py runs it",
        "needs a server",
        "needs a server",
        "a unit of systemd",
        "needs a container",
        "needs a container",
    ],
    "docs/sources.md": ["needs the network", "needs the network"],
    "docs/tutorial.md": [".ci/run does", "the tests do the same"],
}


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# Pages whose examples need packages that are installed only for --full.
FULL = {"docs/converting.md"}
HERE = [page for page in PAGES if name_of(page) not in ELSEWHERE]


def test_other_tests_run_the_pages_in_elsewhere() -> None:
    for page, test in ELSEWHERE.items():
        assert Path(page).name in (ROOT / test).read_text("utf-8"), page


@pytest.mark.skipif(sys.platform == "win32" or not shutil.which("bash"), reason="needs bash")
@pytest.mark.parametrize(
    "page", [full(page) if name_of(page) in FULL else page for page in HERE], ids=name_of
)
def test_examples_print_what_the_page_shows(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    surroundings(tmp_path, page)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)  # pytest-xdist sets it
    for block, shown in run_page(page, tmp_path):
        assert shown == block.text, f"{name_of(page)}, line {block.line}"


def test_the_main_pages_have_examples() -> None:
    """The README and the pages about the API have examples, some of them with output."""
    run = {
        name_of(page): [b for b in blocks(page) if b.language in ("python", "console")]
        for page in PAGES
    }
    for name in ("README.md", "docs/python.md", "docs/cli.md"):
        assert run[name], name
        assert any(
            re.search(r"^(?!>>>|\.\.\.|\$)\S", block.text, re.MULTILINE) for block in run[name]
        ), name
    assert sum(len(found) for found in run.values()) >= 20


def test_no_block_is_missed() -> None:
    """A closing fence with other text on its line would hide its block."""
    for page in PAGES:
        text = page.read_text("utf-8")
        assert text.count("```") == 2 * len(blocks(page)), name_of(page)


def test_what_is_not_run_is_listed() -> None:
    """Each block that isn't run gives the reason, and NOT_RUN lists it."""
    not_run: dict[str, list[str]] = {}
    for page in HERE:
        for block in blocks(page):
            if block.language in NOT_EXAMPLES or block.file:
                continue
            where = f"{name_of(page)}, line {block.line}"
            if block.language not in ("python", "console"):
                assert block.why_not, f"{where}: {block.language} without <!-- not run: WHY -->"
            if block.why_not:
                not_run.setdefault(name_of(page), []).append(block.why_not)
    assert not_run == NOT_RUN


def test_links_lead_somewhere() -> None:
    """Links between pages, to files and to headings work; docs/README.md links to every page."""
    pages = [*PAGES, *OTHERS, *(ROOT / "docs" / "design").glob("*.md")]
    reached = set()
    for page in pages:
        for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", page.read_text("utf-8")):
            path, _, heading = target.partition("#")
            to = (page.parent / path).resolve() if path else page
            assert to.exists(), f"{name_of(page)}: {target}"
            if heading:
                assert heading in headings(to), f"{name_of(page)}: {target}"
            if page == ROOT / "docs" / "README.md":
                reached.add(to)
    assert set(pages) - reached == {ROOT / "docs" / "README.md"}


def headings(page: Path) -> set[str]:
    """Returns the anchors that GitHub generates from a page's headings."""
    found = re.findall(r"^#+ (.+)$", page.read_text("utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in found}


def test_the_readme_is_short() -> None:
    assert (ROOT / "README.md").read_text("utf-8").count("\n") <= 130
