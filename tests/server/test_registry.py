"""The registry: names of models, loading, dropping and reloading."""

from __future__ import annotations

import os
import shutil
import socket
import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import registry as registry_module
from ggtok.server.refusals import NotReady, Refusal, UnknownModel
from ggtok.server.registry import Registry, Served
from tests.support.vocabularies import fixture

BPE, SPM = fixture("bpe-llama3"), fixture("spm")


def served(registry: Registry, name: object = None) -> Served:
    """Returns a model, after loading it as the server does."""
    try:
        return registry.get(name)
    except NotReady:
        return registry.get(name, registry.ready(registry.model_named(name)))


def test_a_single_model_is_the_default() -> None:
    registry = Registry(BPE)
    assert served(registry).tok == ggtok.load(BPE)
    assert served(registry, "bpe-llama3.gguf").tok is served(registry).tok


@pytest.mark.parametrize("name", ["a", str(BPE), "bpe-llama3.gguf", "bpe-llama3"])
def test_models_have_several_names(name: str) -> None:
    registry = Registry({"a": str(BPE), "b": str(SPM)})
    assert served(registry, name).name == "a"


def test_a_name_outside_the_list_is_refused() -> None:
    registry = Registry({"a": BPE, "b": SPM})
    with pytest.raises(UnknownModel, match="unknown model '/etc/passwd'; known: a, b") as e:
        served(registry, "/etc/passwd")
    assert e.value.status == 404
    with pytest.raises(UnknownModel, match="must name one: a, b") as e:
        served(registry)
    assert e.value.status == 400
    with pytest.raises(Refusal, match="model must be a string, not 7"):
        served(registry, 7)


def test_an_alias_for_every_name() -> None:
    registry = Registry({"*": BPE, "b": SPM})
    assert served(registry, "claude").tok.model == "gpt2"
    assert served(registry, "b").tok.model == "llama"


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_the_alias_for_every_name_is_never_shown(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF")
    for models, names in [
        ({"*": BPE}, ["bpe-llama3.gguf"]),
        ({"*": ggtok.load(BPE.read_bytes())}, ["model"]),
        ({"*": ggtok.load(BPE), "b": SPM}, ["bpe-llama3.gguf", "b"]),
        ({"*": SPM, "b": BPE, "spm.gguf": BPE}, ["b", "spm.gguf"]),
        ({"*": broken}, ["broken.gguf"]),
    ]:
        client = TestClient(server.app(models), "http://127.0.0.1")
        answer = client.get("/v1/models").json()
        assert [row["id"] for row in answer["data"]] == names
        assert [row["aliases"] for row in answer["data"]] == [[name] for name in names]
        assert [row["name"] for row in answer["models"]] == names
        unnamed = client.post("/api/tokenize", json={"content": "Hi"}).json()
        if broken in models.values():
            assert unnamed["error"].startswith("broken.gguf: ")
        else:
            shown = "spm.gguf" if models["*"] == SPM else names[0]
            assert unnamed["model"] == client.get("/props").json()["model_alias"] == shown
        page = client.get("/ggtok").text
        assert "vocabulary?model=%2A" not in page
        assert ("vocabulary?model=spm.gguf" in page) == ("spm.gguf" in names)


def test_ambiguous_file_names_are_no_names(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    other = shutil.copy(SPM, tmp_path / "x" / BPE.name)
    registry = Registry({"a": BPE, "b": other})
    with pytest.raises(UnknownModel):
        served(registry, BPE.name)
    assert served(registry, str(other)).name == "b"


def test_what_models_may_be() -> None:
    tok = ggtok.load(BPE)
    assert served(Registry({"a": tok}), "a").tok is tok
    assert Registry([BPE, str(SPM)]).names == ["bpe-llama3.gguf", "spm.gguf"]
    for wrong, message in [
        ([BPE, BPE], "two models have the name"),
        ([7], "not int"),
        (7, "not int"),
        (BPE.parent, "is a folder"),
    ]:
        with pytest.raises(ggtok.GGTokError, match=message):
            Registry(wrong)
    with pytest.raises(ggtok.InvalidValueError, match="max_loaded"):
        Registry(BPE, 0)


def test_the_event_loop_never_loads() -> None:
    registry = Registry(BPE)
    with pytest.raises(NotReady):
        registry.get()
    assert served(registry).tok is registry.get().tok


def test_few_models_stay_loaded() -> None:
    registry = Registry({"a": BPE, "b": SPM, "c": fixture("wpm")}, max_loaded=2)
    for name in "abac":
        served(registry, name)
        registry.model_named(name).checked = -1e9
    assert [model.tok is not None for model in registry.models] == [True, False, True]
    assert served(registry, "b").tok.model == "llama"


@pytest.fixture
def changing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Creates a model file that is checked for changes at each request."""
    monkeypatch.setattr(registry_module, "CHECK_SECONDS", 0.0)
    return Path(shutil.copy(BPE, tmp_path / "model.gguf"))


def _replace(path: Path, source: Path | bytes) -> None:
    new = path.with_name("new")
    new.write_bytes(source if isinstance(source, bytes) else source.read_bytes())
    os.replace(new, path)


def test_a_changed_file_is_loaded_again(changing: Path) -> None:
    registry = Registry(changing)
    first = served(registry).tok
    assert served(registry).tok is first
    _replace(changing, SPM)
    assert served(registry).tok.model == "llama"
    assert first.encode("Hi")  # its users can still use it


def test_a_model_outlives_its_file(changing: Path) -> None:
    registry = Registry(changing)
    first = served(registry).tok
    _replace(changing, b"not a model")
    assert served(registry).tok is first
    changing.unlink()
    assert served(registry).tok is first
    _replace(changing, SPM)
    assert served(registry).tok.model == "llama"


@pytest.mark.skipif(os.name == "nt", reason="FIFOs")
@pytest.mark.parametrize("kind", ["loop", "fifo", "folder", "device", "socket", "empty"])
def test_a_file_that_becomes_something_else(
    kind: str, changing: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If something else replaces the file, the model stays, reading the file fails at once, and a
    valid new file is loaded."""
    with TestClient(server.app({"m": changing}), "http://127.0.0.1") as client:
        old = client.post("/tokenize", json={"content": "Hi"}).json()
        changing.unlink()
        with socket.socket(getattr(socket, "AF_UNIX", 0)) as bound:
            if kind == "loop":
                changing.symlink_to(changing)
            elif kind == "fifo":
                os.mkfifo(changing)
            elif kind == "folder":
                changing.mkdir()
            elif kind == "device":
                changing.symlink_to("/dev/zero")
            elif kind == "socket":
                monkeypatch.chdir(changing.parent)  # the path of a socket must be short
                bound.bind(changing.name)
            else:
                changing.touch()
        assert client.post("/tokenize", json={"content": "Hi"}).json() == old
        for answer in client.post("/v1/ggtok/doctor", json={}), client.get("/v1/ggtok/vocabulary"):
            assert answer.status_code == 503
            assert answer.json()["error"]["message"].startswith("m: ")
        if kind == "folder":
            changing.rmdir()
        else:
            changing.unlink()
        shutil.copy(SPM, changing)
        new = client.post("/tokenize", json={"content": "Hi"}).json()
        assert new["tokens"] == ggtok.load(SPM).encode("Hi", add_special=False)


def test_a_model_that_cannot_be_loaded(tmp_path: Path) -> None:
    """After a failure, loading is retried only after a while, not for each request."""
    registry = Registry(tmp_path / "a.gguf")
    for _ in range(2):
        with pytest.raises(Refusal, match="No such file") as e:
            served(registry)
        assert e.value.status == 503
    assert (registry.loads, registry.failures) == (0, 1)
    with pytest.raises(NotReady):
        registry.get()
    shutil.copy(BPE, tmp_path / "a.gguf")
    registry.model_named().checked = -1e9
    assert served(registry).tok.model == "gpt2"
    assert (registry.loads, registry.failures) == (1, 1)


def test_what_is_logged(changing: Path, caplog: pytest.LogCaptureFixture) -> None:
    registry = Registry({"a": changing, "b": SPM}, max_loaded=1)
    with caplog.at_level("INFO", "ggtok.server"):
        served(registry, "a")
        served(registry, "a")
        _replace(changing, SPM)
        served(registry, "a")
        _replace(changing, b"not a model")
        served(registry, "a")
        served(registry, "b")
        with pytest.raises(Refusal, match=r"a: .*not a GGUF file"):
            served(registry, "a")
    fields = [record.fields for record in caplog.records]  # type: ignore[attr-defined]
    found = [
        (r.levelname, r.message, f["model"]) for r, f in zip(caplog.records, fields, strict=True)
    ]
    assert found == [
        ("INFO", "model loaded", "a"),
        ("INFO", "model reloaded", "a"),
        ("WARNING", "model not reloaded", "a"),
        ("INFO", "model loaded", "b"),
        ("INFO", "model unloaded", "a"),
        ("WARNING", "model not loaded", "a"),
    ]
    assert fields[0]["source"] == str(changing) and fields[0]["tokens"] > 0
    assert "GGUF" in fields[2]["error"]
    assert (registry.loads, registry.failures, registry.unloads) == (3, 2, 1)


def test_many_threads(changing: Path) -> None:
    registry = Registry({"a": changing, "b": BPE, "c": fixture("wpm")}, max_loaded=1)
    wrong: list[object] = []

    def ask(n: int) -> None:
        for i in range(60):
            name = "abc"[(n + i) % 3]
            found = served(registry, name)
            if found.name != name or (name == "b") != (found.tok.model == "gpt2"):
                wrong.append((name, found))

    _replace(changing, SPM)
    threads = [threading.Thread(target=ask, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_model_that_is_dropped_while_it_loads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates that another thread drops the model before it is logged."""
    registry = Registry(BPE)
    count, dropped = registry._count, list[bool]()

    def drop_first(failed: bool) -> None:
        count(failed)
        if not dropped:
            dropped.append(failed)
            registry.model_named().tok = None

    monkeypatch.setattr(registry, "_count", drop_first)
    assert served(registry).tok.model == "gpt2"
    assert dropped == [False]


def test_a_model_that_is_dropped_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates that another thread drops the model between loading and use."""
    registry = Registry(BPE)
    keep, dropped = registry._keep, list[str]()

    def drop_first(model: registry_module.AllowedModel) -> None:
        keep(model)
        if not dropped:
            dropped.append(model.name)
            model.tok = None

    monkeypatch.setattr(registry, "_keep", drop_first)
    assert served(registry).tok == ggtok.load(BPE)
