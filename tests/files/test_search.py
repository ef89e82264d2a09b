"""Finds the files that paths, folders and globs name, each once, even with links."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.corpora.sources import GlobFilter, Search

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no links")


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("c/a.txt", "c/x/b.txt", "c/x/y/d.md", "c/x/y/.hidden", "c/.git/config"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return tmp_path


def found(sources: object, **patterns: list[str]) -> list[str]:
    return [source.path for source in Search(choice=GlobFilter(**patterns)).find(sources)]


ALL = ["c/a.txt", "c/x/b.txt", "c/x/y/d.md"]


@pytest.mark.parametrize(
    "sources",
    [
        "c",
        "./c",
        ".//c/.",
        "**",
        "c/**",
        "c/**/",
        "./**/c",
        ["c", "c/a.txt"],
        ["c/a.txt", "c"],
        ["c", "c/x", "c/x/y/d.md", "./c/a.txt"],
        ["c/*.txt", "c/**/*", "c/*"],
        "c/**/**",
        "**/**/**/**/**/**/**/**/**/**/*",
    ],
)
def test_each_file_once(here: Path, sources: str | list[str]) -> None:
    """Each file is found once, under one name, even if several patterns and folders match it."""
    assert found(sources) == ALL
    named = [sources] if isinstance(sources, str) else sources
    assert found([str(here / "c"), *named]) == [str(here / path) for path in ALL]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("c/**/*.txt", ["c/a.txt", "c/x/b.txt"]),
        ("**/*.md", ["c/x/y/d.md"]),
        ("c/**/y/*", ["c/x/y/d.md"]),
        ("**/x/**/*.md", ["c/x/y/d.md"]),
        ("c/*", ["c/a.txt", "c/x/b.txt", "c/x/y/d.md"]),
        ("c/../c/*.txt", ["c/../c/a.txt"]),
        ("c/[a]*", ["c/a.txt"]),
        ("c/x/y/.h*", ["c/x/y/.hidden"]),
    ],
)
def test_globs(here: Path, pattern: str, expected: list[str]) -> None:
    assert found(pattern) == expected


def test_the_order_of_a_glob(here: Path) -> None:
    for name in ("b.txt", "d/e.txt", "z.txt"):
        (here / name).parent.mkdir(exist_ok=True)
        (here / name).write_text(name)
    assert found("**/*.txt") == ["b.txt", "c/a.txt", "c/x/b.txt", "d/e.txt", "z.txt"]


def test_a_folder_whose_name_is_a_glob(here: Path) -> None:
    (here / "c" / "[x]").mkdir()
    (here / "c" / "[x]" / "e.txt").write_text("e")
    assert "c/[x]/e.txt" in found("c/**/*.txt")
    assert found("c/[x]") == ["c/[x]/e.txt"]


def test_links_are_followed(here: Path) -> None:
    """Links may lead out of the folder and back into it; each of their targets is found once."""
    (here / "elsewhere").mkdir()
    (here / "elsewhere" / "f.txt").write_text("f")
    (here / "c" / "loop").symlink_to(".")
    (here / "c" / "x" / "up").symlink_to("../..")
    (here / "c" / "out").symlink_to(here / "elsewhere")
    (here / "c" / "again.txt").symlink_to("a.txt")
    for sources in ("c", "c/**"):
        names = found(sources)
        assert names == ["c/a.txt", "c/out/f.txt", "c/x/b.txt", "c/x/y/d.md"]
    assert found("c/**/*.txt") == ["c/a.txt", "c/out/f.txt", "c/x/b.txt"]


def test_many_cycles_of_links_end(here: Path) -> None:
    for name in "lmnopq":
        (here / "c" / name).symlink_to(".")
    assert found("c") == found("c/**") == ALL
    assert len(found("c/**/*")) == 3


def test_dangling_links(here: Path) -> None:
    (here / "c" / "gone").symlink_to("nowhere")
    (here / "c" / "self").symlink_to("self")
    message = "^c/gone: a dangling link is skipped .and 1 more.$"
    for sources in ("c", "./c", "c/**", "c/*", ["c/*", "c"]):
        with pytest.warns(ggtok.VocabWarning, match=message):
            assert found(sources) == ALL
    assert found("c/**/*.txt") == ALL[:2]
    assert found("c", exclude=["gone", "self"]) == ALL
    with pytest.raises(FileNotFoundError, match="c/gone"):
        found("c/gone")


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        ({"include": ["*.txt"]}, ["c/a.txt", "c/x/b.txt"]),
        ({"include": ["x/*"]}, ["c/x/b.txt", "c/x/y/d.md"]),
        ({"exclude": ["y"]}, ["c/a.txt", "c/x/b.txt"]),
        ({"exclude": ["x/y"]}, ["c/a.txt", "c/x/b.txt"]),
        ({"include": ["*.txt", "*.md"], "exclude": ["b*"]}, ["c/a.txt", "c/x/y/d.md"]),
    ],
)
def test_include_and_exclude(
    here: Path, patterns: dict[str, list[str]], expected: list[str]
) -> None:
    assert found("c", **patterns) == expected
    assert found(["c/x/y/d.md", "c"], exclude=["*"]) == ["c/x/y/d.md"]  # passed by path


def test_include_and_exclude_of_globs(here: Path) -> None:
    assert found("c/**/*", include=["*.txt"]) == ["c/a.txt", "c/x/b.txt"]
    assert found("c/*", exclude=["x"]) == ["c/a.txt"]
    with pytest.raises(ggtok.InvalidValueError, match="no sources"):
        found("c", include=["*.nothing"])


def test_a_search_finds_a_file_only_once(here: Path) -> None:
    search = Search()
    assert len(search.find("c/x")) == 2
    assert [source.path for source in search.find("c")] == ["c/a.txt"]
    assert search.find("c") == []


def test_folders_that_can_not_be_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scandir = os.scandir

    def fails(path: str) -> object:
        if str(path).endswith("x"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", fails)
    with pytest.raises(ggtok.FileError, match="c/x"):
        found("c")
    with pytest.raises(ggtok.FileError, match="c/x"):
        found("c/**/*.txt")
    real = os.stat

    def gone(path: str, **options: object) -> os.stat_result:
        if str(path).endswith("a.txt"):
            raise FileNotFoundError(2, "No such file or directory")
        return real(path, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "stat", gone)
    with pytest.raises(ggtok.FileError, match=r"a\.txt"):
        found("c/x/../../c")
