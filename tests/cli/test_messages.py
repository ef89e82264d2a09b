"""Tests the command's error messages."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import commands
from tests.cli.command import BPE, LLAMA3
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

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
    for argv in ["frobnicate"], ["-q", "frobnicate"]:
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


# ---- unknown names, and the numbers in messages ----


def test_a_folder_that_does_not_exist_is_named(run, tmp_path: Path) -> None:
    missing, path = tmp_path / "no", str(tmp_path / "no" / "inner" / "x.gguf")
    expected = [f"ggtok: error: {path}: the folder {missing} doesn't exist"]
    for argv in (
        ["inspect", path],
        ["doctor", path],
        ["tokenize", BPE, "-f", path],
        ["encode", BPE, path, "-o", str(tmp_path / "out")],
        ["count", BPE, path],
        ["count", BPE, "--files0-from", path],
        ["chat", BPE, path],
        ["diff", BPE, path],
        ["parity", BPE, "--text", path],
    ):
        assert run(*argv).errors == expected, argv
    there = str(tmp_path / "x.gguf")
    assert run("doctor", there).errors == [f"ggtok: error: {there}: No such file or directory"]
    assert run("list", str(missing)).errors == [f"ggtok: error: {missing} doesn't exist"]
    assert run("list", BPE).errors == [f"ggtok: error: {BPE} is not a folder"]


def test_options_are_named_as_the_command_names_them(run, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("some text")
    text = str(tmp_path / "text")
    for argv, message in (
        (["truncate", BPE, "-n", "-1", text], "-n must not be negative, but is -1"),
        (["chunks", BPE, "-n", "9", "--overlap", "-1", text], "--overlap must not be negative"),
        (["chunks", BPE, "-n", "9", "--at", "", text], "--at must not be empty"),
        (["encode", BPE, text, "-o", "o", "--separator", ""], "--separator must not be empty"),
        (["encode", BPE, text, "-o", "o", "--threads", "-1"], "--threads must not be negative"),
        (["detokenize", BPE, "71", "757"], "no token 757: the ids are 0 to 756"),
        (["truncate", LLAMA3, "-n", "0", text], "but 1 token is added to any text: 1 would do for"),
        (
            ["chunks", BPE, "-n", "1", "--overlap", "1", text],
            "an overlap of 1 token takes all of a chunk",
        ),
    ):
        result = run(*argv)
        assert (result.status, len(result.errors)) == (2, 1)
        assert message in result.errors[0], argv


def test_one_is_singular(run, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    a = str(tmp_path / "a")
    assert run("count", BPE, a, "--budget", "0").warnings == [
        "ggtok: warning: 1 token: 1 more than 0"
    ]
    written = run("encode", BPE, a, "-o", str(tmp_path / "o"), "--no-eos").out.decode()
    assert ": 1 id (uint16) of 1 document, 1 B in 1 file\n" in written


# ---- tokens by text ----


def test_a_text_that_is_one_token_names_it(run) -> None:
    wpm, spm = str(fixture("wpm")), str(fixture("spm"))
    tok = ggtok.load(wpm)
    (id,) = tok.encode("the", add_special=False)
    for text in "the", "\u2581the", str(id):
        assert f"token {id}\n".encode() in run("inspect", wpm, "--token", text).out, text
    suffix = next(i for i in range(tok.n_tokens) if tok.token_text(i) == b"s")
    assert f"token {suffix}\n".encode() in run("inspect", wpm, "--token", "##s").out
    (id,) = ggtok.load(spm).encode("the", add_special=False)
    assert f"token {id}\n".encode() in run("inspect", spm, "--token", "the").out
    ids = ggtok.load(spm).encode("Hello", add_special=False)
    assert run("inspect", spm, "--token", "Hello").errors == [
        f"ggtok: error: no token has the text 'Hello': it becomes tokens {' '.join(map(str, ids))}"
    ]
    unknown = run("inspect", wpm, "--token", "\U0001f600").errors
    assert unknown[0].endswith(f"it becomes token {tok.unk_id}")


def test_vocabularies_without_merges(run) -> None:
    for token in "hello", "the", "5":
        assert run("merges", str(fixture("wpm")), token).errors == [
            "ggtok: error: a WPM vocabulary has no merges, only BPE and SPM have"
        ]


def test_template_does_not_take_the_model(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = str(tmp_path / "chat.gguf")
    gguf = GGUF.read(BPE)
    gguf.set("tokenizer.chat_template", "default's")
    gguf.set("tokenizer.chat_template.other", "other's")
    gguf.write(tmp_path / "chat.gguf")
    monkeypatch.delenv("GGTOK_MODEL", raising=False)
    assert run("inspect", "--template", model).out == b"default's"
    assert run("inspect", "--template", "other", model).out == b"other's"
    assert run("inspect", "-m", model, "--template", "other").out == b"other's"
    assert b"'user/repo" not in run("inspect", "--template", "nothing/here").out
    monkeypatch.setenv("GGTOK_MODEL", BPE)
    assert run("inspect", "--template", model).out == b"default's"
    monkeypatch.setenv("GGTOK_MODEL", model)
    assert run("inspect", "--template", "other").out == b"other's"


def test_doctor_speaks_of_merges_only_where_there_are_any(run) -> None:
    shown = " ".join(run("doctor", str(fixture("wpm"))).out.decode().split())
    assert "GGT404" in shown and "erges" not in shown and "In a BPE vocabulary" in shown


def test_diff_shows_what_tokens_stand_for(run, tmp_path: Path) -> None:
    gguf = GGUF.read(BPE)
    tokens = gguf.array("tokenizer.ggml.tokens")
    at = next(i for i, text in enumerate(tokens) if text.decode().startswith("Ġt"))
    was = ggtok.load(BPE).token_to_piece(at).decode()
    tokens[at] = "Ġ\u0120new"
    gguf.set("tokenizer.ggml.tokens", tokens)
    merges = gguf.array("tokenizer.ggml.merges")
    gguf.set("tokenizer.ggml.merges", [merge for merge in merges if merge != b"\xc4\xa0 t"])
    other = str(gguf.write(tmp_path / "other.gguf"))
    shown = run("diff", BPE, other, "-q").out.decode()
    assert f"'{was}'" in shown and "'  new'" in shown and "' ' + 't'" in shown
    assert "Ġ" not in shown
