"""Texts of any size and with any bytes, in files and on standard input; binary files."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import input_texts
from tests.cli.command import BPE, SPM

BLOCK = 1 << 16
SIZES = [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 5 * BLOCK // 2]
LINE = "A line of text, <|endoftext|> é你\U0001fae8 \\n and\\x41 so on.\n".encode()


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("model", [BPE, SPM])
def test_any_size_gives_the_ids_of_the_whole(
    run, model: str, size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(input_texts, "BLOCK", BLOCK)
    data = (LINE * (size // len(LINE) + 1))[:size]
    path = tmp_path / "text"
    path.write_bytes(data)
    tok = ggtok.load(model)
    ids = tok.encode(input_texts.unescape(data), add_special=tok.add_bos, parse_special=True)
    assert json.loads(run("tokenize", model, "-f", str(path), "--ids").out) == ids
    shown = json.loads(run("tokenize", model, "-f", "-", "--json", stdin=data).out)
    assert (shown["count"], shown["ids"]) == (len(ids), ids)
    assert [token["id"] for token in shown["tokens"]] == ids
    listed = run("tokenize", model, "-f", str(path), "--show-count").out
    assert listed.endswith(f"Total number of tokens: {len(ids)}\n".encode())
    assert listed.count(b" -> '") == len(ids)
    plain = tok.encode(data, add_special=tok.add_bos)
    assert json.loads(run("tokenize", model, "-f", str(path), "--ids", "--plain").out) == plain


PEAK = """
import sys
from ggtok import cli
status = cli.main(sys.argv[1:])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
print(peak.split()[1], file=sys.stderr)
sys.exit(status)
"""


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="Linux tells the peak of a process's memory")
@pytest.mark.parametrize("option", ["--ids", "--show-count", "--json"])
def test_memory_does_not_grow_with_the_file(option: str, tmp_path: Path) -> None:
    path = tmp_path / "text"

    def peak(n_lines: int) -> int:
        path.write_bytes(LINE * n_lines)
        argv = [sys.executable, "-c", PEAK, "tokenize", BPE, "-f", str(path), option]
        done = subprocess.run(argv, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=True)
        return 1024 * int(done.stderr)

    # From about 70,000 lines on, blocks have their full size. The peak varies by up to 9 MB between
    # runs, so the text must grow by more than that.
    small, large = peak(100_000), peak(350_000)
    growth = (350_000 - 100_000) * len(LINE)
    assert large - small < growth  # a list of all ids would need ten times as much


@pytest.mark.parametrize("n", range(1, 6))
def test_escapes_in_blocks(n: int) -> None:
    """Escapes are recognized even if a block ends inside them."""
    text = rb"a\n\\n\\\x41\xfF\x 7\x+7\x-1\x4\x4g\x\0\q\'\"" + b"\\\n\\"
    for end in range(len(text) + 1):
        part = text[:end]
        blocks = [part[i : i + n] for i in range(0, end, n)]
        assert b"".join(input_texts.unescape_blocks(blocks)) == input_texts.unescape(part)


@pytest.mark.parametrize(
    "data", [b"", b"\xef\xbb\xbfwith a BOM", b"a\0b\0", b"\xff\xfe", b"\r\n", bytes(range(256))]
)
def test_any_bytes(run, data: bytes, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(data)
    ids = ggtok.load(BPE).encode(data)
    assert json.loads(run("tokenize", BPE, "-f", str(path), "--ids", "--plain").out) == ids
    assert json.loads(run("tokenize", BPE, "-f", "-", "--ids", "--plain", stdin=data).out) == ids
    assert json.loads(run("tokenize", BPE, "--stdin", "--ids", "--plain", stdin=data).out) == ids


def test_lists_of_ids_may_have_a_byte_order_mark(run, tmp_path: Path) -> None:
    path = tmp_path / "ids"
    path.write_bytes(b"\xef\xbb\xbf[71, 72]")
    assert run("detokenize", BPE, "-f", str(path)).out == b"hi"
    assert run("detokenize", BPE, "-f", "-", stdin=b"71 72\r\n").out == b"hi"


@pytest.mark.parametrize("command", ["tokenize", "detokenize"])
def test_directories(run, command: str, tmp_path: Path) -> None:
    result = run(command, BPE, "-f", str(tmp_path))
    assert (result.status, result.out) == (2, b"")
    advice = f"this is a folder; name the files in it, such as {tmp_path}/*"
    assert result.errors == [f"ggtok: error: {tmp_path}: {advice}"]
    result = run(command, str(tmp_path), "1")
    assert (result.status, len(result.errors)) == (2, 1)
    assert str(tmp_path) in result.errors[0]


def test_unreadable_files(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "secret"
    path.write_text("hi")
    path.chmod(0)

    def denied(name: str, *_: object, **__: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", name)

    if os.access(path, os.R_OK):  # root can read everything
        monkeypatch.setattr("builtins.open", denied)
    result = run("tokenize", BPE, "-f", str(path))
    assert (result.status, result.out) == (2, b"")
    assert result.errors == [f"ggtok: error: {path}: Permission denied"]


@pytest.mark.skipif(not os.path.exists("/proc/self/mem"), reason="a file of Linux")
def test_files_that_fail_in_the_middle(run) -> None:
    """Errors from read don't contain the file's name, unlike those from open."""
    result = run("tokenize", BPE, "-f", "/proc/self/mem")
    assert (result.status, result.out) == (2, b"")
    assert result.errors == ["ggtok: error: /proc/self/mem: Input/output error"]


# ---- likely mistakes ----


def test_name_of_a_file_as_text(run, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "crlf.txt").write_bytes(b"a\r\n")
    for argv in ["crlf.txt"], ["-p", "crlf.txt"]:
        result = run("tokenize", BPE, *argv, "--ids")
        assert json.loads(result.out) == ggtok.load(BPE).encode("crlf.txt")
        assert len(result.hints) == 1 and "'crlf.txt'" in result.hints[0]
        assert "-f" in result.hints[0]
        assert run("tokenize", BPE, *argv, "-q").hints == []
    assert run("tokenize", BPE, "no file").hints == []


def test_dash_as_text(run) -> None:
    result = run("tokenize", BPE, "-", "--ids", stdin=b"hi")
    assert json.loads(result.out) == ggtok.load(BPE).encode("-")
    assert len(result.hints) == 1 and "-f -" in result.hints[0]


def test_words_beside_a_file_are_refused(run, tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_text("hi")
    for option in ["-f", str(path)], ["-f", "-"], ["--stdin"]:
        result = run("tokenize", BPE, *option, "extra", stdin=b"hi")
        assert (result.status, result.out) == (2, b"")
        assert len(result.errors) == 1 and "'extra'" in result.errors[0]
    assert "quotes" in run("tokenize", BPE, "-f", str(path), "two", "words").errors[0]
