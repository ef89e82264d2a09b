"""Command-line completion in the shells that are installed."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command import spawn
from tests.support.waits import LIMIT

# Typed words and their completions.
TYPED = [
    ("ggtok toke", {"tokenize"}),
    ("ggtok tokenize --off", {"--offsets", "--offline"}),
    ("ggtok count --by ", {"ext", "dir"}),
    ("ggtok tokenize --color al", {"always"}),
    ("ggtok completion z", {"zsh"}),
    ("ggtok cache ", {"ls", "clear"}),
    ("ggtok inspect --pre llama-v", {"llama-v3"}),
    ("ggtok count mod", {"model.gguf"}),
    ("ggtok count -m mod", {"model.gguf"}),
    ("ggtok tokenize -f no", {"notes.txt"}),
]


def needs(shell: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(
        sys.platform == "win32" or not shutil.which(shell), reason=f"{shell} is not installed"
    )


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "model.gguf").touch()
    (tmp_path / "notes.txt").touch()
    return tmp_path


def script(run, shell: str, path: Path) -> str:
    result = run("completion", shell)
    assert (result.status, result.errors) == (0, [])
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(result.out)
    return str(path)


BASH = r"""
source "$1"
name=$(complete -p ggtok | sed 's/.*-F \([^ ]*\).*/\1/')
while IFS= read -r line; do
    read -ra COMP_WORDS <<<"$line"
    [ "${line: -1}" != " " ] || COMP_WORDS+=("")
    COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) COMPREPLY=()
    "$name" ggtok "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
    echo "${COMPREPLY[@]}"
done
"""


@needs("bash")
def test_bash(run, folder: Path) -> None:
    path = script(run, "bash", folder / "scripts" / "ggtok")
    lines = "".join(f"{typed}\n" for typed, _ in TYPED)
    done = subprocess.run(
        ["bash", "-c", BASH, "bash", path], input=lines, capture_output=True, text=True, cwd=folder
    )
    assert done.stderr == ""
    assert [set(line.split()) for line in done.stdout.splitlines()] == [all for _, all in TYPED]


@needs("fish")
def test_fish(run, folder: Path) -> None:
    path = script(run, "fish", folder / "scripts" / "ggtok.fish")
    asked = "".join(f"complete -C {typed!r}; echo ==;" for typed, _ in TYPED)
    done = subprocess.run(
        ["fish", "--no-config", "-c", f"source {path}; {asked}"],
        capture_output=True,
        text=True,
        cwd=folder,
        env={**os.environ, "HOME": str(folder)},
    )
    assert done.stderr == ""
    answers = done.stdout.split("==\n")
    for (typed, expected), answer in zip(TYPED, answers, strict=False):
        assert {line.split("\t")[0] for line in answer.splitlines()} == expected, typed


@needs("zsh")
def test_zsh(run, folder: Path) -> None:
    """Types a line and presses Tab, like a user."""
    import pty

    functions = Path(script(run, "zsh", folder / "scripts" / "_ggtok")).parent
    child, terminal = pty.fork()
    if not child:
        os.chdir(folder)
        os.environ.update(TERM="dumb", HOME=str(folder))
        os.execvp("zsh", ["zsh", "-f", "-i"])
    seen = b""

    def read(until: bytes) -> None:
        nonlocal seen
        while until not in seen and select.select([terminal], [], [], LIMIT)[0]:
            seen += os.read(terminal, 1 << 16)
        assert until in seen, (until, seen[-500:])
        seen = seen[seen.index(until) + len(until) :]

    # The listed completions stay on the screen, and ^U deletes the typed line.
    begin = f"fpath=({functions} $fpath); autoload -U compinit; compinit -u -D; PS1='%% '\n"
    os.write(terminal, f"{begin} echo re''ady\n".encode())
    read(b"ready\r\n")
    for typed, expected in TYPED:
        os.write(terminal, f"{typed}\t".encode())
        if len(expected) == 1:
            words = typed.split(" ")
            read(" ".join([*words[:-1], *expected]).encode())
        else:
            for name in sorted(expected):
                read(name.encode())
        os.write(terminal, b"\x15\n")
    os.write(terminal, b"exit\n")
    os.waitpid(child, 0)
    os.close(terminal)


def test_the_package_is_named(run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    result = run("completion", "bash")
    assert (result.status, result.out) == (2, b"")
    assert result.errors == [
        "ggtok: error: completion needs a package: pip install 'ggtok[completion]'"
    ]


def test_usage(run) -> None:
    for argv in [], ["tcsh"], ["bash", "zsh"]:
        result = run("completion", *argv)
        assert (result.status, len(result.errors)) == (2, 1)


def test_in_any_locale(tmp_path: Path) -> None:
    done = spawn(["completion", "fish"], tmp_path, LC_ALL="C", PYTHONIOENCODING="latin-1")
    assert done.returncode == 0 and done.stdout.endswith(b"\n") and not done.stderr
