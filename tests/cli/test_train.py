"""Tests the command ``ggtok train``."""

from __future__ import annotations

import gzip
import io
import json
import os
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok import cli
from ggtok.cli import train_command as command
from ggtok.cli.progress import Line
from ggtok.inspect.parity.texts import PROSE

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text("\n".join(PROSE))
    return path


def run(*argv: object) -> int:
    return cli.main(["train", *map(str, argv)])


def test_kind(tmp_path: Path) -> None:
    (tmp_path / "a.data").write_text('{"text": "one two"}\n')
    out = str(tmp_path / "a.counts")
    command = [str(tmp_path / "a.data"), "--save-counts", out, "--kind", "jsonl"]
    assert run(*command) == 0
    assert {word.decode() for word, _ in ggtok.WordCounts.load(out).items()} == {"one", " two"}


def test_a_vocabulary_from_files(text: Path, tmp_path: Path, capfd: Capture) -> None:
    out, template = tmp_path / "own.gguf", tmp_path / "template"
    template.write_text("{{ messages }}")
    options = ["--special", "<x>", "--eos", "<e>", "--pre", "qwen2", "--chat-template", template]
    assert run(text, text, "-o", out, "-n", 500, *options, "--held-out", text) == 0
    shown = capfd.readouterr()
    assert "500 tokens of 500 asked for" in shown.out and "held-out" in shown.out
    assert shown.out.splitlines()[-1].startswith(f"{out}: ") and shown.err == ""
    expected = ggtok.train(
        [text, text],
        500,
        pre="qwen2",
        special_tokens=["<x>"],
        eos="<e>",
        chat_template="{{ messages }}",
    )
    assert ggtok.vocabulary(out).texts == expected.texts
    tok = ggtok.load(out)
    assert tok.chat_template == "{{ messages }}" and tok.eos_id == 1


def test_other_models(text: Path, tmp_path: Path, capfd: Capture) -> None:
    out = tmp_path / "own.gguf"
    assert run(text, "-o", out, "-n", 1400, "--model", "spm", "--split-digits", "--json") == 0
    report = json.loads(capfd.readouterr().out)
    assert report["asked"] == 1400 and report["bytes_per_token"] > 1
    assert ggtok.load(out).vocab_type == "SPM"


def test_templates_must_compile(text: Path, tmp_path: Path, capfd: Capture) -> None:
    template, out = tmp_path / "t.jinja", tmp_path / "own.gguf"
    template.write_text("{{ messages }}\n{% if %}")
    assert run(text, "-o", out, "-n", 300, "--chat-template", template) == 2
    assert f"error: {template}: line 2: " in capfd.readouterr().err
    assert not out.exists()


@pytest.mark.parametrize(
    ("name", "value"), [("rule", "bytes"), ("pre", "qwen2"), ("max_token_length", "8")]
)
def test_options_without_effect_on_ugm(
    text: Path, tmp_path: Path, capfd: Capture, name: str, value: str
) -> None:
    option = "--" + name.replace("_", "-")
    assert run(text, "-o", tmp_path / "own.gguf", "-n", 300, "--model", "ugm", option, value) == 2
    assert f"error: {name} has no effect with the model 'ugm'\n" in capfd.readouterr().err


def test_counts_are_kept(text: Path, tmp_path: Path, capfd: Capture) -> None:
    out, counts = tmp_path / "own.gguf", tmp_path / "a.counts"
    assert run(text, "--save-counts", counts) == 0 and not out.exists()
    assert run("--counts", counts, counts, "-o", out, "-n", 400) == 0
    expected = ggtok.train([text, "\n".join(PROSE)], 400)
    assert ggtok.vocabulary(out).texts == expected.texts
    assert run(text, "--save-counts", counts, "-o", out, "-n", 300) == 0
    assert ggtok.load(out).n_tokens == 300
    capfd.readouterr()


def test_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    out = tmp_path / "own.gguf"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"abab abab")))
    assert run("-", "-o", out, "-n", 262) == 0
    assert b"abab" in ggtok.vocabulary(out).tokens
    capfd.readouterr()


def test_what_encode_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture) -> None:
    """train reads what encode reads: a folder, even one that contains the output, or JSON lines
    with a field. Binary files are rejected."""
    corpus, out = tmp_path / "corpus", tmp_path / "corpus" / "own.gguf"
    corpus.mkdir()
    (corpus / "a.jsonl.gz").write_bytes(gzip.compress(b'{"body": "abab abab"}\n' * 9))
    for _ in range(2):
        assert run(corpus, "-o", out, "-n", 262, "--field", "body") == 0
        assert b"abab" in ggtok.vocabulary(out).tokens
    assert run(corpus, "-o", out, "-n", 262) == 2
    assert "(--errors skip) drops such documents" in capfd.readouterr().err
    assert run(corpus, "-o", out, "-n", 262, "--errors", "skip") == 2
    assert "there is no text to train on" in capfd.readouterr().err
    (corpus / "b.bin").write_bytes(b"\0")
    assert run(corpus, "-o", out, "-n", 262, "--field", "body") == 2
    assert "b.bin: a binary file" in capfd.readouterr().err
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"ab\xff")))
    assert run("-", "-o", out, "-n", 262) == 2
    assert "error: standard input: byte 2: not valid UTF-8" in capfd.readouterr().err
    (corpus / "template").write_bytes(b"\xff")
    assert run(corpus, "-o", out, "-n", 262, "--chat-template", corpus / "template") == 2
    assert "template: not UTF-8 at byte 0" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no text"),
        (["a.txt"], "nothing to write"),
        (["a.txt", "-o", "x.gguf"], "no vocabulary size: give -n N"),
        (["a.txt", "-o", "x.bin", "-n", "300"], "must end in .gguf"),
        (["missing.txt", "-o", "x.gguf", "-n", "300"], "missing.txt"),
        (["a.txt", "-o", "x.gguf", "-n", "300", "--chat-template", "missing"], "missing"),
        (["a.txt", "-o", "x.gguf", "-n", "3"], "vocab_size (--vocab-size) is 3"),
        (["a.txt", "-o", "no/x.gguf", "-n", "300"], "the folder no doesn't exist"),
        (["a.txt", "-o", "x.gguf", "-n", "300", "--max-words", "3"], "max_words must be"),
        (["a.txt", "-o", "x.gguf", "-n", "300", "--split-digits"], "split_digits has no effect"),
        (
            ["a.txt", "-o", "x.gguf", "-n", "300", "--model", "spm", "--pre", "qwen2"],
            "pre has no eff",
        ),
        (["a.txt", "-o", "x.gguf", "-n", "300", "--no-byte-fallback"], "byte_fallback has no"),
        (["--counts", "a.txt", "-o", "x.gguf", "-n", "300"], "not word counts"),
    ],
)
def test_errors(
    argv: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("a.txt").write_text("some text")
    assert run(*argv) == 2
    shown = capfd.readouterr()
    assert message in shown.err and shown.err.count("\n") == 1 and shown.out == ""
    assert os.listdir() == ["a.txt"]


def test_an_interrupt_leaves_nothing(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("ggtok.vocabularies.writers.gguf_bytes", interrupted)
    assert run(text, "-o", tmp_path / "own.gguf", "-n", 400) == 130
    assert os.listdir(tmp_path) == ["text.txt"]
    capfd.readouterr()


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True

    def fileno(self) -> int:
        return 2


def test_progress(
    text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    """Progress is shown only on terminals, in one line, which is cleared at the end."""
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(os, "get_terminal_size", lambda _: os.terminal_size((40, 10)))
    assert run(text, "-o", tmp_path / "own.gguf", "-n", 400) == 0
    line = Line(terminal, command._describe_progress)
    line(ggtok.Progress("count", 2.0, bytes=3_000_000))
    line(ggtok.Progress("count", 2.0, bytes=9_000_000))  # too soon after the last one, so not shown
    shown = terminal.getvalue()
    assert "counting words: 3 MB, 2 MB/s"[:39] in shown and ": 9 MB" not in shown
    merging = ggtok.Progress("merge", 2.0, tokens=500, of=1500, count=7)
    assert command._describe_progress(merging) == (
        "merging: 500 of 1500 tokens, 250/s, 4 s left, pair count 7"
    )
    line.clear()
    assert terminal.getvalue().endswith("\r")
    assert run(text, "-q", "-o", tmp_path / "own.gguf", "-n", 400) == 0
    capfd.readouterr()
