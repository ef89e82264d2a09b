"""The Hugging Face Hub, and the caches of its files, as huggingface_hub and llama.cpp write them.

The Hub is a local server (tests/support/servers.py) at HF_ENDPOINT. huggingface_hub reads its
settings when it is imported, so tests of settings and messages run ggtok in a separate process.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import SimpleNamespace

import pytest

import ggtok
from ggtok.errors import InvalidValueError
from ggtok.sources import download_cache, hfcache, hub, model_files
from tests.sources.stores import COMMIT, hub_cache
from tests.support.servers import Hub, Server
from tests.support.vocabularies import fixture

pytest.importorskip("huggingface_hub")

LLAMA = fixture("bpe-llama3").read_bytes() + bytes(3_000_000)
QWEN = fixture("bpe-qwen2").read_bytes() + bytes(3_000_000)
SPM = fixture("spm").read_bytes()
FILES: dict[str, bytes | Path] = {
    "README.md": b"read me",
    "mmproj-Q4_K_M.gguf": b"not a model",
    "model.imatrix-Q4_K_M.gguf": b"not a model",
    "a/model-F16-00001-of-00002.gguf": SPM,
    "a/model-F16-00002-of-00002.gguf": b"no vocabulary",
    "model-Q2_K.gguf": SPM,
    "model-Q4_K_M.gguf": LLAMA,
    "model-Q8_0.gguf": QWEN,
}
TOKEN = "hf_" + "a" * 34


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets an empty home folder without settings."""
    for variable in list(os.environ):
        if variable.startswith(("HF_", "HUGGING", "LLAMA_", "GGTOK_CACHE", "XDG_")):
            monkeypatch.delenv(variable)
        if variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    return folder


@pytest.fixture
def hub_server() -> Iterator[Hub]:
    with Server() as store, Hub(store) as running:
        running.add("user/repo", FILES)
        yield running


@pytest.fixture
def hub_in_process(hub_server: Hub, monkeypatch: pytest.MonkeyPatch) -> Hub:
    """The Hub for this process, without waits between attempts."""
    import huggingface_hub.constants as its_constants
    import huggingface_hub.utils._http as its_http

    template = its_constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(its_constants.ENDPOINT)
    monkeypatch.setattr(its_constants, "HUGGINGFACE_CO_URL_TEMPLATE", hub_server.origin + template)
    monkeypatch.setattr(its_constants, "ENDPOINT", hub_server.origin)
    monkeypatch.setattr(its_http.time, "sleep", lambda _: None)
    return hub_server


def run(
    hub_server: Hub | None, *arguments: str, **variables: str
) -> subprocess.CompletedProcess[str]:
    endpoint = {"HF_ENDPOINT": hub_server.origin} if hub_server else {}
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "ggtok", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, **endpoint, **variables},
    )


def facts(hub_server: Hub | None, name: str, **variables: str) -> Mapping[str, object]:
    done = run(hub_server, "inspect", name, "--json", **variables)
    assert done.returncode == 0, done.stderr
    loaded: Mapping[str, object] = json.loads(done.stdout)
    return loaded


def failure(hub_server: Hub | None, name: str, **variables: str) -> str:
    done = run(hub_server, "tokenize", "-m", name, "text", **variables)
    assert (done.returncode, done.stdout) == (2, ""), done.stdout
    assert done.stderr.count("\n") == 1
    assert done.stderr.startswith("ggtok: error: ")
    return done.stderr


# ---- names ----


@pytest.mark.parametrize(
    ("name", "repo"),
    [
        ("user/repo", ("user/repo", None, None, None)),
        ("user/repo:Q8_0", ("user/repo", None, None, "Q8_0")),
        ("hf://user/repo", ("user/repo", None, None, None)),
        ("hf://user/repo:Q8_0", ("user/repo", None, None, "Q8_0")),
        ("hf://user/repo@v1:Q8_0", ("user/repo", "v1", None, "Q8_0")),
        ("hf://user/repo@refs%2Fpr%2F1/x.gguf", ("user/repo", "refs/pr/1", "x.gguf", None)),
        (
            "hf://user/repo/a/b-00002-of-00003.gguf",
            ("user/repo", None, "a/b-00001-of-00003.gguf", None),
        ),
    ],
)
def test_names(name: str, repo: tuple[str | None, ...]) -> None:
    found = hub.parse_repo(name)
    assert found is not None
    assert (found.id, found.revision, found.file, found.quant) == repo


@pytest.mark.parametrize(
    "name",
    [
        *("model", "model.gguf", "models/x.gguf", "a/b/c", "./a", "../a", "a/b:", "/a/b"),
        *("a b/c", "a//b", "~/models", "a/..", "C:\\a/b", "x.gguf/y", "a/b:c:d", "a/b\n"),
    ],
)
def test_paths_that_are_not_names(name: str) -> None:
    assert hub.parse_repo(name) is None
    with pytest.raises(FileNotFoundError):
        ggtok.load(name)
    with pytest.raises(FileNotFoundError, match="user/repo"):
        ggtok.load(Path("user/repo"))  # a Path is still a path


@pytest.mark.parametrize(
    "name",
    [
        *("hf://", "hf://user", "hf://user/", "hf://user/repo@/x.gguf", "hf://user/repo/"),
        *("hf://a b/c/x", "hf://user/repo:", "hf://user/repo/../x.gguf"),
        *("hf://user/repo@a%2F../x.gguf", "s3://a/b", "hf:user/repo"),
    ],
)
def test_malformed_names(name: str) -> None:
    with pytest.raises(InvalidValueError, match="hf://"):
        ggtok.load(name)


@pytest.mark.parametrize(
    ("paths", "quant", "chosen"),
    [
        (list(FILES), None, "model-Q4_K_M.gguf"),
        (list(FILES), "q8_0", "model-Q8_0.gguf"),
        (list(FILES), "F16", "a/model-F16-00001-of-00002.gguf"),
        (list(FILES), "Q5_0", None),
        (["a-Q8_0.gguf", "b-Q2_K.gguf"], None, "a-Q8_0.gguf"),
        (["b-Q2_K.gguf", "a-F16.gguf"], None, "b-Q2_K.gguf"),
        (["x.Q4_K_M-imat.gguf"], "Q4_K_M", "x.Q4_K_M-imat.gguf"),
        (["x-Q4_K_M_L.gguf"], "Q4_K_M", None),
        (["x-Q4_K.gguf"], "Q4_K", "x-Q4_K.gguf"),
        (["Q4_K.d/x.gguf"], "Q4_K", "Q4_K.d/x.gguf"),
        (["x-Q4_K.bin", "mmproj-x.gguf", "mtp-x.gguf", "eagle3-x.gguf"], None, None),
        (["dflash-x.gguf", "dspark-x.gguf", "y-00002-of-00002.gguf"], None, None),
        (["mmproj/x.gguf"], None, "mmproj/x.gguf"),
        ([], None, None),
    ],
)
def test_the_choice_of_a_file(paths: list[str], quant: str | None, chosen: str | None) -> None:
    assert model_files.choose(paths, quant) == chosen


# ---- the Hub ----


def test_a_repository(hub_server: Hub) -> None:
    assert facts(hub_server, "user/repo")["pre"] == "llama-bpe"
    store = hub_server.store
    assert hub_server.sent + store.sent < len(LLAMA) / 2
    assert [r.method for r in store.requests] == ["GET"]
    assert store.requests[0].headers["range"].startswith("bytes=0-")
    # The second time, ggtok only sends a validation request.
    n = len(hub_server.requests)
    assert facts(hub_server, "user/repo")["pre"] == "llama-bpe"
    assert [r.method for r in hub_server.requests[n:]] == ["GET", "HEAD"]
    assert len(store.requests) == 1


@pytest.mark.parametrize(
    ("name", "pre"),
    [
        ("user/repo:Q8_0", "qwen2"),
        ("user/repo:F16", None),
        ("hf://user/repo/model-Q8_0.gguf", "qwen2"),
        ("hf://user/repo/a/model-F16-00002-of-00002.gguf", None),
        ("hf://user/repo@v1/model.gguf", "gpt-2"),
        ("hf://user/repo@v1", "gpt-2"),
    ],
)
def test_quantizations_files_and_revisions(hub_in_process: Hub, name: str, pre: str | None) -> None:
    hub_in_process.add("user/repo", {"model.gguf": fixture("bpe-gpt2").read_bytes()}, revision="v1")
    assert ggtok.load(name).pre == pre


def test_a_repository_that_changes(hub_server: Hub) -> None:
    assert facts(hub_server, "user/repo")["pre"] == "llama-bpe"
    blob = hub_server.store.url("/" + "f" * 64)
    stored = hub_server.store.files
    stored["/" + "f" * 64] = stored.popitem()[1]  # contents of model-Q8_0
    answer = hub_server.files["/user/repo/resolve/main/model-Q4_K_M.gguf"]
    answer.redirect = blob
    answer.lie = lambda status, h: h.update({"X-Linked-Etag": '"' + "f" * 64 + '"'}) or status
    assert facts(hub_server, "user/repo")["pre"] == "qwen2"
    assert len(download_cache.entries()) == 1


def test_doctor_downloads_only_the_header(hub_server: Hub) -> None:
    """`ggtok doctor` compares a tensor's number of rows with the number of tokens. It downloads
    only the description of the tensor, which follows the vocabulary, and not the tensor's data."""
    data = bytearray(fixture("bpe-overlap").read_bytes())
    rows, name = ggtok.load(fixture("bpe-overlap")).n_tokens + 1, b"token_embd.weight"
    struct.pack_into("<Q", data, 8, 1)
    data += struct.pack("<Q", len(name)) + name + struct.pack("<IQQIQ", 2, 8, rows, 0, 0)
    hub_server.add("user/padded", {"model-Q8_0.gguf": bytes(data) + bytes(8 << 20)})
    for model in "hf://user/padded/model-Q8_0.gguf", "hf://user/padded:Q8_0":
        done = run(hub_server, "doctor", model, "--json")
        [found] = json.loads(done.stdout)
        assert done.returncode == 1, done.stderr
        assert (found["code"], found["detail"]) == ("GGT601", f"{rows} rows, {rows - 1} tokens")
    assert 0 < hub_server.store.sent < 3 << 20


def test_a_commit_never_changes(hub_server: Hub) -> None:
    hub_server.add("user/repo", {"x.gguf": LLAMA}, revision=Hub.COMMIT)
    name = f"hf://user/repo@{Hub.COMMIT}/x.gguf"
    assert facts(hub_server, name)["pre"] == "llama-bpe"
    n = len(hub_server.requests)
    assert facts(hub_server, name)["pre"] == "llama-bpe"
    assert len(hub_server.requests) == n


def test_the_token_stays_with_the_hub(hub_server: Hub) -> None:
    facts(hub_server, "user/repo", HF_TOKEN=TOKEN)
    assert all(r.headers["authorization"] == f"Bearer {TOKEN}" for r in hub_server.requests)
    assert hub_server.store.requests
    assert not any("authorization" in r.headers for r in hub_server.store.requests)


def test_offline(hub_server: Hub) -> None:
    says = failure(hub_server, "user/repo", HF_HUB_OFFLINE="1")
    assert "HF_HUB_OFFLINE" in says
    assert not hub_server.requests
    facts(hub_server, "user/repo:Q8_0")
    n = len(hub_server.requests)
    for name in ("user/repo", "user/repo:Q8_0", "hf://user/repo/model-Q8_0.gguf"):
        assert facts(hub_server, name, HF_HUB_OFFLINE="1")["pre"] == "qwen2"
    assert "not in the caches" in failure(hub_server, "user/repo:Q4_K_M", HF_HUB_OFFLINE="1")
    assert len(hub_server.requests) == n


@pytest.mark.parametrize(
    ("status", "code", "says"),
    [
        (401, "RepoNotFound", "nor such a repository"),
        (404, "RepoNotFound", "nor such a repository"),
        (404, "RevisionNotFound", "nor such a repository or revision"),
        (404, "EntryNotFound", "no such file in the repository"),
        (403, "GatedRepo", "must be granted"),
        (418, "", "answers with an error"),
    ],
)
def test_errors_of_the_hub(hub_in_process: Hub, status: int, code: str, says: str) -> None:
    hub_in_process.fail("user/none", status, code)
    for name in ("hf://user/none/model.gguf", "user/none")[: 1 if code == "EntryNotFound" else 2]:
        with pytest.raises(ggtok.GGTokError, match=says):
            ggtok.load(name)


def test_a_file_that_is_not_a_model(hub_server: Hub) -> None:
    says = failure(hub_server, "hf://user/repo/README.md")
    assert "hf://user/repo/README.md: not a GGUF file" in says


def test_no_such_quantization(hub_server: Hub) -> None:
    says = failure(hub_server, "user/repo:Q5_0")
    assert "no GGUF model of quantization 'Q5_0'" in says
    assert "model-Q8_0.gguf" in says
    assert "mmproj" not in says


def test_a_hub_that_fails(hub_in_process: Hub, capfd: pytest.CaptureFixture[str]) -> None:
    hub_in_process.fail("user/none", 500, "")
    for name in ("user/none", "hf://user/none/model.gguf"):
        with pytest.raises(ggtok.UnreachableError, match=f"{name}: the Hub .*500"):
            ggtok.load(name)
    assert capfd.readouterr() == ("", "")


def test_a_hub_that_can_not_be_reached(hub_in_process: Hub) -> None:
    assert ggtok.load("user/repo").pre == "llama-bpe"
    hub_in_process.__exit__()
    with pytest.raises(ggtok.UnreachableError, match=r"can't be reached: .*refused"):
        ggtok.load("user/other")
    assert ggtok.load("user/repo").pre == "llama-bpe"  # the cached file
    with pytest.raises(ggtok.UnreachableError):
        ggtok.load("user/repo:Q8_0")


def test_names_unknown_to_the_hub(hub_in_process: Hub) -> None:
    with pytest.raises(InvalidValueError, match="user/a--b: "):
        ggtok.load("user/a--b")


def test_a_failing_store(hub_in_process: Hub) -> None:
    for file in hub_in_process.store.files.values():
        file.breaks = [10_000, 0, 500]
    assert ggtok.load("user/repo").pre == "llama-bpe"


def test_without_the_extra(tmp_path: Path) -> None:
    (tmp_path / "huggingface_hub").mkdir()
    (tmp_path / "huggingface_hub" / "__init__.py").write_text("raise ImportError")
    (tmp_path / "httpx2.py").write_text("raise ImportError")
    assert "pip install 'ggtok[hub]'" in failure(None, "user/repo", PYTHONPATH=str(tmp_path))
    says = failure(None, "https://127.0.0.1/x.gguf", PYTHONPATH=str(tmp_path))
    assert "pip install 'ggtok[http]'" in says


# ---- caches ----


CACHED = {
    "model-Q8_0.gguf": QWEN,
    "model-Q4_K_M.gguf": LLAMA,
    "sub/x-00001-of-00002.gguf": SPM,
    "sub/x-00002-of-00002.gguf": b"GGUF",
    "mmproj.gguf": b"no model",
}


@pytest.mark.parametrize(
    ("variables", "where"),
    [
        ({}, ".cache/huggingface/hub"),
        ({"XDG_CACHE_HOME": "xdg"}, "xdg/huggingface/hub"),
        ({"HF_HOME": "hf"}, "hf/hub"),
        ({"HF_HOME": "hf", "HF_HUB_CACHE": "hub"}, "hub"),
        ({"HUGGINGFACE_HUB_CACHE": "hub"}, "hub"),
        ({"LLAMA_CACHE": "llama"}, "llama"),
        ({"LLAMA_CACHE": "llama"}, ".cache/huggingface/hub"),
    ],
)
def test_the_hubs_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], where: str
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(name, str(home / value))
    root = hub_cache(home / where, "user/repo", CACHED)
    for name, pre in [
        ("user/repo", "llama-bpe"),
        ("user/repo:q8_0", "qwen2"),
        ("hf://user/repo/model-Q8_0.gguf", "qwen2"),
        ("hf://user/repo@main/sub/x-00002-of-00002.gguf", None),
        (f"hf://user/repo@{COMMIT}/model-Q8_0.gguf", "qwen2"),
    ]:
        tok = ggtok.load(name)
        assert tok.pre == pre
        assert tok.source is not None
        assert (tok.source.kind, tok.source.url) == ("hf", None)
        assert str(tok.source.path).startswith(str(root))


def test_files_missing_in_a_cache_come_from_the_hub(home: Path, hub_server: Hub) -> None:
    root = hub_cache(home / ".cache/huggingface/hub", "user/repo", {"model-Q2_K.gguf": SPM})
    assert facts(hub_server, "user/repo:Q8_0")["pre"] == "qwen2"
    assert facts(hub_server, "user/repo")["pre"] is None  # a local model takes precedence
    shutil.rmtree(root / "blobs")  # the links are broken now
    assert facts(hub_server, "user/repo")["pre"] == "llama-bpe"
    (root / "refs" / "main").write_text("../../../etc")
    assert facts(hub_server, "user/repo")["pre"] == "llama-bpe"


def test_a_cached_revision(home: Path) -> None:
    hub_cache(home / ".cache/huggingface/hub", "user/repo", CACHED, ref="refs/pr/1")
    assert ggtok.load("hf://user/repo@refs%2Fpr%2F1:Q8_0").pre == "qwen2"
    assert hfcache.find_cached(hfcache.Repo("it", "user/repo", "v2", quant="Q8_0")) is None


def test_huggingface_hub_finds_the_layout(home: Path) -> None:
    """huggingface_hub itself can read the caches that the tests write."""
    from huggingface_hub import try_to_load_from_cache

    folder = home / "hub"
    hub_cache(folder, "user/repo", CACHED)
    path = try_to_load_from_cache("user/repo", "model-Q8_0.gguf", cache_dir=folder)
    assert isinstance(path, str)
    assert Path(path).read_bytes() == QWEN


@pytest.mark.parametrize(
    ("platform", "variable", "where"),
    [
        ("linux", None, ".cache/llama.cpp"),
        ("linux", "LLAMA_CACHE", "other"),
        ("linux", "XDG_CACHE_HOME", "other/llama.cpp"),
        ("darwin", "XDG_CACHE_HOME", "Library/Caches/llama.cpp"),
        ("win32", "LOCALAPPDATA", "other/llama.cpp"),
        ("win32", "LLAMA_CACHE", "other"),
    ],
)
def test_llamacpps_older_cache(
    home: Path, monkeypatch: pytest.MonkeyPatch, platform: str, variable: str | None, where: str
) -> None:
    monkeypatch.setattr(hfcache, "sys", SimpleNamespace(platform=platform))
    if variable:
        monkeypatch.setenv(variable, str(home / "other"))
    folder = home / where
    folder.mkdir(parents=True)
    for name, content in CACHED.items():
        flat = folder / f"user_repo_{name.replace('/', '_')}"
        flat.write_bytes(content)
        flat.with_name(flat.name + ".etag").write_text('"0123"')
    (folder / "manifest=user=repo=latest.json").write_text("{}")
    for asked, pre in [
        ("user/repo", "llama-bpe"),
        ("user/repo:Q8_0", "qwen2"),
        ("hf://user/repo/model-Q8_0.gguf", "qwen2"),
        ("hf://user/repo/sub/x-00002-of-00002.gguf", None),
    ]:
        tok = ggtok.load(asked)
        assert tok.pre == pre
        assert tok.source is not None
        assert tok.source.kind == "llama.cpp"
    # A file whose URL is stored isn't mistaken for a file from another repository.
    for name in CACHED:
        url = f"https://huggingface.co/user/repo_model/resolve/main/{name}"
        (folder / f"user_repo_{name.replace('/', '_')}.json").write_text(json.dumps({"url": url}))
    assert hfcache.find_cached(hfcache.Repo("it", "user/repo")) is None
