"""Nearly correct names of models: they are interpreted, or answered with a suggestion."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

import ggtok
from ggtok.sources import connect, download_cache, hub, listing, ollama_store, timeouts
from tests.sources.stores import LIBRARY, Ollama, hub_cache, write
from tests.support.servers import File, Hub, Server
from tests.support.vocabularies import fixture
from tests.support.waits import LIMIT, until

pytest.importorskip("huggingface_hub")

LLAMA = fixture("bpe-llama3").read_bytes()
QWEN = fixture("bpe-qwen2").read_bytes()


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Sets a home folder without models, and another working folder."""
    for variable in list(os.environ):
        if variable.startswith(("HF_", "HUGGING", "LLAMA_", "GGTOK_CACHE", "XDG_", "OLLAMA_")):
            monkeypatch.delenv(variable)
        if variable.lower().endswith("_proxy"):
            monkeypatch.delenv(variable, raising=False)
    folder = tmp_path / "home"
    folder.mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(
        ollama_store, "stores", lambda: [str(folder / ".ollama" / "models")]
    )  # without the system service's store, which may contain models
    return folder


@pytest.fixture
def no_network(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Makes name resolution fail, and returns the list of host names that were looked up."""
    asked: list[str] = []

    def resolve(host: str, port: int) -> None:
        asked.append(host)
        raise OSError(-3, "Temporary failure in name resolution")

    monkeypatch.setattr(connect, "resolve", resolve)
    return asked


@pytest.fixture
def models(home: Path) -> None:
    store = Ollama(home / ".ollama" / "models")
    store.model(f"{LIBRARY}/llama3.2/3b", LLAMA)
    store.model(f"{LIBRARY}/qwen/latest", QWEN)
    hub_cache(home / ".cache" / "huggingface" / "hub", "Some/Model-GGUF", {"x-Q8_0.gguf": QWEN})
    write(home / ".lmstudio" / "models" / "publisher" / "studio" / "a-Q4_K_M.gguf", LLAMA)


# ---- addresses ----


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("hf.co/user/repo", "hf://user/repo"),
        ("hf.co/user/repo:Q8_0", "user/repo:Q8_0"),
        ("huggingface.co/user/repo", "hf://user/repo"),
        ("https://huggingface.co/user/repo", "hf://user/repo"),
        ("https://huggingface.co/user/repo/", "hf://user/repo"),
        ("https://HuggingFace.co/user/repo?library=x#top", "hf://user/repo"),
        ("https://huggingface.co/user/repo/tree/main", "hf://user/repo"),
        ("https://huggingface.co/user/repo/tree/v1", "hf://user/repo@v1"),
        ("https://huggingface.co/user/repo/tree/refs%2Fpr%2F1", "hf://user/repo@refs%2Fpr%2F1"),
        ("https://huggingface.co/user/repo/blob/main/a/x%20y.gguf", "hf://user/repo/a/x y.gguf"),
        ("https://hf.co/user/repo/blob/v1/x.gguf?download=true", "hf://user/repo@v1/x.gguf"),
        ("https://ollama.com/library/llama3.2", "ollama:llama3.2"),
        ("https://ollama.com/library/llama3.2:3b", "ollama:llama3.2:3b"),
        ("ollama.com/user/it:x", "ollama:user/it:x"),
        ("registry.ollama.ai/library/llama3.2:3b", "ollama:llama3.2:3b"),
        ("https://hub.test/user/repo", "hf://user/repo"),
        # Names that stay unchanged.
        ("https://huggingface.co/user/repo/resolve/main/x.gguf", None),
        ("https://huggingface.co/datasets/user/data", None),
        ("https://huggingface.co/user", None),
        ("https://huggingface.co.example.org/user/repo", None),
        ("https://example.org/user/repo", None),
        ("user/repo", None),
        ("hf.co", None),
        ("ollama.com", None),
        ("model.gguf", None),
    ],
)
def test_addresses_of_pages(monkeypatch: pytest.MonkeyPatch, name: str, meant: str | None) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://hub.test/")
    assert listing.read_as(name) == meant
    if meant and meant.startswith("hf:"):
        assert hub.parse_repo(meant)


@pytest.mark.parametrize(
    ("name", "pre"),
    [
        ("hf.co/Some/Model-GGUF", "qwen2"),
        ("hf.co/Some/Model-GGUF:Q8_0", "qwen2"),
        ("https://huggingface.co/Some/Model-GGUF", "qwen2"),
        ("https://huggingface.co/Some/Model-GGUF/blob/main/x-Q8_0.gguf", "qwen2"),
        ("https://ollama.com/library/llama3.2:3b", "llama-bpe"),
        # Names in another case.
        ("some/model-gguf", "qwen2"),
        ("hf://SOME/Model-gguf:q8_0", "qwen2"),
        ("ollama:LLAMA3.2:3B", "llama-bpe"),
        ("lmstudio:Publisher/Studio", "llama-bpe"),
    ],
)
def test_names_that_are_found(models: None, name: str, pre: str) -> None:
    tok = ggtok.load(name)
    assert tok.pre == pre
    assert tok.source is not None
    assert tok.source.name == name


# ---- suggestions ----


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("llama3.2:3b", "no such file; did you mean ollama:llama3.2:3b?"),
        ("llama3.2", "no such file; did you mean ollama:llama3.2:3b?"),
        ("Llama3.2:3B", "no such file; did you mean ollama:llama3.2:3b?"),
        ("qwen", "no such file; did you mean ollama:qwen:latest?"),
        ("lama3.2:3b", "no such file; did you mean ollama:llama3.2:3b?"),
        ("phi4:14b", "no such file; did you mean ollama:phi4:14b?"),  # as Ollama spells it
        ("ollama:llama3.2", "no such model in .*did you mean ollama:llama3.2:3b?"),
        ("ollama:llama3.2:1b", "no such model in .*did you mean ollama:llama3.2:3b?"),
        ("ollama:nothing-like-it", "no such model in .*'ollama pull' downloads it"),
        ("Some/Modell-GGUF", "can't be reached: .*did you mean Some/Model-GGUF?"),
        (
            "lmstudio:publisher/studios",
            r"no such model in .*did you mean lmstudio:publisher/studio",
        ),
        ("x-Q4_0.gguf", "no such file; did you mean X-Q4_0.gguf or x-Q4_1.gguf?"),
        ("folder/modle.gguf", "no such file; did you mean folder/model.gguf?"),
        ("something", "No such file or directory"),
    ],
)
def test_names_with_suggestions(models: None, no_network: list[str], name: str, says: str) -> None:
    for file in ("X-Q4_0.gguf", "x-Q4_1.gguf", "folder/model.gguf", "notes.txt"):
        write(Path(file), LLAMA)
    says = says.replace("?", r"\?").replace("/", "[/\\\\]") if "?" in says else says
    error = ggtok.UnreachableError if "reached" in says else FileNotFoundError
    with pytest.raises(error, match=says) as caught:
        ggtok.load(name)
    assert isinstance(caught.value, ggtok.FileError)
    assert ("did you mean" in str(caught.value)) == ("did you mean" in says)


def test_a_suggestion_is_shown_escaped(home: Path) -> None:
    if sys.platform == "win32":
        pytest.skip("no such file names")
    write(Path("a\x1b[2Jmodel.gguf"), LLAMA)
    with pytest.raises(FileNotFoundError, match=r"did you mean a\\x1b\[2Jmodel.gguf") as caught:
        ggtok.load("a[2Jmodel.gguf")
    assert str(caught.value).isprintable()


# ---- waiting ----


def test_without_network_a_hub_name_fails_at_once(no_network: list[str]) -> None:
    """On its own, huggingface_hub would retry for 23 seconds."""
    with pytest.raises(ggtok.UnreachableError, match=r"can't be reached: .*name resolution"):
        ggtok.load("user/repo")
    assert no_network == ["huggingface.co"]


def test_a_fetched_commit_needs_no_network(no_network: list[str]) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    url = f"https://huggingface.co/user/repo/resolve/{commit}/x.gguf"
    download_cache.store(download_cache.CacheEntry(url, "it", LLAMA))
    assert ggtok.load(f"hf://user/repo@{commit}/x.gguf").pre == "llama-bpe"
    assert no_network == []


def test_a_hub_that_does_not_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    """The user is told after a while, and the attempt is given up at the timeout."""
    import huggingface_hub.constants as its_constants

    heard: list[str] = []
    go_on = threading.Event()
    with Server() as store, Hub(store) as served:
        served.add("user/repo", {"x.gguf": LLAMA})
        served.files["/user/repo/resolve/main/x.gguf"].before = lambda _: go_on.wait(LIMIT) and None
        template = its_constants.HUGGINGFACE_CO_URL_TEMPLATE.removeprefix(its_constants.ENDPOINT)
        monkeypatch.setattr(its_constants, "HUGGINGFACE_CO_URL_TEMPLATE", served.origin + template)
        monkeypatch.setattr(its_constants, "ENDPOINT", served.origin)
        monkeypatch.setattr(timeouts, "SILENT", 0.2)
        monkeypatch.setenv("GGTOK_HTTP_TIMEOUT", "1")
        with (
            ggtok.sources.telling(heard.append),
            pytest.raises(ggtok.UnreachableError, match="no answer within 1 seconds"),
        ):
            ggtok.load("hf://user/repo/x.gguf")
        go_on.set()  # until now, the Hub hasn't answered
    assert heard == ["waiting for the Hugging Face Hub (hf://user/repo/x.gguf) ..."]


def test_a_slow_server_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    told = threading.Event()

    def listener(text: str) -> None:
        heard.append(text)
        told.set()

    monkeypatch.setattr(timeouts, "SILENT", 0.01)
    with Server() as server:
        server.files["/x.gguf"] = File(LLAMA, before=lambda _: told.wait(LIMIT) and None)
        url = server.url("/x.gguf")
        with ggtok.sources.telling(listener):
            assert ggtok.load(url).pre == "llama-bpe"
    assert heard == [f"waiting for 127.0.0.1 ({url}) ..."]


def timers() -> set[threading.Thread]:
    return {thread for thread in threading.enumerate() if isinstance(thread, threading.Timer)}


def test_fast_answers_are_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setattr(timeouts, "SILENT", LIMIT)
    before = timers()
    with timeouts.telling(heard.append), timeouts.waiting("this"):
        (timer,) = timers() - before
    timer.join(LIMIT)
    assert heard == [] and not timer.is_alive()


def test_nothing_is_reported_without_a_listener() -> None:
    before = timers()
    with timeouts.waiting("that"):
        assert timers() == before


def test_errors_of_a_listener_are_ignored(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(timeouts, "SILENT", 0.01)
    called = threading.Event()
    before = timers()

    def listener(_: str) -> None:
        called.set()
        raise RuntimeError

    with timeouts.telling(listener), timeouts.waiting("this"):
        until(lambda: called.is_set() and timers() == before)
    assert capfd.readouterr() == ("", "")


def test_call_with_timeout() -> None:
    assert timeouts.call_with_timeout(LIMIT, lambda: 3) == 3
    with pytest.raises(ZeroDivisionError):
        timeouts.call_with_timeout(LIMIT, lambda: 1 // 0)
    go_on = threading.Event()
    with pytest.raises(timeouts.CallTimeout):
        timeouts.call_with_timeout(0.05, lambda: go_on.wait(LIMIT))
    go_on.set()


def test_through_a_proxy_the_hub_is_not_tried_first(
    monkeypatch: pytest.MonkeyPatch, no_network: list[str]
) -> None:
    """The proxy resolves names, so it doesn't matter that this machine can't resolve them."""
    import httpx2

    monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:1")
    with connect.Network() as net:
        net.reach(httpx2.URL("https://huggingface.co"), connect.Clock(1))
        monkeypatch.setenv("NO_PROXY", "huggingface.co")
        with pytest.raises(ConnectionError):
            net.reach(httpx2.URL("https://huggingface.co"), connect.Clock(1))
