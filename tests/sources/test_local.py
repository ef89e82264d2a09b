"""Models on this machine: files, Ollama's store, LM Studio's folders, and their listing."""

from __future__ import annotations

import hashlib
import io
import json
import mmap
import os
import pickle
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import ggtok
from ggtok.errors import FileError, GGUFError, InvalidTypeError, InvalidValueError, VocabError
from ggtok.sources import listing, lmstudio, model_files, ollama_store
from tests.sources.stores import LIBRARY, Ollama, write
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

LLAMA, QWEN, SPM = (fixture(name).read_bytes() for name in ("bpe-llama3", "bpe-qwen2", "spm"))


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for variable in list(os.environ):
        if variable.startswith(("HF_", "HUGGING", "LLAMA_", "OLLAMA_", "GGTOK_CACHE", "XDG_")):
            monkeypatch.delenv(variable)
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    return folder


# ---- plain files ----


def test_a_path_imports_nothing_more() -> None:
    """Loading from a path or from bytes imports no more modules than `import ggtok`."""
    code = """
import sys
import ggtok
before = set(sys.modules)
tok = ggtok.load(sys.argv[1])
assert tok.encode("text")
ggtok.load(open(sys.argv[1], "rb").read())
more = {m for m in set(sys.modules) - before if not m.startswith(("encodings", "_io"))}
assert not more, more
assert not [m for m in sys.modules if m.startswith(("ggtok.sources", "httpx", "huggingface"))]
assert tok.source.path == sys.argv[1]
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", code, str(fixture("spm"))], check=True)


def test_sources_of_plain_files() -> None:
    tok = ggtok.load(fixture("spm"))
    assert tok.source is not None
    assert (tok.source.kind, tok.source.path) == ("file", str(fixture("spm")))
    assert ggtok.load(SPM).source is None


@pytest.mark.parametrize(
    ("path", "first"),
    [
        ("a-00002-of-00005.gguf", "a-00001-of-00005.gguf"),
        ("a-00001-of-00005.gguf", "a-00001-of-00005.gguf"),
        ("b/a.Q8_0-00005-of-00005.gguf", "b/a.Q8_0-00001-of-00005.gguf"),
        ("a-00002-of-00003-00002-of-00005.gguf", "a-00002-of-00003-00001-of-00005.gguf"),
        ("a-2-of-5.gguf", "a-2-of-5.gguf"),
        ("a-00002-of-00005.bin", "a-00002-of-00005.bin"),
        ("-00002-of-00005.gguf", "-00002-of-00005.gguf"),
    ],
)
def test_names_of_split_models(path: str, first: str) -> None:
    assert model_files.first(path) == first


def test_a_split_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """gguf-split puts the key/value pairs into the first file, and split.* and the tensors into the
    other files."""
    gguf = pytest.importorskip("gguf")
    first = write(tmp_path / "model-00001-of-00003.gguf", SPM)
    second = tmp_path / "model-00002-of-00003.gguf"
    writer = gguf.GGUFWriter(second, "llama")
    writer.add_uint16("split.no", 1)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.close()
    for path in (second, tmp_path / "model-00003-of-00003.gguf"):
        tok = ggtok.load(path)
        assert tok.n_tokens == ggtok.load(SPM).n_tokens
        assert tok.source is not None
        assert pickle.loads(pickle.dumps(tok)).n_tokens == tok.n_tokens
    monkeypatch.chdir(tmp_path)
    assert ggtok.load(second.name).n_tokens == tok.n_tokens
    first.unlink()
    with pytest.raises(FileNotFoundError, match=r"model-00001-of-00003\.gguf is missing"):
        ggtok.load(second)
    with pytest.raises(FileNotFoundError, match="x-00001-of-00002"):
        ggtok.load("x-00002-of-00002.gguf")


class Pipe(io.RawIOBase):
    """A stream that returns a few bytes at a time and isn't seekable."""

    def __init__(self, data: bytes) -> None:
        self.left = data
        self.taken = 0

    def readable(self) -> bool:
        return True

    def read(self, n: int | None = -1) -> bytes:
        n = min(1000, n or 0)
        block, self.left = self.left[:n], self.left[n:]
        self.taken += len(block)
        return block


def test_open_files(tmp_path: Path) -> None:
    want = ggtok.load(LLAMA).encode("Hello")
    path = write(tmp_path / "it", b"xyz" + LLAMA + bytes(5_000_000))
    with path.open("rb") as file:
        file.seek(3)
        assert ggtok.load(file).encode("Hello") == want
    assert ggtok.load(io.BytesIO(LLAMA)).encode("Hello") == want
    pipe = Pipe(LLAMA + bytes(5_000_000))
    assert ggtok.load(pipe).encode("Hello") == want  # type: ignore[arg-type]
    assert pipe.taken < len(LLAMA) + 2_000_000
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert ggtok.load(memoryview(mapped)[3:].tobytes()).encode("Hello") == want
        with pytest.raises(GGUFError, match="not a GGUF file"):
            ggtok.load(mapped)  # read as a buffer from its start, although an mmap is also a file


def test_invalid_open_files(tmp_path: Path) -> None:
    path = write(tmp_path / "it", LLAMA[: len(LLAMA) // 2])
    with path.open("rb") as file, pytest.raises(GGUFError, match=str(path)):
        ggtok.load(file)
    with pytest.raises(GGUFError, match="not a GGUF file"):
        ggtok.load(io.BytesIO(b""))
    with path.open(encoding="latin-1") as text, pytest.raises(InvalidTypeError, match="'rb'"):
        ggtok.load(text)  # type: ignore[arg-type]
    file = path.open("rb")
    file.close()
    with pytest.raises((FileError, ValueError)):
        ggtok.load(file)


@pytest.mark.parametrize(
    ("answer", "says"),
    [(OSError(5, "Input/output error"), "Input/output error"), (None, "no bytes to read yet")],
)
def test_open_files_that_end_early(answer: OSError | None, says: str) -> None:
    class Stopping(Pipe):
        name = "the pipe"

        def read(self, n: int | None = -1) -> bytes:
            if self.left:
                return super().read(n)
            if answer is not None:
                raise answer
            return None  # type: ignore[return-value]  # as files that don't block do

    with pytest.raises(FileError, match=f"the pipe: .*{says}"):
        ggtok.load(Stopping(LLAMA[:5000]))  # type: ignore[arg-type]


# ---- Ollama ----


@pytest.fixture
def store(home: Path) -> Ollama:
    return Ollama(home / ".ollama" / "models")


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("ollama:llama3.2:3b", f"{LIBRARY}/llama3.2/3b"),
        ("ollama:llama3.2", f"{LIBRARY}/llama3.2/latest"),
        ("ollama:user/it:x", "registry.ollama.ai/user/it/x"),
        ("ollama:hf.co/user/repo-GGUF:Q4_K_M", "hf.co/user/repo-GGUF/Q4_K_M"),
        ("ollama:localhost:5000/user/it:x", "localhost:5000/user/it/x"),
        ("ollama:registry.ollama.ai/library/x:1", f"{LIBRARY}/x/1"),
        ("ollama:X:1", f"{LIBRARY}/x/1"),
        ("ollama:ollama.com/library/x:1", f"{LIBRARY}/x/1"),
    ],
)
def test_ollamas_names(store: Ollama, name: str, path: str) -> None:
    store.model(path, LLAMA, "{{ .Prompt }}")
    store.model(f"{LIBRARY}/other/latest", SPM)
    tok = ggtok.load(name)
    assert tok.pre == "llama-bpe"
    assert tok.source is not None
    assert (tok.source.name, tok.source.kind) == (name, "ollama")
    assert tok.source.template == "{{ .Prompt }}"
    assert tok.source.path == str(
        store.root / "blobs" / f"sha256-{hashlib.sha256(LLAMA).hexdigest()}"
    )
    assert tok.chat_template == ggtok.load(LLAMA).chat_template
    assert pickle.loads(pickle.dumps(tok)).pre == "llama-bpe"


def test_ollamas_folder(store: Ollama, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store.model(f"{LIBRARY}/x/latest", LLAMA)
    other = Ollama(tmp_path / "other")
    other.model(f"{LIBRARY}/x/latest", QWEN)
    monkeypatch.setenv("OLLAMA_MODELS", str(other.root))
    assert ggtok.load("ollama:x").pre == "qwen2"
    monkeypatch.delenv("OLLAMA_MODELS")
    system = Ollama(tmp_path / "system")
    system.model(f"{LIBRARY}/y/latest", SPM)
    monkeypatch.setattr(ollama_store, "stores", lambda: [str(store.root), str(system.root)])
    assert ggtok.load("ollama:x").pre == "llama-bpe"
    assert ggtok.load("ollama:y").vocab_type == "SPM"


@pytest.mark.parametrize(
    ("platform", "services"),
    [
        ("linux", ["/usr/share/ollama/.ollama/models", "/var/lib/ollama/models"]),
        ("darwin", []),
        ("win32", []),
    ],
)
def test_ollamas_folders(
    home: Path, monkeypatch: pytest.MonkeyPatch, platform: str, services: list[str]
) -> None:
    monkeypatch.setattr(ollama_store, "sys", SimpleNamespace(platform=platform))
    assert ollama_store.stores() == [str(home / ".ollama" / "models"), *services]


def test_a_store_of_another_user(store: Ollama, monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: str) -> list[str]:
        raise PermissionError(13, "Permission denied", path)

    monkeypatch.setattr(os, "listdir", forbidden)
    with pytest.raises(
        PermissionError, match=r"ollama:x: .*\.ollama/models, which this user can't read"
    ):
        ggtok.load("ollama:x")


def test_ollamas_oldest_blobs(store: Ollama) -> None:
    store.model(f"{LIBRARY}/x/latest", LLAMA)
    for blob in (store.root / "blobs").iterdir():
        blob.rename(blob.with_name(blob.name.replace("-", ":", 1)))
    assert ggtok.load("ollama:x").pre == "llama-bpe"


def test_ollamas_second_layout(store: Ollama) -> None:
    """The layout manifests-v2 has links to manifests, which are blobs, and lists of manifests by
    engine."""
    qwen = store.manifest([store.blob(QWEN, "model")], runner="llamacpp", format="gguf")
    tensors = store.manifest([store.blob(b"x", "tensor")], runner="mlx", format="safetensors")
    data = json.dumps(qwen).encode()
    blob = store.blob(data, "x")
    listed = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.ollama.manifest.list.v2+json",
        "manifests": [
            tensors,
            {"mediaType": qwen["mediaType"], "digest": blob["digest"], "runner": "llamacpp"},
        ],
    }
    parent = store.blob(json.dumps(listed).encode(), "x")["digest"].replace(":", "-")
    link = store.root / "manifests-v2" / "ollama.com" / "library" / "x" / "latest"
    link.parent.mkdir(parents=True)
    link.symlink_to(os.path.relpath(store.root / "blobs" / parent, link.parent))
    store.model(f"{LIBRARY}/x/latest", SPM)  # a manifest left by an older version
    assert ggtok.load("ollama:x").pre == "qwen2"
    assert [name for _, name, _ in ollama_store.list_store()] == ["ollama:x:latest"]
    listed["manifests"] = [tensors, qwen]
    store.add("ollama.com/library/z/latest", listed, "manifests-v2")
    assert ggtok.load("ollama:z").pre == "qwen2"
    listed["manifests"] = [tensors]
    store.add("ollama.com/library/y/latest", listed, "manifests-v2")
    with pytest.raises(VocabError, match=r"no GGUF layer; .*only for these engines: mlx"):
        ggtok.load("ollama:y")


def test_manifests_with_control_characters(store: Ollama) -> None:
    """Text from a manifest is escaped and truncated in messages."""
    rude = "\x1b[2J\u202e" + "y" * 5000
    store.add(f"{LIBRARY}/kind/latest", store.manifest([{"mediaType": rude, "digest": rude}]))
    store.add(
        f"{LIBRARY}/runner/latest",
        {
            "mediaType": "application/vnd.ollama.manifest.list.v2+json",
            "manifests": [{"runner": rude, "layers": []}],
        },
    )
    layer = {**store.blob(LLAMA, "model"), "digest": rude}
    store.add(f"{LIBRARY}/digest/latest", store.manifest([layer]))
    for name in ("kind", "runner", "digest"):
        with pytest.raises((FileError, VocabError), match=r"\\x1b\[2[jJ]\\u202eyyy") as caught:
            ggtok.load(f"ollama:{name}")
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < 600
    assert all(model.error and model.error.isprintable() for model in listing.list_models())


def test_ollama_models_that_do_not_load(store: Ollama) -> None:
    with pytest.raises(FileNotFoundError, match="Ollama has no such model"):
        ggtok.load("ollama:none")
    store.add(f"{LIBRARY}/cloud/latest", store.manifest([store.blob(b"x", "license")]))
    with pytest.raises(VocabError, match=r"no GGUF layer \(its layers: license\)"):
        ggtok.load("ollama:cloud")
    store.add(f"{LIBRARY}/bare/latest", store.manifest([]))
    with pytest.raises(VocabError, match=r"no GGUF layer \(its layers: none\)"):
        ggtok.load("ollama:bare")
    store.model(f"{LIBRARY}/old/latest", b"ggla and so on")
    with pytest.raises(GGUFError, match="not a GGUF file"):
        ggtok.load("ollama:old")
    layer = store.blob(LLAMA, "model")
    store.add(f"{LIBRARY}/gone/latest", store.manifest([{**layer, "digest": "sha256:" + "0" * 64}]))
    with pytest.raises(FileNotFoundError, match=r"blob sha256:0+ is missing in the store"):
        ggtok.load("ollama:gone")
    store.add(f"{LIBRARY}/bad/latest", store.manifest([{**layer, "digest": "../../../etc/passwd"}]))
    with pytest.raises(FileError, match="not a SHA-256 digest"):
        ggtok.load("ollama:bad")
    for i, text in enumerate((b"", b"[]", b"{", b'{"layers": 3}', b"[" * 100_000, b"\xff")):
        write(store.root / "manifests" / LIBRARY / "broken" / str(i), text)
        with pytest.raises((FileError, VocabError), match=f"ollama:broken:{i}"):
            ggtok.load(f"ollama:broken:{i}")


@pytest.mark.parametrize(
    "name", ["ollama:", "ollama::x", "ollama:x:", "ollama:../x", "ollama:a/b/c/d", "ollama:x:../y"]
)
def test_bad_names_of_ollamas(store: Ollama, name: str) -> None:
    with pytest.raises(InvalidValueError, match="Ollama's names are"):
        ggtok.load(name)


# ---- LM Studio ----

PUBLISHED = {
    "lmstudio-community/Meta-Llama-3-8B-Instruct-GGUF/Meta-Llama-3-8B-Q4_K_M.gguf": LLAMA,
    "lmstudio-community/Meta-Llama-3-8B-Instruct-GGUF/Meta-Llama-3-8B-Q8_0.gguf": QWEN,
    "lmstudio-community/Meta-Llama-3-8B-Instruct-GGUF/mmproj-model-f16.gguf": b"no model",
    "other/large/large-00001-of-00002.gguf": SPM,
    "other/large/large-00002-of-00002.gguf": b"GGUF",
    "mlx/tensors/model.safetensors": b"tensors",
}
META = "lmstudio:lmstudio-community/Meta-Llama-3-8B-Instruct-GGUF"


@pytest.fixture(params=["new", "old", "pointer", "settings"])
def studio(request: pytest.FixtureRequest, home: Path) -> Path:
    """Creates LM Studio's folder of models in each possible location."""
    folder = home / ".lmstudio" / "models"
    if request.param == "old":
        folder = home / ".cache" / "lm-studio" / "models"
    elif request.param == "pointer":
        folder = home / "elsewhere" / "models"
        (home / ".lmstudio-home-pointer").write_text(f"{home / 'elsewhere'}\n")
    elif request.param == "settings":
        folder = home / "large disk"
        settings = json.dumps({"downloadsFolder": str(folder)}).encode()
        write(home / ".lmstudio" / "settings.json", settings)
    for name, data in PUBLISHED.items():
        write(folder / name, data)
    return folder


def test_lm_studios_models(studio: Path) -> None:
    for name, pre in [
        (META, "llama-bpe"),
        (META.lower(), "llama-bpe"),
        (META + ":Q8_0", "qwen2"),
        (META + "@q8_0", "qwen2"),
        (META + "/Meta-Llama-3-8B-Q8_0.gguf", "qwen2"),
        ("lmstudio:other/large", None),
        ("lmstudio:other/large/large-00002-of-00002.gguf", None),
    ]:
        tok = ggtok.load(name)
        assert tok.pre == pre
        assert tok.source is not None
        assert tok.source.kind == "lmstudio"
        assert str(tok.source.path).startswith(str(studio))
    for name, says in [
        ("lmstudio:none/none", "no such model"),
        (META + ":Q2_K", "no GGUF model of quantization 'Q2_K'; these are there: Meta"),
        (META + "/x.gguf", "x.gguf"),
        ("lmstudio:mlx/tensors", "there is no GGUF model$"),
    ]:
        with pytest.raises(FileNotFoundError, match=says):
            ggtok.load(name)


@pytest.mark.parametrize("name", ["lmstudio:", "lmstudio:x", "lmstudio:a/../b", "lmstudio:/a/b"])
def test_bad_names_of_lm_studios(name: str) -> None:
    with pytest.raises(InvalidValueError, match="LM Studio's models are"):
        ggtok.load(name)


@pytest.mark.parametrize("settings", ["[" * 100_000, '{"downloadsFolder": "a\\u0000b"}', "3", "{}"])
def test_settings_that_are_broken(home: Path, settings: str) -> None:
    write(home / ".lmstudio" / "settings.json", settings.encode())
    assert lmstudio.folders() == []
    assert list(listing.list_models()) == []
    with pytest.raises(FileNotFoundError, match="LM Studio has no such model"):
        ggtok.load("lmstudio:a/b")


def test_no_lm_studio() -> None:
    assert lmstudio.folders() == []
    with pytest.raises(FileNotFoundError, match=r"LM Studio has no such model in .*lmstudio"):
        ggtok.load("lmstudio:a/b")


# ---- the listing ----


def test_list(home: Path, store: Ollama) -> None:
    from tests.sources.stores import COMMIT, hub_cache

    store.model(f"{LIBRARY}/llama3.2/3b", LLAMA)
    store.model("hf.co/user/repo-GGUF/Q4_K_M", QWEN)
    store.add(f"{LIBRARY}/cloud/latest", store.manifest([]))
    for name, data in PUBLISHED.items():
        write(home / ".lmstudio" / "models" / name, data)
    hub = home / ".cache" / "huggingface" / "hub"
    hub_cache(hub, "user/repo", {"a/x.gguf": QWEN, "y": b"y"})
    for name in ("models--user--begun", "datasets--user--data", ".locks"):
        (hub / name).mkdir()
    flat = home / ".cache" / "llama.cpp" / "user_repo_x-Q8_0.gguf"
    if sys.platform not in ("win32", "darwin"):
        write(flat, SPM[: len(SPM) // 2] + bytes(1 << 20))

    done = subprocess.run(
        [sys.executable, "-m", "ggtok", "list", "--json"], capture_output=True, check=True
    )
    listed = {model["name"]: model for model in json.loads(done.stdout)}
    hf = listed["hf://user/repo/a/x.gguf"]
    assert hf == {
        "source": "hf",
        "name": "hf://user/repo/a/x.gguf",
        "path": str(hub / "models--user--repo" / "snapshots" / COMMIT / "a" / "x.gguf"),
        "size": len(QWEN),
        "vocab_type": "BPE",
        "model": "gpt2",
        "pre": "qwen2",
        "n_tokens": ggtok.load(QWEN).n_tokens,
        "error": None,
    }
    assert [name for name in listed if name.startswith("hf:")] == [hf["name"]]
    assert listed["ollama:llama3.2:3b"]["pre"] == "llama-bpe"
    assert listed["ollama:hf.co/user/repo-GGUF:Q4_K_M"]["pre"] == "qwen2"
    assert "no GGUF layer" in listed["ollama:cloud:latest"]["error"]
    assert listed["lmstudio:other/large/large-00001-of-00002.gguf"]["vocab_type"] == "SPM"
    assert not any("00002-of" in name for name in listed)
    for name, model in listed.items():
        if model["error"] is None:
            tok = ggtok.load(name) if name != str(flat) else None
            assert tok is None or (tok.vocab_type, tok.model, tok.pre, tok.n_tokens) == tuple(
                model[key] for key in ("vocab_type", "model", "pre", "n_tokens")
            )

    table = subprocess.run(
        [sys.executable, "-m", "ggtok", "list"], capture_output=True, check=True, text=True
    ).stdout.splitlines()
    assert table[0].split() == ["SOURCE", "NAME", "SIZE", "TYPE", "PRE", "TOKENS"]
    assert len(table) == 1 + len(listed)
    (line,) = (line for line in table if "ollama:llama3.2:3b" in line)
    assert line.split()[0] == "ollama"
    assert line.split()[-3:] == ["BPE", "llama-bpe", str(ggtok.load(LLAMA).n_tokens)]


@pytest.mark.parametrize("name", sorted(path.stem for path in fixture("spm").parent.iterdir()))
def test_a_summary_equals_the_loaded_model(name: str, tmp_path: Path) -> None:
    path = write(tmp_path / "sub" / "model.gguf", fixture(name).read_bytes())
    (model,) = listing.list_models([str(tmp_path)])
    tok = ggtok.load(path)
    assert (model.source, model.name, model.path) == ("file", str(path), str(path))
    assert (model.vocab_type, model.model, model.pre, model.n_tokens) == (
        *(tok.vocab_type, tok.model, tok.pre, tok.n_tokens),
    )
    assert (model.size, model.error) == (path.stat().st_size, None)


def test_only_beginnings_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the beginnings of files are read, whether whole or truncated."""
    path = write(tmp_path / "model.gguf", LLAMA)
    monkeypatch.setattr(listing, "_FIRST", 700)
    read = 0

    class Counting(io.FileIO):
        def read(self, n: int = -1) -> bytes:  # type: ignore[override]
            nonlocal read
            data = super().read(n)
            read += len(data)
            return data

    monkeypatch.setattr(listing, "open", lambda path, *_, **__: Counting(path), raising=False)
    (whole,) = listing.list_models([str(tmp_path)])
    assert (whole.pre, whole.n_tokens) == ("llama-bpe", ggtok.load(LLAMA).n_tokens)
    assert read < len(LLAMA) / 4
    os.truncate(path, 1500)
    (cut,) = listing.list_models([str(tmp_path)])
    assert cut.size == 1500
    os.truncate(path, 100)
    (cut,) = listing.list_models([str(tmp_path)])
    assert cut.error
    path.write_bytes(b"no GGUF")
    (bad,) = listing.list_models([str(tmp_path)])
    assert bad.error == "not a GGUF file: it does not begin with 'GGUF'"
    path.write_bytes(b"")
    assert next(iter(listing.list_models([str(tmp_path)]))).error


def with_a_long_text(size: int) -> bytes:
    """Returns a model with a long text before the vocabulary."""
    gguf = GGUF.parse(LLAMA)
    vocabulary, gguf.raw = gguf.raw, {}
    gguf.set("general.description", "x" * size, "str")
    gguf.raw |= vocabulary
    return gguf.dump()


def test_a_vocabulary_far_from_the_beginning(tmp_path: Path) -> None:
    write(tmp_path / "model.gguf", with_a_long_text(200_000))
    (model,) = listing.list_models([str(tmp_path)])
    assert (model.pre, model.n_tokens) == ("llama-bpe", ggtok.load(LLAMA).n_tokens)


def test_a_file_that_shrinks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "model.gguf", with_a_long_text(200_000))

    class Shrinking(io.FileIO):
        def read(self, n: int = -1) -> bytes:  # type: ignore[override]
            os.truncate(path, 100_000)
            return super().read(n)

    monkeypatch.setattr(listing, "open_regular", Shrinking)
    (model,) = listing.list_models([str(tmp_path)])
    assert (model.pre, model.error) == (None, "the file became shorter while it was read")


def test_a_file_that_is_removed_meanwhile(tmp_path: Path) -> None:
    for name in ("a.gguf", "b.gguf"):
        write(tmp_path / name, SPM)
    found = listing.list_models([str(tmp_path)])
    assert next(found).vocab_type == "SPM"
    (tmp_path / "b.gguf").unlink()
    gone = next(found)
    assert (gone.name, gone.vocab_type) == (str(tmp_path / "b.gguf"), None)
    assert gone.error == "No such file or directory"


def test_cycles_of_links(tmp_path: Path) -> None:
    real = write(tmp_path / "models" / "a" / "model.gguf", SPM)
    for name in ("one", "two", "a/three"):
        (tmp_path / "models" / name).symlink_to(tmp_path / "models", target_is_directory=True)
    (tmp_path / "models" / "self").symlink_to("self")
    (tmp_path / "models" / "nowhere.gguf").symlink_to("none.gguf")
    assert [model.path for model in listing.list_models([str(tmp_path / "models")])] == [str(real)]


def test_list_of_nothing(home: Path) -> None:
    run = [sys.executable, "-m", "ggtok", "list"]
    assert subprocess.check_output([*run, "--json"]) == b"[]\n"
    assert subprocess.check_output(run) == b"SOURCE  NAME  SIZE  TYPE  PRE  TOKENS\n"
    done = subprocess.run([*run, str(home / "none")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"ggtok: error: {home / 'none'} doesn't exist\n"


def test_a_survey_of_nothing(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("LLAMA_CACHE", "XDG_CACHE_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(variable, raising=False)
    (home / ".lmstudio" / "models").mkdir(parents=True)
    monkeypatch.setattr(ollama_store, "stores", lambda: [str(home / "no\x1bne")])
    survey = listing.Survey()
    assert list(listing.list_models(survey=survey)) == []
    assert survey.unreadable == []
    assert [source for source, _ in survey.looked] == [
        *("hf", "llama.cpp", "ollama", "lmstudio", "lmstudio")
    ]
    lines = survey.lines(0)
    assert lines[0] == "no models found; ggtok looked in these folders:"
    assert f"  hf: {home / '.cache' / 'huggingface' / 'hub'} (does not exist)" in lines
    assert f"  ollama: {home}{os.sep}no\\x1bne (does not exist)" in lines
    assert f"  lmstudio: {home / '.lmstudio' / 'models'}" in lines
    assert len(lines) == 6
    assert survey.lines(1) == []


@pytest.mark.parametrize("folder", ["", "manifests", "manifests/registry.ollama.ai"])
def test_a_survey_without_permission(
    store: Ollama, home: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """Each unreadable folder is reported once; missing folders aren't reported."""
    store.model(f"{LIBRARY}/x/latest", LLAMA)
    studio = write(home / ".lmstudio" / "models" / "a" / "b" / "c.gguf", LLAMA)
    closed = os.path.normpath(store.root / folder)
    plain = os.scandir

    def scandir(path: str) -> Any:
        if f"{path}{os.sep}".startswith(closed + os.sep):
            raise PermissionError(13, "Permission denied", path)
        return plain(path)

    monkeypatch.setattr(os, "scandir", scandir)
    monkeypatch.setattr(ollama_store, "stores", lambda: [str(store.root), str(home / "none")])
    survey = listing.Survey()
    found = list(listing.list_models(survey=survey))
    assert [model.path for model in found] == [str(studio)]
    assert survey.lines(1) == [f"can't read {closed}: Permission denied"]


def test_a_survey_of_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path / "a" / "x.gguf", LLAMA)
    (tmp_path / "b").mkdir()
    closed, plain = str(tmp_path / "b"), os.stat

    def stat(path: Any, *args: Any, **more: Any) -> os.stat_result:
        if path == closed:
            raise OSError(5, "Input/output error")
        return plain(path, *args, **more)

    monkeypatch.setattr(os, "stat", stat)
    survey = listing.Survey()
    folders = [str(tmp_path / "a"), closed]
    (model,) = listing.list_models(folders, survey)
    assert model.pre == "llama-bpe"
    assert survey.looked == [("file", folder) for folder in folders]
    assert survey.lines(1) == [f"can't read {closed}: Input/output error"]
