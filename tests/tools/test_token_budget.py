"""Runs tools/token_budget.py, the script in action.yml, on temporary repositories."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import ggtok
from tests.tools.repository import MODEL, ROOT, Repository


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    (tmp_path / "repository").mkdir()
    return Repository(tmp_path / "repository")


def test_counts_what_changed(
    repository: Repository, load_fixture: Callable[[str], ggtok.Tokenizer], tmp_path: Path
) -> None:
    count = load_fixture("bpe-llama3").count
    base = repository.commit(
        {"a.md": b"one", "gone.md": b"gone now", "same.md": b"same", "b/x|<y>.md": b"x"}
    )
    (repository.root / "link").symlink_to("a.md")
    repository.commit(
        {
            "a.md": b"one two three",
            "gone.md": None,
            "new.md": b"new",
            "bin": b"\0",
            "b/x|<y>.md": b"",
        }
    )
    done = repository.run(BASE=base, BUDGET="1k")
    assert done.returncode == 0, done
    sizes = {
        "a.md": (b"one", b"one two three"),
        "new.md": (b"", b"new"),
        r"b/x\|&lt;y>.md": (b"x", b""),
        "gone.md": (b"gone now", b""),
    }
    rows = {}
    for name, (before, after) in sizes.items():
        a, b = (count(text, add_special=False) for text in (before, after))
        rows[name] = a, b
        assert f"| {name} | {a} | {b} | {b - a:+} |" in done.stdout
    assert len(done.stdout.splitlines()) == 2 + len(rows) + 1
    total = sum(b for _, b in rows.values())
    assert (tmp_path / "summary").read_text() == done.stdout
    output = (tmp_path / "output").read_text()
    assert output == f"tokens={total}\nincrease={total - sum(a for a, _ in rows.values())}\n"


def test_limits_decide_the_exit_status(repository: Repository) -> None:
    base = repository.commit({"a.md": b"one " * 10})
    repository.commit({"a.md": b"one " * 100})
    over = repository.run(BASE=base, BUDGET="50")
    assert over.returncode == 1
    assert re.search(r"::error::the changed files have \d+ tokens; the budget is 50\n", over.stdout)
    more = repository.run(BASE=base, MAX_INCREASE="10")
    assert more.returncode == 1
    assert "at most 10 are allowed" in more.stdout
    assert repository.run(BASE=base, BUDGET="1k", MAX_INCREASE="1M").returncode == 0
    assert repository.run(BASE=base, BUDGET="50", PATHS="*.txt\n").returncode == 0


def test_the_first_commit(repository: Repository) -> None:
    repository.commit({"a.md": b"one"})
    for base in ("0" * 40, ""):
        assert "| a.md | 0 |" in repository.run(BASE=base).stdout


def test_errors_are_annotations(repository: Repository) -> None:
    repository.commit({"a.md": b"one"})
    for env, message in (
        ({"BUDGET": "many"}, "budget must be a number of tokens, such as 8000 or 8k: 'many'"),
        ({"BASE": "1" * 40}, "isn't in this clone: set fetch-depth: 0"),
        ({"BASE": "--help"}, "isn't in this clone"),
        ({"MODEL": ""}, "model is not set"),
        ({"MODEL": "missing.gguf"}, "missing.gguf"),
    ):
        done = repository.run(**env)
        assert done.returncode == 2, done
        assert done.stdout.startswith("::error::"), done
        assert message in done.stdout
        assert done.stderr == ""
        assert done.stdout.count("\n") == 1


def test_the_hook_counts_the_named_files(tmp_path: Path) -> None:
    """The hook counts the files whose names pre-commit appends to its entry and args."""
    text = (ROOT / ".pre-commit-hooks.yaml").read_text()
    entry = re.findall(r"^  entry: python (.*)$", text, re.MULTILINE)
    odd = ["--budget=99999999", "-m", "--", "-", "-x", "--min=9999"]
    for name in ("a.md", *odd):
        (tmp_path / name).write_bytes(b"one two three")
    for budget, files, status in (
        ("1", ["a.md"], 1),
        ("100", ["a.md"], 0),
        ("8", [*odd, "a.md"], 1),
        ("8", ["--budget=99999999", "a.md", "b.md"], 2),
    ):
        for given in (["-m", MODEL, "--budget", budget], [f"--budget={budget}", "--model", MODEL]):
            args = [*entry[0].split(), "--special", *map(str, given), *files]
            done = subprocess.run(
                [sys.executable, *args], cwd=tmp_path, capture_output=True, check=False
            )
            assert done.returncode == status, done
    args = [*entry[0].split(), "-m", str(MODEL), "a.md", "--budget=99999999"]
    done = subprocess.run([sys.executable, *args], cwd=tmp_path, capture_output=True, check=False)
    assert done.returncode == 2 and b"the hook's args must be" in done.stderr


@pytest.mark.parametrize("name", ["##[stop-commands]x.md", "::error::x.md", "a ##[endgroup].md"])
def test_names_of_files_are_no_commands(name: str, repository: Repository) -> None:
    """GitHub's runner obeys ##[command] anywhere in a line, and ::command:: at its start."""
    base = repository.commit({"a.md": b"one"})
    repository.commit({name: b"one two three"})
    done = repository.run(BASE=base, BUDGET="1")
    assert done.returncode == 1
    lines = done.stdout.splitlines()
    assert not any("##[" in line for line in lines)
    (command,) = [line for line in lines if "::" in line]
    assert command.startswith("::error::the changed files have ")


def test_messages_are_no_commands(repository: Repository) -> None:
    base = repository.commit({"a.md": b"one"})
    done = repository.run(BASE=base, MODEL="##[stop-commands]x\n::add-mask::y")
    assert done.returncode == 2
    assert "##[" not in done.stdout and done.stdout.count("::") == 2
