"""``ggtok list``, and messages while the command waits for a server."""

from __future__ import annotations

import json
import os
import struct
import threading
from pathlib import Path

import pytest

import ggtok
from ggtok.cli import messages
from ggtok.sources import ollama_store, timeouts
from tests.cli.command import BPE, LLAMA3
from tests.support.patch import GGUF
from tests.support.servers import File, Server
from tests.support.waits import LIMIT


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets an empty home folder, without models."""
    for variable in ("HF_HUB_CACHE", "HF_HOME", "LLAMA_CACHE", "XDG_CACHE_HOME", "OLLAMA_MODELS"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    monkeypatch.setattr(ollama_store, "stores", lambda: [str(tmp_path / "ollama")])
    return tmp_path


def test_nothing_found(run, home: Path) -> None:
    result = run("list")
    assert (result.status, result.errors) == (0, [])
    assert result.out == b"SOURCE  NAME  SIZE  TYPE  PRE  TOKENS\n"
    assert result.warnings[0].startswith("ggtok: warning: no models found")
    for folder in home / ".cache" / "huggingface" / "hub", home / "ollama":
        assert any(f"{folder} (does not exist)" in line for line in result.warnings)
    as_json = run("list", "--json")
    assert (as_json.out, as_json.warnings) == (b"[]\n", result.warnings)
    assert run("list", "-q").warnings == []


def test_folders_without_models(run, tmp_path: Path) -> None:
    result = run("list", str(tmp_path))
    assert result.status == 0
    assert any(str(tmp_path) in line for line in result.warnings)


def test_unreadable_folders(run, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "models" / "secret").mkdir(parents=True)
    (home / "models" / "a.gguf").symlink_to(BPE)
    plain = os.scandir

    def scandir(path: str) -> object:
        if os.fspath(path).endswith("secret"):
            raise PermissionError(13, "Permission denied", path)
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    result = run("list", str(home / "models"))
    assert b"a.gguf" in result.out
    secret = home / "models" / "secret"
    assert result.warnings == [f"ggtok: warning: can't read {secret}: Permission denied"]
    assert (result.status, result.errors) == (0, [])


def test_what_is_not_a_model_is_listed_with_its_error(run, tmp_path: Path) -> None:
    (tmp_path / "good.gguf").symlink_to(BPE)
    (tmp_path / "\x1b[2Jbad.gguf").write_bytes(b"GGUF")
    result = run("list", str(tmp_path))
    good, bad = sorted(result.out.splitlines()[1:], key=lambda line: b"bad" in line)
    assert b"gpt-2" in good
    assert rb"\x1b[2Jbad.gguf" in bad and b"(" in bad
    by_name = {
        os.path.basename(m["name"]): m for m in json.loads(run("list", str(tmp_path), "--json").out)
    }
    assert by_name["good.gguf"]["error"] is None
    assert by_name["\x1b[2Jbad.gguf"]["error"]


def test_folders_that_are_none(run, tmp_path: Path) -> None:
    for path, why in (tmp_path / "none", "doesn't exist"), (Path(BPE), "is not a folder"):
        result = run("list", str(path))
        assert (result.status, result.errors) == (2, [f"ggtok: error: {path} {why}"])


def test_slow_servers_are_told_of(run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path))
    monkeypatch.setattr(timeouts, "SILENT", 0.01)
    told = threading.Event()
    warn = messages.say

    def say(*args: object) -> None:
        warn(*args)
        told.set()

    monkeypatch.setattr(messages, "say", say)
    with Server() as server:
        for name, seconds in ("a", LIMIT), ("b", 0.2):
            server.files[f"/{name}.gguf"] = File(
                Path(LLAMA3), before=lambda _, s=seconds: told.wait(s) and None
            )
        result = run("tokenize", server.url("/a.gguf"), "hi", "--ids")
        told.clear()
        quiet = run("tokenize", server.url("/b.gguf"), "hi", "--ids", "-q")
    assert (result.status, quiet.status) == (0, 0)
    assert result.out == quiet.out == run("tokenize", LLAMA3, "hi", "--ids").out
    assert result.notes[0].startswith("ggtok: note: waiting for 127.0.0.1")
    assert (result.errors, quiet.notes) == ([], [])


def test_a_file_that_is_cut_off(run, tmp_path: Path) -> None:
    """A file may be truncated in the metadata after the vocabulary's keys, in the tensor
    descriptions, or in the tensors."""
    gguf = GGUF.read(BPE)
    gguf.set("zz", ["x" * 1000] * 300)
    end = len(gguf.write(tmp_path / "no-tensors.gguf").read_bytes())
    head = (tmp_path / "no-tensors.gguf").read_bytes()
    tensors = b"".join(
        struct.pack("<Q", len(name)) + name + struct.pack("<IQIQ", 1, 64, 0, offset)
        for name, offset in ((b"a", 0), (b"bb", 256))
    )
    file = head[:8] + struct.pack("<Q", 2) + head[16:] + tensors
    file += bytes(-len(file) % 32) + bytes(512)
    for size in (len(file), len(file) - 300, end + 20, end, end - 5, 100_000):
        (tmp_path / f"{size}.gguf").write_bytes(file[:size])
    shown = json.loads(run("list", str(tmp_path), "--json").out)
    errors = {os.path.basename(model["name"]): model["error"] for model in shown}
    assert errors.pop("no-tensors.gguf") is None and errors.pop(f"{len(file)}.gguf") is None
    assert len(errors) == 5
    assert all(error.startswith("the file is cut off: ") for error in errors.values())
    assert {model["n_tokens"] for model in shown} == {ggtok.load(BPE).n_tokens}
    row = next(line for line in run("list", str(tmp_path)).out.splitlines() if b"100000.g" in line)
    assert b"  (the file is cut off: it has 100000 bytes" in row
