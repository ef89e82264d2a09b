"""Progress messages for long operations on a terminal."""

from __future__ import annotations

import io
import itertools
import os
import sys
import threading
import types
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from ggtok.cli import messages, parity_command, progress
from ggtok.inspect.parity import compare
from tests.cli.command import BPE, LLAMA3
from tests.support.vocabularies import fixture


class Terminal(io.StringIO):
    """A terminal of 40 columns."""

    def __init__(self) -> None:
        super().__init__()
        self.buffer = io.BytesIO()

    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


class Second(threading.Event().__class__):
    """An event whose first `wait` times out and whose later ones return that it is set."""

    waited = False

    def wait(self, timeout: float | None = None) -> bool:
        self.waited, before = True, self.waited
        return before


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Makes standard error a terminal. Waits return immediately, and the clock advances at each
    call."""
    terminal = Terminal()
    size = os.terminal_size((40, 20))
    seconds = itertools.count(0, 2)
    fakes = {
        "threading": types.SimpleNamespace(Event=Second, Thread=threading.Thread),
        "time": types.SimpleNamespace(perf_counter=lambda: next(seconds)),
    }
    for name, fake in fakes.items():
        monkeypatch.setattr(progress, name, fake)
    monkeypatch.setattr(progress.os, "get_terminal_size", lambda _: size)
    return terminal


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        (["doctor", BPE], "0:01  checking the vocabulary"),
        (["chunks", BPE, "-n", "9", "text"], "0:01  cutting text"),
        (["truncate", BPE, "-n", "9", "--side", "left", "text"], "0:01  cutting"),
        (["tokenize", BPE, "-f", "text", "--offsets"], "0:01  encoding"),
        (["tokenize", BPE, "-f", "text", "--ids"], "2.0 kB, 0 MB/s"),
        (["diff", BPE, BPE], "0:01  reading the vocabularies"),
        (["diff", BPE, BPE, "--text", "text"], "0:01  comparing the "),
        (["convert", "tokenizer.json", "-o", "out.gguf"], "0:01  converting"),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, list) else "",
)
def test_what_a_command_does_is_shown(
    argv: list[str],
    shown: str,
    terminal: Terminal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text").write_bytes(b"some text\n" * 200)
    ggtok.vocabulary(fixture("bpe-qwen2")).save(tmp_path / "tokenizer.json")
    assert cli.main(argv) in (0, 1)
    lines = terminal.getvalue().split("\r")
    assert any(line.startswith(shown) for line in lines), lines
    assert all(len(line) < 40 for line in lines) and terminal.getvalue().endswith(" \r")
    terminal.seek(0)
    terminal.truncate()
    assert cli.main([*argv, "-q", *(["--force"] if argv[0] == "convert" else [])]) in (0, 1)
    assert terminal.getvalue() == ""


def test_a_narrow_terminal_shows_the_time_left(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    path = tmp_path / "text"
    path.write_bytes(b"x" * 4000)
    list(progress.of_blocks(iter([b"x" * 1000] * 3), str(path), quiet=False))
    assert "\r[#####               ]  25%  0:06 left" in terminal.getvalue()
    line = progress.bar(0.5, 725, "12.0 GB, 3 MB/s, 1000000 tokens")
    assert line[:39] == "[##########          ]  50%  12:05 left"


def test_a_message_takes_the_place_of_the_line(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    line = progress.Line(terminal, str)
    line.write("0:01  checking")
    messages.say("warning", "something")
    assert terminal.getvalue().endswith("\r" + " " * len("0:01  checking") + "\r")
    assert b"ggtok: warning: something\n" in terminal.buffer.getvalue()


def test_parity_tells_from_its_first_text_on() -> None:
    tok, told = ggtok.load(LLAMA3), []

    class Vocab:
        def survivors(
            self, texts: list[bytes], add_special: bool, parse_special: bool
        ) -> list[list[int]]:
            return [
                tok.encode(text, add_special=add_special, parse_special=parse_special)
                for text in texts
            ]

    found = compare.compare(
        tok, Vocab(), iter([b"a"] * 120), 5, parity_command._report(told.append, 120)
    )
    assert (found.texts, found.different) == (120, 0)
    assert told == [f"{n} of 120 texts compared" for n in (0, 50, 100, 120)]
    parity_command._report(told.append, None)(3)
    assert told[-1] == "3 texts compared"
