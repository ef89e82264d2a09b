"""Tests which files `python -m tools.web` writes and how it reports failures, without zig and
esbuild. tests/web compares the committed files with their sources."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.web import __main__ as command
from tools.web import module, page

Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Returns a function that runs the command, with one source for both generated files."""
    (tmp_path / "source").write_bytes(b"first")

    def copy_source(path: Path) -> None:
        path.write_bytes((tmp_path / "source").read_bytes())

    monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(module, "build", lambda out, work: copy_source(out))
    monkeypatch.setattr(page, "build", lambda wasm, out: copy_source(out / "page.html"))
    monkeypatch.setattr(command, "OUT", tmp_path / "out")

    def call(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["tools.web", *arguments])
        return command.main()

    return call


def test_check_detects_files_that_differ(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--check") == 1
    assert not (tmp_path / "out").exists()
    assert run() == 0
    assert {path.name for path in (tmp_path / "out").iterdir()} == {"ggtok.wasm", "page.html"}
    assert run("--check") == 0
    (tmp_path / "source").write_bytes(b"second")
    capsys.readouterr()
    assert run("--check") == 1
    printed = capsys.readouterr()
    assert printed.out.count("differs from its sources") == 2
    assert "run `python -m tools.web`" in printed.err
    assert (tmp_path / "out" / "page.html").read_bytes() == b"first"


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (module.BuildError("zig cc failed:\nno such file"), "zig cc failed:\nno such file\n"),
        (
            ModuleNotFoundError("No module named 'ziglang'", name="ziglang"),
            'ziglang is not installed: pip install ".[web]"\n',
        ),
    ],
)
def test_failures_are_messages(
    run: Run,
    error: Exception,
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail(*_: object) -> None:
        raise error

    monkeypatch.setattr(module, "build", fail)
    assert run() == 2
    assert capsys.readouterr() == ("", message)


def test_a_missing_esbuild_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page, "NODE_MODULES", tmp_path)
    with pytest.raises(module.BuildError, match="web/node_modules lacks esbuild"):
        page.build(tmp_path / "ggtok.wasm", tmp_path)
