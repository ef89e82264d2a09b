"""Models of a folder, which appear and disappear while the server runs."""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import folders, workers
from ggtok.server.registry import Registry
from tests.support import waits
from tests.support.vocabularies import fixture

BPE, SPM = fixture("bpe-llama3"), fixture("spm")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that is scanned at each request that could need it."""
    monkeypatch.setattr(folders, "SCAN_SECONDS", 0.0)
    made = tmp_path / "models"
    made.mkdir()
    shutil.copy(SPM, made / "b.gguf")
    shutil.copy(SPM, made / "a.GGUF")
    (made / "notes.txt").touch()
    return made


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with TestClient(server.app({"x": BPE}, folder=folder), "http://127.0.0.1") as made:
        yield made


def registry_of(client: TestClient) -> Any:
    return client.app.state.registry  # type: ignore[attr-defined]


def listed(client: TestClient) -> list[str]:
    return [row["id"] for row in client.get("/v1/models").json()["data"]]


def status(client: TestClient, name: str | None) -> int:
    body = {"content": "Hi", **({} if name is None else {"model": name})}
    return client.post("/tokenize", json=body).status_code


def test_new_files_appear(client: TestClient, folder: Path) -> None:
    assert listed(client) == ["x", "a.GGUF", "b.gguf"]
    assert (status(client, "b"), status(client, "new"), status(client, None)) == (200, 404, 400)
    shutil.copy(BPE, folder / "new.gguf")
    answer = client.post("/tokenize", json={"model": "new", "content": "Hi"}).json()
    assert answer["tokens"] == ggtok.load(BPE).encode("Hi", add_special=False)
    assert listed(client) == ["x", "a.GGUF", "b.gguf", "new.gguf"]
    assert "vocabulary?model=new.gguf" in client.get("/ggtok").text
    shutil.copy(BPE, folder / "newer.gguf")
    assert "vocabulary?model=newer.gguf" in client.get("/ggtok").text
    shutil.copy(BPE, folder / "newest.gguf")
    assert client.get("/props", params={"model": "newest"}).status_code == 200
    # A file that isn't complete yet is loaded again after a while.
    (folder / "late.gguf").write_bytes(BPE.read_bytes()[:9999])
    assert status(client, "late") == 503
    shutil.copy(BPE, folder / "late.gguf")
    registry_of(client).model_named("late").checked = -1e9
    assert status(client, "late") == 200


def test_files_that_are_gone(client: TestClient, folder: Path) -> None:
    registry = registry_of(client)
    assert status(client, "b") == 200 and registry.n_loaded() == 1
    (folder / "b.gguf").unlink()
    assert listed(client) == ["x", "a.GGUF"]
    assert status(client, "b") == 404 and registry.n_loaded() == 0
    shutil.rmtree(folder)  # the models stay as they are if the folder can't be listed
    assert listed(client) == ["x", "a.GGUF"] and status(client, "b") == 404
    folder.mkdir()
    assert listed(client) == ["x"] and status(client, None) == 200
    shutil.copy(BPE, folder / "b.gguf")
    assert status(client, "b") == 200 and registry.n_loaded() == 2


@pytest.mark.skipif(sys.platform == "win32", reason="FIFOs")
def test_what_is_no_file(client: TestClient, folder: Path) -> None:
    (folder / "folder.gguf").mkdir()
    (folder / "dangling.gguf").symlink_to("none")
    os.mkfifo(folder / "fifo.gguf")
    assert listed(client) == ["x", "a.GGUF", "b.gguf"]
    if sys.platform == "linux":  # others refuse such names
        shutil.copy(SPM, folder / os.fsdecode(b"\xff.gguf"))
        assert listed(client)[3:] == ["\ufffd.gguf"]
        assert status(client, "\ufffd.gguf") == 200


def test_models_that_were_named_at_the_start_stay(client: TestClient, folder: Path) -> None:
    shutil.copy(SPM, folder / "x.gguf")
    assert listed(client) == ["x", "a.GGUF", "b.gguf", "x.gguf"]
    with TestClient(server.app([BPE], folder=folder), "http://127.0.0.1") as other:
        shutil.copy(SPM, folder / BPE.name)
        assert listed(other) == [BPE.name, "a.GGUF", "b.gguf", "x.gguf"]
        ids = other.post("/tokenize", json={"model": BPE.name, "content": "Hi"}).json()["tokens"]
    assert ids == ggtok.load(BPE).encode("Hi", add_special=False)


def test_files_whose_names_are_taken(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """The start and a scan agree: such a file isn't served, and the log has it once."""

    def logged() -> list[str]:
        records = [r for r in caplog.records if r.message.startswith("model not served")]
        return [Path(r.fields["source"]).name for r in records]  # type: ignore[attr-defined]

    with (
        caplog.at_level("INFO", "ggtok.server"),
        TestClient(
            server.app({"b.gguf": BPE, "c.gguf": BPE}, folder=folder), "http://127.0.0.1"
        ) as client,
    ):
        assert logged() == ["b.gguf"]
        shutil.copy(SPM, folder / "c.gguf")
        for _ in range(2):
            assert listed(client) == ["b.gguf", "c.gguf", "a.GGUF"]
            assert logged() == ["b.gguf", "c.gguf"]
        (folder / "c.gguf").unlink()
        assert listed(client) == ["b.gguf", "c.gguf", "a.GGUF"]
        shutil.copy(SPM, folder / "c.gguf")
        assert listed(client) == ["b.gguf", "c.gguf", "a.GGUF"]
        assert logged() == ["b.gguf", "c.gguf", "c.gguf"]


@pytest.mark.skipif(sys.platform != "linux", reason="others refuse such names")
def test_names_that_are_not_utf8_can_be_the_same(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = (folder / os.fsdecode(name) for name in (b"\xfe.gguf", b"\xff.gguf"))
    shutil.copy(BPE, second)
    with (
        caplog.at_level("INFO", "ggtok.server"),
        TestClient(server.app(folder=folder), "http://127.0.0.1") as client,
    ):
        names = ["a.GGUF", "b.gguf", "\ufffd.gguf"]
        assert listed(client) == names and status(client, names[2]) == 200
        shutil.copy(SPM, first)  # by its name, it comes first, as after a restart
        assert listed(client) == names
        ids = client.post("/tokenize", json={"model": names[2], "content": "Hi"}).json()["tokens"]
        assert ids == ggtok.load(SPM).encode("Hi", add_special=False)
        assert registry_of(client).n_loaded() == 1
        first.unlink()
        assert listed(client) == names and status(client, names[2]) == 200
    messages = [record.message for record in caplog.records if "load" not in record.message]
    assert messages == [
        *("model not served: another has its name", "model added", "model removed"),
        *("model added", "model removed"),
    ]


def test_a_model_that_is_removed_while_it_loads(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its request is refused, and it doesn't take the place of another model."""
    app = server.app({"x": BPE}, folder=folder, max_loaded=1)
    with TestClient(app, "http://127.0.0.1") as client:
        registry = registry_of(client)
        assert status(client, "x") == 200
        load = ggtok.load

        def remove_first(source: str) -> ggtok.Tokenizer:
            tok = load(source)
            os.remove(source)
            registry.scan(registry.folder)
            return tok

        monkeypatch.setattr(ggtok, "load", remove_first)
        assert status(client, "b") == 404
        assert registry.model_named("x").tok is not None and registry.unloads == 0


def test_the_alias_for_every_name_does_not_hide_new_files(folder: Path) -> None:
    with TestClient(server.app({"*": BPE}, folder=folder), "http://127.0.0.1") as client:
        shutil.copy(SPM, folder / "new.gguf")
        body = {"model": "new", "content": "Hi"}
        ids = client.post("/tokenize", json=body).json()["tokens"]
        assert ids == ggtok.load(SPM).encode("Hi", add_special=False)
        assert status(client, "other") == 200


def test_known_models_need_no_scan(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    scans = list[int]()
    monkeypatch.setattr(registry_of(client), "scan", lambda folder: scans.append(1))
    assert status(client, "b") == 200 and not scans
    assert status(client, "other") == 404 and scans == [1]


def test_a_folder_that_does_not_answer(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Requests wait for a scan for a while, and get the models that are known. No second scan
    begins beside it."""
    monkeypatch.setattr(workers, "CHECK_SECONDS", 0.01)
    release, scans = threading.Event(), list[int]()
    scan = Registry.scan

    def wait(registry: Registry, folder: folders.ServedFolder) -> None:
        scans.append(1)
        release.wait(waits.LIMIT)
        scan(registry, folder)

    monkeypatch.setattr(Registry, "scan", wait)
    with TestClient(server.app({"x": BPE}, folder=folder), "http://127.0.0.1") as client:
        shutil.copy(SPM, folder / "new.gguf")
        try:
            for _ in range(3):
                assert listed(client) == ["x", "a.GGUF", "b.gguf"]
                assert status(client, "new") == 404
                assert status(client, "b") == 200
            assert scans == [1]
        finally:
            release.set()
        waits.until(lambda: status(client, "new") == 200)


def test_a_folder_that_becomes_empty(folder: Path) -> None:
    with TestClient(server.app(folder=folder), "http://127.0.0.1") as client:
        for path in folder.iterdir():
            path.unlink()
        answer = client.post("/tokenize", json={"content": "Hi"})
        assert answer.status_code == 400 and "no model is served" in answer.text
        assert listed(client) == []


def test_a_second_model_makes_the_name_necessary(folder: Path) -> None:
    """... except with the alias ``*``."""
    (folder / "a.GGUF").unlink()
    with (
        TestClient(server.app(folder=folder), "http://127.0.0.1") as plain,
        TestClient(server.app({"*": BPE}, folder=folder), "http://127.0.0.1") as any_name,
    ):
        assert status(plain, None) == status(any_name, None) == 200
        shutil.copy(SPM, folder / "new.gguf")
        assert listed(plain) == ["b.gguf", "new.gguf"] == listed(any_name)[1:]
        assert (status(plain, None), status(any_name, None)) == (400, 200)


def test_scans_are_rare(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "SCAN_SECONDS", 1e9)
    with TestClient(server.app(folder=folder), "http://127.0.0.1") as client:
        shutil.copy(SPM, folder / "new.gguf")
        assert status(client, "new") == 404
        registry_of(client).folder.scanned = -1e18
        assert status(client, "new") == 200


def test_errors_of_folders(folder: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for path, message in [
        (empty, "has no .gguf file"),
        (tmp_path / "none", "none: "),
        (folder / "notes.txt", "notes.txt: "),
    ]:
        with pytest.raises(ggtok.GGTokError, match=message):
            server.app({"x": BPE}, folder=path)
