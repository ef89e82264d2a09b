"""What the command says when something fails."""

from __future__ import annotations

import errno

import pytest

import ggtok
from ggtok.cli import commands
from tests.cli.command import BPE

FAILURES = {
    "memory": (MemoryError(), "out of memory"),
    "the library's memory": (ggtok.OutOfMemoryError("no memory for it"), "no memory for it"),
    "a file": (OSError(errno.EIO, "Input/output error", "x"), "x: Input/output error"),
    "no file in particular": (OSError(errno.ENOSPC, "No space left"), "No space left"),
    "several lines": (ggtok.GGTokError("one\n  two\r\x1b[2J"), r"one two \x1b[2J"),
}


@pytest.mark.parametrize(("error", "line"), FAILURES.values(), ids=FAILURES)
def test_failures(run, error: Exception, line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr("ggtok.load", fail)
    result = run("tokenize", BPE, "x")
    assert (result.status, result.out) == (2, b"")
    assert result.errors == [f"ggtok: error: {line}"]


def test_what_the_user_wrote_is_escaped(run) -> None:
    for argv in (
        ["\x1b[2J"],
        ["tokenize", "--\x1b[2J"],
        ["tokenize", "\x1b[2J", "x"],
        ["list", "\x1b"],
    ):
        result = run(*argv)
        assert (result.status, len(result.errors)) == (2, 1)
        assert "\x1b" not in result.errors[0] and r"\x1b" in result.errors[0]


def test_a_missing_command_is_named(run) -> None:
    for argv in [], ["-q"], ["frobnicate"], ["-q", "frobnicate"]:
        result = run(*argv)
        assert (result.status, len(result.errors)) == (2, 1)
        for command in commands.SUMMARIES:
            assert command in result.errors[0]


def test_every_command_is_in_the_help(run) -> None:
    lines = run("--help").out.decode().splitlines()
    for command, summary in commands.SUMMARIES.items():
        assert f"  {command:<12}{summary}" in lines
        shown = b" ".join(run(command, "--help").out.split()).decode()
        assert summary[1:] in shown and "examples:" in shown
