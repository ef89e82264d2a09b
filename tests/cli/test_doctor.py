"""Tests the command ``ggtok doctor``."""

from __future__ import annotations

import json
import shutil
import struct
from pathlib import Path

import pytest

import ggtok
from tests.cli.command import BPE
from tests.sources.stores import hub_cache
from tests.support.patch import GGUF, add_tokens
from tests.support.servers import File, Server
from tests.support.vocabularies import fixture

HEALTHY = str(fixture("bpe-overlap"))


def test_nothing(run) -> None:
    result = run("doctor", HEALTHY)
    assert (result.status, result.out, result.errors) == (0, b"nothing found\n", [])
    assert run("doctor", "-m", HEALTHY, "--json").out == b"[]\n"


def test_remarks_and_serious_findings(run, tmp_path: Path) -> None:
    result = run("doctor", BPE)
    assert result.status == 0 and result.out.startswith(
        b"GGT404 remark: tokens that were not found"
    )
    gguf = GGUF.read(HEALTHY)
    gguf.set("tokenizer.ggml.pre", "to\x1b[31mmorrow\u202e")
    path = str(gguf.write(tmp_path / "m.gguf"))
    result = run("doctor", path)
    assert result.status == 1 and result.warnings == []
    shown = result.out.decode()
    assert shown.startswith("GGT103 serious: the pre-tokenizer is unknown\n  it is 'to\\x1b[31m")
    assert "\x1b" not in shown and "\u202e" not in shown
    assert max(len(line) for line in shown.splitlines() if "ggtok edit" not in line) <= 100
    result = run("doctor", path, "--json")
    [found] = json.loads(result.out)
    assert result.status == 1
    assert (found["code"], found["severity"], found["ids"]) == ("GGT103", "serious", [])
    assert {"title", "detail", "means", "advice"} < set(found)


def test_remote_headers(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    gguf = GGUF.read(HEALTHY)
    gguf.remove("tokenizer.ggml.pre")
    path = gguf.write(tmp_path / "m.gguf")
    path.write_bytes(path.read_bytes() + bytes(8 << 20))
    with Server() as server:
        server.files["/model.gguf"] = File(path)
        result = run("doctor", server.url("/model.gguf"), "--json")
        assert server.sent < 3 << 20
    assert [f["code"] for f in json.loads(result.out)] == ["GGT101"]


def test_remote_tensors(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The number of rows in the embedding is fetched together with the metadata, and then
    cached."""
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    data = bytearray(Path(HEALTHY).read_bytes())
    rows = len(GGUF.read(HEALTHY).array("tokenizer.ggml.tokens")) + 1
    name = b"token_embd.weight"
    struct.pack_into("<Q", data, 8, 1)
    data += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 8, rows, 0, 0)
    path = tmp_path / "m.gguf"
    path.write_bytes(data + bytes(8 << 20))
    with Server() as server:
        server.files["/model.gguf"] = File(path)
        for _ in range(2):
            result = run("doctor", server.url("/model.gguf"), "--json")
            [found] = json.loads(result.out)
            assert (found["code"], found["detail"]) == ("GGT601", f"{rows} rows, {rows - 1} tokens")
        assert server.sent < 3 << 20


def test_names_of_the_hub(run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file is in huggingface_hub's cache. (tests/sources uses a fake Hub.)"""
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    gguf = GGUF.read(HEALTHY)
    gguf.remove("tokenizer.ggml.pre")
    files = {"model.gguf": gguf.write(tmp_path / "m.gguf").read_bytes()}
    hub_cache(tmp_path, "user/repo", files)
    result = run("doctor", "hf://user/repo/model.gguf", "--json")
    assert [f["code"] for f in json.loads(result.out)] == ["GGT101"]
    assert run("doctor", "hf://user/repo/model.gguf").status == result.status == 1


def test_serious_findings_come_first_and_fit_the_terminal(
    run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gguf = GGUF.read(fixture("bpe-llama3"))
    gguf.set("tokenizer.ggml.eos_token_id", 72, "u32")
    gguf.set("llama.vocab_size", 5, "u32")
    add_tokens(gguf, [b"\xff\xfe"], 1)  # GGT406
    path = str(gguf.write(tmp_path / "m.gguf"))
    for columns, widest in (50, 50), (90, 90), (400, 120):
        monkeypatch.setenv("COLUMNS", str(columns))
        lines = run("doctor", path).out.decode().splitlines()
        heads = [line.split()[1] for line in lines if line.startswith("GGT")]
        assert heads == sorted(heads, reverse=True) and {*heads} == {"serious:", "remark:"}
        texts = [line for line in lines if line.startswith("  ") and "ggtok edit" not in line]
        assert widest - 20 < max(map(len, texts)) <= widest


def test_errors(run, tmp_path: Path) -> None:
    assert run("doctor").errors == [
        "ggtok: error: no model: give a GGUF file or a model's name, or set GGTOK_MODEL"
    ]
    result = run("doctor", HEALTHY, "x")
    assert (result.status, result.errors) == (2, ["ggtok: error: x: No such file or directory"])
    (tmp_path / "no.gguf").write_bytes(b"GGUF")
    for source in str(tmp_path / "no.gguf"), str(tmp_path / "missing.gguf"):
        result = run("doctor", source)
        assert (result.status, len(result.errors), result.out) == (2, 1, b""), source


def test_several_models(run, tmp_path: Path) -> None:
    shutil.copy(HEALTHY, tmp_path / "a.gguf")
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    result = run("doctor", str(tmp_path))
    assert (result.status, len(result.errors)) == (2, 1)
    assert "ggtok: error: " + str(tmp_path / "b.gguf") in result.errors[0]
    head, first, second, summary = result.out.decode().splitlines()
    assert head.split()[:3] == ["MODEL", "SERIOUS", "REMARKS"]
    assert first.split()[0] == str(tmp_path / "a.gguf")
    assert second.endswith("(error)")
    assert summary.startswith("2 models; ")
    one, other = json.loads(run("doctor", str(tmp_path), "--json").out)
    assert isinstance(one["findings"], list)
    assert other["error"]
    assert run("doctor", HEALTHY, HEALTHY, "-m", HEALTHY).status == 2
    (tmp_path / "empty").mkdir()
    [error] = run("doctor", str(tmp_path / "empty")).errors
    assert error == f"ggtok: error: no models in {tmp_path / 'empty'}"


def test_the_command_that_corrects_a_finding(run, tmp_path: Path) -> None:
    """The command is on one line, and only its word MODEL is replaced with the file's path."""
    original, folder = tmp_path / "MODEL", tmp_path / ("very long name  " * 8)
    folder.mkdir()
    ggtok.vocabulary(HEALTHY).save_pretrained(original, inexact=True)
    gguf = GGUF.read(HEALTHY)
    gguf.set("tokenizer.ggml.add_bos_token", not ggtok.load(HEALTHY).add_bos)
    path = str(gguf.write(folder / "m.gguf"))
    lines = run("doctor", path, "--against", str(original)).out.decode().splitlines()
    command = f"ggtok edit '{path}' --fix GGT711 --against {original} --in-place"
    assert f"  Correct it: {command}" in lines
