"""Tests the command ``ggtok view``."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import httpx2
import pytest

import ggtok
from tests.cli.command import COMMAND
from tests.support.page import data
from tests.support.tensors import with_tensors
from tests.support.vocabularies import fixture


def test_a_page_in_one_file(run, tmp_path: Path) -> None:
    model = with_tensors(tmp_path / "model.gguf")
    out = tmp_path / "page.html"
    result = run("view", str(model), f"b={fixture('wpm')}", "-o", str(out), "--json")
    assert result.status == 0, result.errors
    assert json.loads(result.out) == {"path": str(out), "bytes": out.stat().st_size}
    found = data(out.read_text())
    assert "server" not in found
    assert found["writer"] == f"ggtok view {ggtok.__version__}"
    assert str(tmp_path) not in out.read_text()
    assert [each["name"] for each in found["models"]] == ["model.gguf", "b"]
    for each, path in zip(found["models"], (model, fixture("wpm")), strict=True):
        assert each["from"] == path.name
        tok = ggtok.load(gzip.decompress(b64decode(each["data"])))
        assert tok.encode("Hi there") == ggtok.load(path).encode("Hi there")
    again = tmp_path / "again.html"
    run("view", str(model), f"b={fixture('wpm')}", "-o", str(again))
    assert again.read_bytes() == out.read_bytes()
    assert run("view", str(model), "-o", str(out)).status == 0  # replaces an earlier page


def test_refusals(run, tmp_path: Path) -> None:
    spm = str(fixture("spm"))
    other = tmp_path / "notes.txt"
    other.write_text("notes")
    for argv, message in [
        ((spm, "-o", str(other)), "not an HTML page; force=True (--force) overwrites it"),
        ((spm, "-o", "-"), "standard output"),
        ((str(tmp_path / "missing.gguf"), "-o", str(tmp_path / "a.html")), "missing.gguf"),
        ((str(other), "-o", str(tmp_path / "a.html")), "notes.txt"),
        ((spm, "-o", spm, "--force"), "the source itself"),
        ((spm, spm), "two models have the name"),
        ((spm, "--json"), "--json needs -o"),
        ((str(tmp_path / "missing.gguf"),), "missing.gguf"),
        ((spm, "--port", "99999"), "99999"),
    ]:
        result = run("view", *argv)
        assert result.status == 2, argv
        (line,) = result.errors
        assert message in line, argv
    assert other.read_text() == "notes"
    assert not (tmp_path / "a.html").exists()


@pytest.mark.parametrize(
    ("name", "message"), [("a/b.html", "the folder"), ("notes", "not an HTML")]
)
def test_the_output_is_checked_before_models_are_read(
    run, tmp_path: Path, name: str, message: str
) -> None:
    """A model may be large, or come from the Hub."""
    (tmp_path / "notes").write_text("notes")
    broken = tmp_path / "broken.gguf"
    broken.write_text("not a GGUF file")
    result = run("view", str(broken), "-o", str(tmp_path / name))
    assert result.status == 2
    (line,) = result.errors
    assert message in line


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("models", [["a=" + str(fixture("spm"))], []])
def test_a_server_until_ctrl_c(models: list[str], tmp_path: Path) -> None:
    opened = tmp_path / "opened"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" >{opened}.part && mv {opened}.part {opened}\n')
    browser.chmod(0o755)
    child = subprocess.Popen(
        [*COMMAND, "view", *models],
        stderr=subprocess.PIPE,
        env={**os.environ, "BROWSER": f"{browser} %s &", "DISPLAY": ":0"},
    )
    try:
        assert child.stderr is not None
        line = child.stderr.readline().decode()
        url = re.search(r"http://127\.0\.0\.1:\d+/", line)
        assert url, line
        found = data(httpx2.get(url[0], timeout=60).text)
        assert [model["name"] for model in found["models"]] == [m[:1] for m in models]
        for model in found["models"]:
            assert (
                ggtok.load(httpx2.get(url[0] + model["url"], timeout=60).content).vocab_type
                == "SPM"
            )
        for _ in range(1000):
            if opened.exists():
                break
            signal.sigtimedwait([], 0.01)
        assert opened.read_text().strip() == url[0]
        child.send_signal(signal.SIGINT)
        rest = child.communicate(timeout=60)[1]
        assert child.returncode == 0, rest
        assert rest == b""
    finally:
        child.kill()
        child.wait()
