"""The cache of fetched vocabularies."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

import ggtok
from ggtok.errors import InvalidValueError
from ggtok.sources import download_cache
from ggtok.sources.download_cache import CacheEntry

URL = "https://example.org/model.gguf"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("GGTOK_CACHE_SIZE", raising=False)
    return tmp_path / "cache"


def test_stored_and_found(folder: Path) -> None:
    assert download_cache.load_entry(URL) is None
    entry = CacheEntry(URL, '"é"', bytes(range(256)) * 10)
    download_cache.store(entry)
    assert download_cache.load_entry(URL) == entry
    assert download_cache.load_entry(URL + "x") is None
    other = CacheEntry(URL, '"two"', b"")
    download_cache.store(other)
    assert download_cache.load_entry(URL) == other
    assert len(list(folder.iterdir())) == 1
    if os.name == "posix":
        assert folder.stat().st_mode & 0o77 == 0


@pytest.mark.parametrize(
    ("platform", "variables", "where"),
    [
        ("linux", {}, ".cache/ggtok"),
        ("linux", {"XDG_CACHE_HOME": "~/xdg"}, "xdg/ggtok"),
        ("darwin", {"XDG_CACHE_HOME": "~/xdg"}, "Library/Caches/ggtok"),
        ("win32", {}, "AppData/Local/ggtok/Cache"),
        ("win32", {"LOCALAPPDATA": "~/local"}, "local/ggtok/Cache"),
        ("win32", {"LOCALAPPDATA": "~/local", "GGTOK_CACHE": "~/own"}, "own"),
    ],
)
def test_the_platforms_folder(
    platform: str,
    variables: dict[str, str],
    where: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("GGTOK_CACHE", "LOCALAPPDATA", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    for name in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(name, str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(name, os.path.expanduser(value))
    monkeypatch.setattr(download_cache, "sys", SimpleNamespace(platform=platform))
    assert Path(download_cache.folder()) == tmp_path / where


@pytest.mark.parametrize("at", [0, 5, 60, -1, None])
def test_damage_is_detected(folder: Path, at: int | None) -> None:
    download_cache.store(CacheEntry(URL, "x", bytes(1000)))
    (path,) = folder.iterdir()
    data = bytearray(path.read_bytes())
    if at is None:
        del data[-10:]
    else:
        data[at] ^= 0x55
    path.write_bytes(data)
    assert download_cache.load_entry(URL) is None
    assert not path.exists()


@pytest.mark.parametrize(
    "data", [b"", b"\n", b"{}\n", b"[]\n", b"\xff\n", b"1" * 200_000, b"[" * 9999]
)
def test_files_that_are_not_entries(folder: Path, data: bytes) -> None:
    download_cache.store(CacheEntry(URL, "x", b"y"))
    (path,) = folder.iterdir()
    path.write_bytes(data)
    assert download_cache.entries() == []
    assert download_cache.load_entry(URL) is None


def test_an_entry_of_another_address_under_this_name(folder: Path) -> None:
    download_cache.store(CacheEntry(URL, "x", b"y"))
    (path,) = folder.iterdir()
    download_cache.store(CacheEntry(URL + "2", "x", b"z"))
    (other,) = set(folder.iterdir()) - {path}
    other.replace(path)
    assert download_cache.load_entry(URL) is None


def test_the_least_recently_used_are_removed_first(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GGTOK_CACHE_SIZE", "5000")
    for i in range(4):
        download_cache.store(CacheEntry(f"{URL}{i}", "x", bytes(1000)))
        (path,) = (p for p in folder.iterdir() if f"gguf{i}" in p.read_bytes()[:300].decode())
        os.utime(path, (1000 + i, 1000 + i))
    assert download_cache.load_entry(f"{URL}0") is not None  # so this entry was recently used
    download_cache.store(CacheEntry(f"{URL}4", "x", bytes(1000)))
    assert {entry.url[-1] for entry in download_cache.entries()} == {"0", "3", "4", "2"} - {
        "2" if sum(e.size for e in download_cache.entries()) > 5000 else ""
    }
    assert download_cache.load_entry(f"{URL}1") is None
    download_cache.store(CacheEntry(f"{URL}5", "x", bytes(6000)))  # larger than the cache
    assert download_cache.load_entry(f"{URL}5") is None
    assert download_cache.load_entry(f"{URL}4") is not None
    monkeypatch.setenv("GGTOK_CACHE_SIZE", "0")
    download_cache.store(CacheEntry(f"{URL}6", "x", b"x"))
    assert download_cache.load_entry(f"{URL}6") is None
    monkeypatch.setenv("GGTOK_CACHE_SIZE", "much")
    with pytest.raises(InvalidValueError, match="GGTOK_CACHE_SIZE must be a number, not 'much'"):
        download_cache.store(CacheEntry(f"{URL}6", "x", b"x"))
    monkeypatch.setenv("GGTOK_CACHE_SIZE", "9" * 5000)
    with pytest.raises(InvalidValueError, match=r"not '9{40}[.]{3}' \(at most 18 digits\)"):
        download_cache.store(CacheEntry(f"{URL}6", "x", b"x"))


def test_remains_of_a_killed_writer(folder: Path) -> None:
    download_cache.store(CacheEntry(URL, "x", b"y"))
    old, new = folder / "a.writing", folder / "b.writing"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (time.time() - 7200,) * 2)
    (folder / "a stranger's").write_bytes(b"keep")
    download_cache.store(CacheEntry(URL, "x", b"z"))
    assert [entry.url for entry in download_cache.entries()] == [URL]
    assert not old.exists()
    assert new.exists()
    download_cache.clear()
    assert [path.name for path in folder.iterdir()] == ["a stranger's"]


def test_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_bytes(b"")
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "file" / "cache"))
    download_cache.store(CacheEntry(URL, "x", b"y"))
    assert download_cache.load_entry(URL) is None
    assert download_cache.entries() == []
    assert download_cache.clear() == (0, 0)


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    download_cache.store(CacheEntry(URL, "x", b"y"))
    assert list(folder.iterdir()) == []


WRITER = """
import sys
from ggtok.sources import download_cache
url, n = sys.argv[1], int(sys.argv[2])
for i in range(n):
    download_cache.store(download_cache.CacheEntry(url, str(i), bytes([i % 256]) * 200_000))
    found = download_cache.load_entry(url)
    if found and found.payload != bytes([int(found.validator) % 256]) * 200_000:
        sys.exit("a mixture")
"""


def test_two_processes(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reader sees one of the written entries in full, or none."""
    monkeypatch.setenv("GGTOK_CACHE_SIZE", "300000")
    command = [sys.executable, "-c", WRITER]
    writers = [
        subprocess.Popen([*command, url, "150"], stderr=subprocess.PIPE)
        for url in (URL, URL, URL + "2")
    ]
    seen = 0
    while any(writer.poll() is None for writer in writers):
        entry = download_cache.load_entry(URL)
        if entry is not None:
            assert entry.payload == bytes([int(entry.validator) % 256]) * 200_000
            seen += 1
    assert [writer.communicate()[1] for writer in writers] == [b""] * 3
    assert [writer.returncode for writer in writers] == [0] * 3
    assert seen
    assert not [path for path in folder.iterdir() if path.name.endswith(".writing")]
    assert len(download_cache.entries()) == 1


def test_threads() -> None:
    failed: list[object] = []

    def work(i: int) -> None:
        for j in range(50):
            entry = CacheEntry(f"{URL}{j % 3}", f"{i}", bytes([i]) * 10_000)
            download_cache.store(entry)
            found = download_cache.load_entry(entry.url)
            if found is None or found.payload != bytes([int(found.validator)]) * 10_000:
                failed.append(found)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_on_the_command_line(folder: Path) -> None:
    def run(*arguments: str) -> str:
        command = [sys.executable, "-m", "ggtok", "cache", *arguments]
        return subprocess.check_output(command, text=True)

    assert run("ls") == "SIZE  USED  URL\n"
    download_cache.store(CacheEntry(URL, "x", bytes(2_000_000)))
    download_cache.store(CacheEntry(URL + "\x1b[2J", "x", b"y"))
    lines = run("ls").splitlines()
    assert len(lines) == 3
    assert lines[1].split()[:2] == ["2.0", "MB"]
    assert lines[1].endswith("  " + URL)
    assert "\x1b" not in lines[2]
    listed = json.loads(run("ls", "--json"))
    assert listed["folder"] == str(folder)
    assert [entry["url"] for entry in listed["entries"]] == [URL, URL + "\x1b[2J"]
    assert json.loads(run("clear", "--json"))["removed"] == 2
    assert run("clear") == "removed 0 vocabularies, 0 B\n"
    assert ggtok.__version__
