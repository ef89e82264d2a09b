"""``ggtok truncate`` and ``ggtok chunks``: limit texts to numbers of tokens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.text.truncate import beginning
from tests.cli.command import BPE, COMMAND, LLAMA3, SPM, spawn
from tests.cli.terminal import on_terminal
from tests.support.vocabularies import fixture, fixture_names
from tests.support.waits import LIMIT

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX shells, signals and terminals")
LINE = "A line of text, <|endoftext|> é日本 \U0001fae8 and 12345 so on.\n".encode()
DATA = [b"", b"a", LINE * 30, b"\xef\xbb\xbfBOM " + LINE, b"a\0b\0c d", bytes(range(256)) * 3]
MODELS = [BPE, LLAMA3, SPM, str(fixture("wpm")), str(fixture("test"))]


@pytest.fixture(autouse=True)
def no_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GGTOK_MODEL", raising=False)


# ---- truncate ----


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("data", DATA, ids=range(len(DATA)))
def test_truncate_is_the_methods(run, model: str, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    tok = ggtok.load(model)
    for n, side, special in (2, "right", True), (40, "right", False), (9, "left", True):
        argv = ["truncate", model, "-n", str(n), "--side", side]
        argv += [] if special else ["--no-special"]
        text = tok.truncate(data, n, side=side, add_special=special)
        assert run(*argv, str(path)).out == text
        assert run(*argv, stdin=data).out == run(*argv, "-", stdin=data).out == text
        assert run(*argv, str(path), "-0").out == text + b"\0"
        start = 0 if side == "right" else len(data) - len(text)
        assert json.loads(run(*argv, str(path), "--json").out) == {
            "path": str(path),
            "start": start,
            "end": start + len(text),
            "n_tokens": tok.count(text, add_special=special),
            "truncated": len(text) < len(data),
            "text": text.decode("utf-8", "replace"),
        }


@pytest.mark.parametrize("model", [BPE, LLAMA3, SPM, str(fixture("test"))])
def test_truncate_does_not_depend_on_blocks(
    run, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """truncate reads only as many blocks as it needs, and doesn't treat their end as the text's
    end."""
    (tmp_path / "text").write_bytes(data := LINE * 8)
    tok = ggtok.load(model)
    for block in 1, 7, 64:
        monkeypatch.setattr("ggtok.cli.input_texts.BLOCK", block)
        for n in range(1, 120, 13):
            out = run("truncate", model, "-n", str(n), "--no-special", str(tmp_path / "text")).out
            assert out == tok.truncate(data, n, add_special=False), (block, n)


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_the_beginning_of_a_text_that_continues(name: str) -> None:
    """If the beginning of a text already determines the result, that is the result for the whole
    text."""
    tok = ggtok.load(fixture(name))
    least = tok.count(b"")
    for text in (b"\0", b"a", b" a", b"\xff", b" ", "\u00e9".encode(), b"a\xcc\x81", LINE):
        found = beginning(tok._loaded, text * 2, least, True)
        for rest in (b"", text * 300, b" \xff", b"b" * 300):
            assert found in (None, tok.truncate(text * 2 + rest, least)), (text, rest)
    if tok.vocab_type != "UGM":
        assert beginning(tok._loaded, b"a" * 1000, least, True) == b""


@posix
def test_truncate_reads_only_the_beginning_of_endless_input(tmp_path: Path) -> None:
    nothing = '"$@" -n 0 --side right --no-special'
    line = f'yes "some text" | "$@" -n 9; yes | {nothing}; {nothing} </dev/zero'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, "truncate", LLAMA3], capture_output=True, timeout=LIMIT
    )
    text = ggtok.load(LLAMA3).truncate("some text\n" * 10, 9)
    assert (done.returncode, done.stdout, done.stderr) == (0, text.encode(), b"")


# ---- chunks ----


@pytest.mark.parametrize("model", MODELS[:4])
@pytest.mark.parametrize("data", DATA[:5], ids=range(5))
@pytest.mark.parametrize("unit", ["byte", "char"])
def test_chunks_are_the_methods(run, model: str, data: bytes, unit: str, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    tok = ggtok.load(model)
    text = data.decode() if unit == "char" else data
    for options, named in (
        ([], {}),
        (["--overlap", "3", "--no-special"], {"overlap": 3, "add_special": False}),
        (
            ["--prefix", "pre: ", "--at", r"\n", "--at", ", "],
            {"prefix": "pre: ", "at": ["\n", ", "]},
        ),
    ):
        argv = ["chunks", model, "-n", "24", "--unit", unit, *options]
        expected = tok.chunks(text, 24, **named)
        rows = [json.loads(row) for row in run(*argv, str(path), "--json").out.splitlines()]
        assert [(r["start"], r["end"], r["n_tokens"]) for r in rows] == expected
        parts = [text[c.start : c.end] for c in expected]
        parts = [part.encode() if isinstance(part, str) else part for part in parts]
        assert [r["text"].encode() for r in rows] == parts
        assert {r["path"] for r in rows} <= {str(path)}
        assert run(*argv, "-0", stdin=data).out == b"".join(part + b"\0" for part in parts)
        lines = run(*argv, "-", stdin=data).out.decode().splitlines()
        assert [(*map(int, line.split()[:3]), line.split()[3]) for line in lines] == [
            (*chunk, "-") for chunk in expected
        ]


def test_chunks_of_what_is_not_utf8(run) -> None:
    result = run("chunks", BPE, "-n", "9", "--unit", "char", stdin=b"a\xff")
    assert result.status == 2
    assert result.errors == ["ggtok: error: standard input is not UTF-8 (byte 1): use --unit byte"]
    shown = json.loads(run("chunks", BPE, "-n", "9", "--json", stdin=b"a\xff").out)
    assert (shown["end"], shown["text"]) == (2, "a\ufffd")


# ---- both commands ----

BOTH = pytest.mark.parametrize("command", ["truncate", "chunks"])


@BOTH
def test_several_files(run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a").write_text("hi")
    (tmp_path / "b").write_text("there")
    argv = [command, BPE, "-n", "9", "a", "-", "b"]
    rows = [json.loads(row) for row in run(*argv, "--json", stdin=b"you").out.splitlines()]
    assert [row["path"] for row in rows] == ["a", "-", "b"]
    assert run(*argv, "--null", stdin=b"you").out == b"hi\0you\0there\0"
    argv = [command, BPE, "-n", "9", "a", "missing", ".", "b", "-0"]
    result = run(*argv)
    assert (result.status, result.out) == (2, b"hi\0there\0")
    assert result.errors == [
        "ggtok: error: missing: No such file or directory",
        "ggtok: error: .: this is a folder; name the files in it, such as ./*",
    ]
    warned = run(command, BPE, "-n", "9", "-0", stdin=b"a\0b")
    assert warned.warnings == ["ggtok: warning: standard input contains NUL: use --json"]


@BOTH
def test_unreadable_files(
    run, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ggtok.cli import input_texts

    def denied(path: str) -> object:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(input_texts, "blocks", denied)
    result = run(command, BPE, "-n", "9", "secret")
    assert (result.status, result.errors) == (2, ["ggtok: error: secret: Permission denied"])


@BOTH
@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "no number of tokens: give -n N"),
        (["-n", "x"], "-n/--tokens must be a number, not 'x'"),
        (["-n", "9", "-0", "--json"], "--null and --json exclude each other"),
        (["-n", "9", "-", "-"], "standard input can be read only once"),
        (["--tokens=-1"], "n "),
    ],
)
def test_usage(run, command: str, argv: list[str], message: str) -> None:
    result = run(command, LLAMA3, *argv)
    assert (result.status, result.out, len(result.errors)) == (2, b"", 1)
    assert message in result.errors[0]


def test_several_texts_do_not_become_one(run) -> None:
    result = run("truncate", BPE, "-n", "9", "a", "b")
    assert result.status == 2 and "give --null or --json" in result.errors[0]


def test_too_few_tokens(run) -> None:
    result = run("truncate", LLAMA3, "-n", "0", stdin=b"hi" * (1 << 20))
    assert result.status == 2 and "1 would do" in result.errors[0]
    result = run("chunks", LLAMA3, "-n", "1", stdin=b"hi")
    assert result.status == 2 and "2 would do" in result.errors[0]


# ---- processes ----


@pytest.mark.full
@posix
@BOTH
def test_closed_pipes_and_locales(command: str, tmp_path: Path) -> None:
    (tmp_path / "é.txt").write_bytes(LINE * 20000)
    line = '"$@" -n 40 é.txt --json | head -c 9; "$@" -n 40 <&-; "$@" -n 40 é.txt >&-'
    done = subprocess.run(
        ["sh", "-c", line, "sh", *COMMAND, command, BPE], capture_output=True, cwd=tmp_path
    )
    assert done.stdout == b'{"path": '
    assert done.stderr == (
        b"ggtok: error: standard input is closed\nggtok: error: standard output is closed\n"
    )
    for env in (
        {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "latin-1"},
    ):
        done = spawn([command, BPE, "-n", "60", "é.txt", "--json"], tmp_path, **env)
        row = json.loads(done.stdout.splitlines()[0])
        assert row["path"] == "é.txt" and "é日本" in row["text"]


@posix
@BOTH
def test_ctrl_c(command: str, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    process = subprocess.Popen(
        [*COMMAND, command, BPE, "-n", "1000000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    signal.signal(signal.SIGINT, before)
    assert process.stdin is not None
    process.stdin.write(b"x" * 200000)  # more than a pipe holds: returns after the first read
    process.stdin.flush()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=LIMIT)
    assert (process.returncode, out, err) == (130, b"", b"")


@posix
def test_on_a_terminal(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"\x1b]0;title\x07 text")
    argv = [*COMMAND, "truncate", BPE, "-n", "99", "text"]
    assert on_terminal(argv, tmp_path, columns=10) == rb"\x1b]0;title\x07 text" + b"\n"
    name = tmp_path / "\x1b[2J"
    name.write_bytes(b"hi")
    shown = on_terminal([*COMMAND, "chunks", BPE, "-n", "9", os.fspath(name)], tmp_path, columns=10)
    assert shown.endswith(rb"\x1b[2J" + b"\n") and b"\x1b" not in shown
