"""The commands in docs/serving.md's systemd unit and container work as written."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
from pathlib import Path

import pytest

from ggtok import cli
from tests.server.command import ROOT, serving
from tests.server.running import ask
from tests.support import waits
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.skipif(os.name == "nt", reason="POSIX")


def _block(language: str) -> str:
    text = (ROOT / "docs" / "serving.md").read_text("utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)[0]


@pytest.fixture
def models(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    folder.mkdir()
    shutil.copy(fixture("spm"), folder / "m.gguf")
    return folder


def test_the_command_of_the_unit(models: Path, tmp_path: Path) -> None:
    unit = _block("ini")
    program, command, *arguments = shlex.split(
        re.findall(r"^ExecStart=(.*)", unit, re.MULTILINE)[0]
    )
    assert program.endswith("/ggtok") and command == "serve" and "Type=notify" in unit
    arguments = [str(models) if word == "/srv/models" else word for word in arguments]
    assert str(models) in arguments
    address = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(address)
        told.settimeout(waits.LIMIT)
        with serving(arguments, tmp_path / "log", {"NOTIFY_SOCKET": address}) as served:
            assert told.recv(100) == b"READY=1"
            assert ask(served.url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
            assert served.stop() == 0


def test_systemd_accepts_the_unit(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("no systemd-analyze")
    path = tmp_path / "ggtok.service"
    # systemd-analyze needs a program that exists.
    path.write_text(re.sub(r"(?m)^ExecStart=\S+", "ExecStart=/bin/true", _block("ini")))
    run = subprocess.run(["systemd-analyze", "verify", path], capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")


def test_the_command_of_the_container(
    models: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    entry = json.loads(re.findall(r"^ENTRYPOINT (.*)", _block("dockerfile"), re.MULTILINE)[0])
    program, command, *arguments = [str(models) if word == "/models" else word for word in entry]
    assert (program, command) == ("ggtok", "serve") and str(models) in arguments
    monkeypatch.delenv("GGTOK_API_KEY", raising=False)
    assert cli.main(["serve", *arguments]) == 2
    assert "give a key" in capfd.readouterr().err
    with serving(arguments, tmp_path / "log", {"GGTOK_API_KEY": "secret"}) as served:
        url = served.url.replace("0.0.0.0", "127.0.0.1")
        body, key = {"content": "Hi"}, {"Authorization": "Bearer secret"}
        assert ask(url, "POST", "/tokenize", body)[0] == 401
        assert ask(url, "POST", "/tokenize", body, key)[0] == 200
