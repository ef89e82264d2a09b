"""Tests the command ``ggtok serve``."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from ggtok import cli
from ggtok.cli import serve_command
from ggtok.cli.commands import parser
from tests.cli.command import COMMAND
from tests.server.running import ask
from tests.support import waits
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
SPM, BPE = str(fixture("spm")), str(fixture("bpe-llama3"))


@contextmanager
def started(*argv: str, **environment: str) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """Starts the command and yields its process and URL."""
    command = [*COMMAND, "serve", "--port", "0", *argv]
    child = subprocess.Popen(
        command,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        start_new_session=True,
    )
    try:
        assert child.stderr is not None
        line = child.stderr.readline().decode()
        url = re.fullmatch(r"ggtok: note: serving .* at (http://127\.0\.0\.1:\d+)\n", line)
        assert url, line
        yield child, url[1]
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)  # also kills its worker processes
        child.communicate()


def test_a_server() -> None:
    with started("a=" + SPM, BPE) as (child, url):
        with httpx2.Client(base_url=url, timeout=waits.LIMIT) as client:
            answer = client.post("/tokenize", json={"model": "a", "content": "Hi"})
            assert answer.json()["count"]
            ids = [row["id"] for row in client.get("/v1/models").json()["data"]]
        assert ids == ["a", "bpe-llama3.gguf"]
        child.send_signal(signal.SIGINT)
        assert child.wait() == 0
        assert child.stderr is not None
        assert all(line.startswith(b"{") for line in child.stderr.read().splitlines())


def test_a_folder(tmp_path: Path) -> None:
    """Models appear while the server runs, in each of its processes."""
    shutil.copy(SPM, tmp_path / "a.gguf")

    def listed() -> list[str]:
        return [row["id"] for row in ask(url, "GET", "/v1/models")[2]["data"]]

    def answers(name: str) -> bool:
        return ask(url, "POST", "/tokenize", {"model": name, "content": "Hi"})[0] == 200

    with started("--models", str(tmp_path), "x=" + BPE, "--workers", "2") as (_, url):
        assert listed() == ["x", "a.gguf"]
        assert not answers("b")
        shutil.copy(SPM, tmp_path / "b.gguf")
        waits.until(lambda: answers("b"))
        waits.until(lambda: listed() == ["x", "a.gguf", "b.gguf"])
        (tmp_path / "a.gguf").unlink()
        waits.until(lambda: listed() == ["x", "b.gguf"])


def test_several_processes_and_keys() -> None:
    with started(SPM, "--workers", "2", "--api-key", "a,b", GGTOK_API_KEY="c,d e") as (child, url):
        # The worker processes need time to start.
        with httpx2.Client(base_url=url, timeout=waits.LIMIT) as client:
            for key in "", "a,b", "c,d e", "d":
                headers = {"X-Api-Key": key}
                assert client.post("/tokenize", json={}, headers=headers).status_code == 401
            for key in "a", "b", "c", "d e":
                headers = {"X-Api-Key": key}
                assert client.post("/tokenize", json={}, headers=headers).status_code == 200
        child.send_signal(signal.SIGTERM)
        child.wait()


def models(*argv: str) -> dict[str, str]:
    args = parser("serve").parse(argv)
    return serve_command.models_by_alias(args.words)


def test_models(tmp_path: Path) -> None:
    assert models(SPM, "x=" + BPE, "user/repo:Q8_0", "o=ollama:llama3.2") == {
        "spm.gguf": SPM,
        "x": BPE,
        "user/repo:Q8_0": "user/repo:Q8_0",
        "o": "ollama:llama3.2",
    }
    equals = shutil.copy(SPM, tmp_path / "c=d.gguf")
    assert models(str(equals)) == {"c=d.gguf": str(equals)}


def error(capsys: pytest.CaptureFixture[str], *argv: str) -> str:
    assert cli.main(["serve", *argv]) == 2
    return capsys.readouterr().err


def test_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = str(tmp_path)
    assert "no model: name one" in error(capsys)
    assert "has no .gguf file" in error(capsys, "--models", folder)
    assert "takes a folder" in error(capsys, "--models", SPM)
    assert "No such file" in error(capsys, "--models", folder + "/none")
    assert "two models have the name spm.gguf" in error(capsys, SPM, SPM)
    assert f"{folder} is a folder; 'ggtok serve --models" in error(capsys, folder)
    assert "none.gguf: no such file" in error(capsys, "none.gguf")
    assert "x/none.gguf: no such file" in error(capsys, "a=x/none.gguf")
    assert "-5: no such file" in error(capsys, SPM, "--limit", "-5")
    assert "'-5' isn't a number of tokens" in error(capsys, SPM, "--limit=-5")
    assert "'8kk' isn't a number of tokens" in error(capsys, SPM, "--limit", "8kk")
    assert "need --upstream" in error(capsys, SPM, "--limit", "8k")
    for wrong in "a=", "=" + SPM:
        assert "write ALIAS=MODEL" in error(capsys, wrong)
    for empty in "", ",", "a,", "a,,b":
        assert "--api-key has an empty key" in error(capsys, SPM, "--api-key", empty)
    for wrong in "é", "\udcff", "a, b", "a\n":
        assert "an API key may have printable" in error(capsys, SPM, "--api-key", wrong)
    monkeypatch.setenv("GGTOK_API_KEY", ",a")
    assert "GGTOK_API_KEY has an empty key" in error(capsys, SPM)
    monkeypatch.delenv("GGTOK_API_KEY")
    assert "--host is empty" in error(capsys, SPM, "--host", "", "--no-auth")
    assert "max_body must be at least 1 byte" in error(capsys, SPM, "--max-body", "0")
    assert "is not an origin" in error(capsys, SPM, "--cors-origin", "chat.example")
    for option in ["--upstream-key", "k"], ["--count-header"], ["--limit", "5"]:
        assert "need --upstream" in error(capsys, SPM, *option)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = str(taken.getsockname()[1])
        taken.listen()
        assert f"can't listen at 127.0.0.1, port {port}" in error(capsys, SPM, "--port", port)
    assert "can't listen at ::1, port 99999" in error(
        capsys, SPM, "--port", "99999", "--host", "::1"
    )
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert "pip install 'ggtok[serve]'" in error(capsys, SPM)
