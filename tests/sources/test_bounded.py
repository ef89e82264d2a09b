"""FIFOs and endless devices may be in place of files that the caller didn't name: ggtok neither
waits for them nor reads them endlessly."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import ggtok
from ggtok.base import files

ROOT = Path(__file__).resolve().parents[2]
GGUF = str(ROOT / "fixtures" / "gguf" / "bpe-llama3.gguf")
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no FIFOs")

# Modules that open files without base/files.py, and why.
ELSEWHERE = {
    "base/files.py": "the functions that open and write files",
    "cli/__init__.py": "the null device",
    "cli/parity_command.py": "a temporary folder",
    "cli/input_texts.py": "the caller's path",
    "cli/standard_output.py": "the null device",
    "corpora/partial_file.py": "a handle from files.open_own",
    "corpora/iterate.py": "the caller's path",
    "corpora/journal.py": "a handle from files.open_own",
    "vocabularies/counts.py": "the caller's path",
    "vocabularies/convert/originals.py": "its own pipes",
    "vocabularies/gguf_writer.py": "a temporary folder",
    "vocabularies/edit/place.py": "the caller's path",
    "vocabularies/corpus.py": "the caller's path",
    "vocabularies/train.py": "/proc/self/status",
    "inspect/parity/texts.py": "Python's own files; the caller's folder",
    "inspect/parity/worker.py": "its own pipes",
    "page/__init__.py": "a file in the package",
    "cli/view_command.py": "webbrowser.open",
    "server/metrics.py": "a file in a temporary folder",
    "sources/download_cache.py": "a handle from files.open_own",
}
_OPENERS = {"open", "fdopen", "read_bytes", "read_text", "write_bytes", "write_text", "memmap"}
# ggtok's own modules and objects with functions of these names, whose calls don't count.
_OURS = {"files", "output", "input_texts", "standard_output"}


def opens(path: Path) -> bool:
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            if isinstance(called, ast.Name) and called.id == "open":
                return True
            if isinstance(called, ast.Attribute) and called.attr in _OPENERS:
                owner = called.value
                if not (isinstance(owner, ast.Name) and owner.id in _OURS):
                    return True
    return False


def test_files_are_opened_in_few_places() -> None:
    """Every module that opens files itself is listed in the table, with the reason."""
    package = ROOT / "ggtok"
    found = {p.relative_to(package).as_posix() for p in package.rglob("*.py") if opens(p)}
    assert found == set(ELSEWHERE)


def test_one_function_creates_files() -> None:
    """Only ggtok.base.files calls a function that creates a file and chooses its mode."""
    creating = []
    for path in (ROOT / "ggtok").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Call):
                called = ast.unparse(node.func)
                if "mkstemp" in called or "NamedTemporaryFile" in called:
                    creating.append((path.name, called))
                if called == "os.open" and "O_CREAT" in ast.unparse(node):
                    creating.append((path.name, called))
    assert creating == []


def test_regular_files(tmp_path: Path) -> None:
    """Only regular files are opened, and links to them unless `follow` is false."""
    (tmp_path / "file").write_bytes(b"0123456789")
    (tmp_path / "link").symlink_to("file")
    assert files.read_regular(tmp_path / "link", 4) == b"0123"
    assert files.read_regular(tmp_path / "file", 99) == b"0123456789"
    with pytest.raises(ggtok.FileError), files.open_regular(tmp_path / "link", follow=False):
        pass
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        with pytest.raises(ggtok.FileError, match="not a regular file"):
            files.read_regular(tmp_path / name, 4)
    with pytest.raises(IsADirectoryError):
        files.read_regular(tmp_path, 4)
    with pytest.raises(FileNotFoundError):
        files.read_regular(tmp_path / "nothing", 4)


# A child process with limited memory, and an alarm that terminates it.
_CHILD = """
import resource, signal, sys
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
signal.alarm(100)
"""


def child(code: str, home: Path, *arguments: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD + code, *arguments],
        env={"PATH": os.environ["PATH"], "HOME": str(home), **environment},
        cwd=home,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def put(path: Path, kind: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "zero":
        path.symlink_to("/dev/zero")
    else:  # a sparse file that is larger than memory
        with path.open("wb") as file:
            file.truncate(1 << 40)


KINDS = ("fifo", "zero", "large")


@pytest.mark.parametrize("kind", KINDS)
def test_stores(tmp_path: Path, kind: str) -> None:
    """FIFOs and endless devices may be in the stores of other programs, and in ggtok's cache."""
    hub = tmp_path / ".cache" / "huggingface" / "hub"
    for name in ("main", "other"):
        put(hub / "models--user--repo" / "refs" / name, kind)
    put(tmp_path / ".lmstudio-home-pointer", kind)
    put(tmp_path / ".lmstudio" / "settings.json", kind)
    llama = tmp_path / ".cache" / "llama.cpp"
    llama.mkdir(parents=True)
    (llama / "user_repo_model.gguf").write_bytes(Path(GGUF).read_bytes())
    put(llama / "user_repo_model.gguf.json", kind)
    models = tmp_path / ".ollama" / "models"
    put(models / "manifests" / "registry.ollama.ai" / "library" / "m" / "latest", kind)
    code = """
import ggtok
from ggtok.sources import download_cache, listing
print([m.name for m in listing.list_models() if m.error is None])
print(ggtok.load("user/repo").n_tokens)
for name in "ollama:m", "lmstudio:a/b":
    try:
        ggtok.load(name)
    except ggtok.GGTokError:
        pass
import os
path = download_cache._path("https://example.org/x")
os.makedirs(os.path.dirname(path))
os.rename(sys.argv[1], path)
print(download_cache.load_entry("https://example.org/x"), download_cache.entries())
"""
    put(tmp_path / "entry", kind)
    printed = child(code, tmp_path, str(tmp_path / "entry"), HF_HUB_OFFLINE="1")
    name = str(llama / "user_repo_model.gguf")
    assert printed.splitlines() == [repr([name]), "680", "None []"]


@pytest.mark.parametrize("kind", ["fifo", "zero"])
@pytest.mark.parametrize(
    "names",
    [
        ("a.txt", "b.txt.gz", "c.jsonl"),
        pytest.param(("d.parquet", "e.arrow"), marks=pytest.mark.full),
    ],
)
def test_sources_that_are_swapped(tmp_path: Path, kind: str, names: tuple[str, ...]) -> None:
    """Files are replaced after they were listed."""
    for name in names:
        (tmp_path / name).write_bytes(b"some text")
    code = """
import os, ggtok
from ggtok.corpora.sources import Search
tok, find = ggtok.load(sys.argv[1]), Search.find
def swap(self, named):
    found = find(self, named)
    path = found[0].path
    os.unlink(path)
    os.mkfifo(path) if sys.argv[2] == "fifo" else os.symlink("/dev/zero", path)
    return found
Search.find = swap
for name in sys.argv[3:]:
    try:
        tok.encode_files(name, "o")
    except ggtok.FileError as e:
        print(e.strerror)
"""
    said = child(code, tmp_path, GGUF, kind, *names).splitlines()
    assert said == ["not a regular file"] * len(names)


@pytest.mark.parametrize("kind", ["fifo", "zero"])
def test_folders_that_are_counted(tmp_path: Path, kind: str) -> None:
    """A FIFO or an endless device may be in place of an ignore file, also in a parent folder."""
    (tmp_path / "in" / "below").mkdir(parents=True)
    (tmp_path / "in" / "below" / "a.txt").write_text("some text")
    code = """
from ggtok import cli
sys.exit(cli.main(["count", sys.argv[1], "in/below"]) != 2)
"""
    for place in (".gitignore", "in/.ignore", "in/below/.git/info/exclude"):
        put(tmp_path / place, kind)
        child(code, tmp_path, GGUF)
        (tmp_path / place).unlink()


def test_files_that_are_counted(tmp_path: Path) -> None:
    """A file becomes a FIFO after its size was read."""
    (tmp_path / "a.txt").write_text("some text")
    code = """
import os, ggtok
from ggtok.cli import counting
size = counting._size
def swap(path):
    found = size(path)
    os.unlink(path)
    os.mkfifo(path)
    return found
counting._size = swap
counter = counting.FileCounter(
    ggtok.load(sys.argv[1]), add_special=False, parse_special=False, binary=False
)
print([counted.error for counted in counter.count(["a.txt"]) if counted])
"""
    assert child(code, tmp_path, GGUF) == "['a.txt: not a regular file']\n"


def test_small_json_is_still_read(tmp_path: Path) -> None:
    """The size limits allow larger files than those that the programs write."""
    from ggtok.sources import lmstudio

    (tmp_path / "settings.json").write_text(json.dumps({"downloadsFolder": "/x" * 1000}))
    assert lmstudio._chosen(str(tmp_path)) == "/x" * 1000
