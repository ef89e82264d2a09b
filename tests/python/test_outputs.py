"""The function that writes whole output files, and the functions that use it."""

from __future__ import annotations

import os
import stat
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.base import files
from ggtok.inspect.parity.texts import PROSE
from ggtok.vocabularies.read import extract
from tests.support.vocabularies import fixture

BPE = str(fixture("bpe-llama3"))
NOTES = b'{"notes": ["precious"]}'
posix = pytest.mark.skipif(sys.platform == "win32", reason="no links, FIFOs and modes")


def counts() -> ggtok.WordCounts:
    return ggtok.count_words("some words")


# The functions in WRITERS, each of which writes a file.
def save(path: Path, **options: Any) -> None:
    ggtok.vocabulary(BPE).save(path, inexact=True, **options)


def save_counts(path: Path, **options: Any) -> None:
    counts().save(path, **options)


def save_model(path: Path, **options: Any) -> None:
    ggtok.train(" ".join(PROSE), 1200, model="spm").save(path, inexact=True, **options)


def save_extract(path: Path, **options: Any) -> None:
    extract(BPE, str(path), **options)


WRITERS: dict[str, Any] = {
    "v.gguf": save,
    "v.json": save,
    "v.tiktoken": save,
    "v.model": save_model,
    "v.counts": save_counts,
    "v.out": save_extract,
}


@pytest.mark.parametrize("name", WRITERS)
def test_files_of_another_format_need_force(tmp_path: Path, name: str) -> None:
    """A file of another format is overwritten only with force. An empty file, or one of the same
    format, is always overwritten."""
    write, path = WRITERS[name], tmp_path / name
    for other in (NOTES, b"a line\nand another\n", b"\0\1\2"):
        path.write_bytes(other)
        with pytest.raises(ggtok.InvalidValueError, match=r"exists and is not a.*force=True"):
            write(path)
        assert path.read_bytes() == other
    write(path, force=True)
    content = path.read_bytes()
    write(path)
    assert path.read_bytes() == content
    path.write_bytes(b"")
    write(path)
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == [name]


@posix
@pytest.mark.parametrize("name", WRITERS)
def test_links_modes_and_streams_are_kept(tmp_path: Path, name: str) -> None:
    write, path = WRITERS[name], tmp_path / name
    (tmp_path / "disk").mkdir()
    path.symlink_to(tmp_path / "disk" / "there")
    write(path)
    content = path.read_bytes()
    path.chmod(0o640)
    write(path)
    assert path.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path / "disk") == ["there"]
    path.unlink()
    path.symlink_to("/dev/null")
    write(path)
    assert stat.S_ISCHR(path.stat().st_mode)
    path.unlink()
    os.mkfifo(path)
    read: list[bytes] = []
    reader = threading.Thread(target=lambda: read.append(path.read_bytes()), daemon=True)
    reader.start()
    write(path)
    reader.join(60)
    assert read == [content] and stat.S_ISFIFO(path.stat().st_mode)


@posix
def test_sources_are_never_overwritten(tmp_path: Path) -> None:
    """A source is never overwritten, whatever its name, even with force."""
    model = tmp_path / "model.gguf"
    model.write_bytes(Path(BPE).read_bytes())
    ggtok.vocabulary(model).save(tmp_path / "tokenizer.json", inexact=True)
    counts().save(tmp_path / "a.counts")
    (tmp_path / "text.gguf").write_text("a b c " * 50)
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for path in before:
        path.with_name("link-" + path.name).symlink_to(path)
        os.link(path, path.with_name("hard-" + path.name))
    loaded = counts()
    loaded.merge(ggtok.WordCounts.load(tmp_path / "a.counts"))
    rows: list[tuple[Any, str]] = [
        (ggtok.vocabulary(model).save, "model.gguf"),
        (ggtok.vocabulary(model).smaller(650).save, "model.gguf"),
        (ggtok.convert(tmp_path / "tokenizer.json").save, "tokenizer.json"),
        (ggtok.convert(tmp_path).save, "tokenizer.json"),
        (loaded.save, "a.counts"),
        (ggtok.train([tmp_path / "text.gguf"], 260).save, "text.gguf"),
        (lambda path, **options: extract(str(model), str(path), **options), "model.gguf"),
    ]
    for write, name in rows:
        for start in ("", "link-", "hard-"):
            with pytest.raises(ggtok.InvalidValueError, match="is the source itself"):
                write(tmp_path / (start + name), force=True)
    assert {path: path.read_bytes() for path in before} == before


def test_folders_are_rejected(tmp_path: Path) -> None:
    for write in (save, save_extract, save_counts):
        path = tmp_path / "nowhere" / "v.gguf"
        with pytest.raises(FileNotFoundError, match=r"v.gguf: the folder .*nowhere doesn't exist"):
            write(path)
        (tmp_path / "v.gguf").mkdir(exist_ok=True)
        with pytest.raises(IsADirectoryError):
            write(tmp_path / "v.gguf")
    with pytest.raises(ggtok.InvalidValueError, match="null"):
        extract(BPE, "a\0b")


@posix
def test_other_errors_of_writing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writing raises an error for sockets, for files without write permission, and for paths that
    the system rejects."""
    import socket

    monkeypatch.chdir(tmp_path)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("socket")
        with pytest.raises(ggtok.FileError, match="neither a file nor a stream"):
            extract(BPE, "socket", force=True)
    extract(BPE, "v.gguf")
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError):
            extract(BPE, "v.gguf")
    with pytest.raises(ggtok.FileError, match="File name too long"):
        extract(BPE, "x" * 300)
    os.symlink("loop", "loop")
    with pytest.raises(ggtok.FileError, match="symbolic links"):
        extract(BPE, "loop")


@posix
def test_a_new_file_has_the_usual_mode(tmp_path: Path) -> None:
    (tmp_path / "other").touch()
    extract(BPE, str(tmp_path / "v.gguf"))
    assert (tmp_path / "v.gguf").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert not hasattr(files, "umask")
