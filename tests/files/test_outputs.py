"""Writing an output never damages anything else: sources, links, devices, other files, modes."""

from __future__ import annotations

import os
import stat
import sys
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.base import files
from tests.files.corpus import documents, ids_of, raw_ids

posix = pytest.mark.skipif(sys.platform == "win32", reason="no links, FIFOs and modes")


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text("some text")
    return path


def check_refused(tok: ggtok.Tokenizer, match: str, *args: Any, **options: Any) -> None:
    with pytest.raises((ggtok.FileError, ggtok.InvalidValueError), match=match):
        tok.encode_files(*args, **options)


@posix
@pytest.mark.parametrize("options", [{}, {"resume": False}, {"resume": False, "force": True}])
def test_paths_that_are_not_regular_files(
    tok: ggtok.Tokenizer, text: Path, tmp_path: Path, options: dict[str, Any]
) -> None:
    """Devices, FIFOs, and links under names that the caller didn't pass are left unchanged."""
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "null").symlink_to("/dev/null")
    (tmp_path / "mine").write_text("precious")
    for name, match in (("fifo", "not a regular file"), ("null", "not a regular file")):
        check_refused(tok, match, text, tmp_path / name, **options)
    for end in (".offsets", ".manifest.json"):
        link = tmp_path / f"o{end}"
        link.symlink_to("mine")
        check_refused(tok, "a symbolic link", text, tmp_path / "o", **options)
        assert link.is_symlink()
        link.unlink()
        os.mkfifo(link)
        check_refused(tok, "not a regular file", text, tmp_path / "o", **options)
        link.unlink()
    assert stat.S_ISFIFO((tmp_path / "fifo").stat().st_mode)
    assert (tmp_path / "mine").read_text() == "precious"
    assert stat.S_ISCHR(Path("/dev/null").stat().st_mode)
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "fifo", "mine", "null"]


@posix
def test_links_are_followed(tok: ggtok.Tokenizer, text: Path, tmp_path: Path) -> None:
    """A link whose name the caller passed is followed; its target needn't exist."""
    (tmp_path / "disk").mkdir()
    (tmp_path / "o").symlink_to(tmp_path / "disk" / "ids")
    for options in ({}, {"resume": False}, {"resume": False, "eos": False}):
        tok.encode_files(text, tmp_path / "o", **options)
        assert (tmp_path / "o").is_symlink()
        assert os.listdir(tmp_path / "disk") == ["ids"]
        eos = tok.eos_id if options.get("eos", True) else None
        assert raw_ids(tmp_path / "o") == ids_of(tok, ["some text"], eos)


@posix
def test_modes_are_kept(tok: ggtok.Tokenizer, text: Path, tmp_path: Path) -> None:
    tok.encode_files(text, tmp_path / "o")
    names = ("o", "o.offsets", "o.manifest.json")
    for name in names:
        (tmp_path / name).chmod(0o600)
    tok.encode_files(text, tmp_path / "o", resume=False)
    assert {stat.S_IMODE((tmp_path / name).stat().st_mode) for name in names} == {0o600}


@posix
@pytest.mark.parametrize("options", [{}, {"force": True}, {"format": "megatron"}])
def test_working_files_of_a_private_output_are_private(
    tok: ggtok.Tokenizer, tmp_path: Path, options: dict[str, Any]
) -> None:
    text = tmp_path / "a.txt"
    text.write_text("some text\n" * 4000)
    outputs = tok.encode_files(text, tmp_path / "o", **options).files
    for path in outputs:
        Path(path).chmod(0o600)
    modes: dict[str, int] = {}

    def record(*_: object) -> None:
        for each in tmp_path.glob("o*"):
            modes[each.name] = modes.get(each.name, 0) | stat.S_IMODE(each.stat().st_mode)

    tok.encode_files(text, tmp_path / "o", progress=record, resume=False, **options)
    record()
    assert len(modes) > len(outputs) + 2
    assert {*modes.values()} == {0o600}, modes


@pytest.mark.parametrize("name", ["o", "o.offsets", "o.manifest.json", "o.partial"])
def test_other_files_are_not_replaced(
    tok: ggtok.Tokenizer, text: Path, tmp_path: Path, name: str
) -> None:
    """Other files are replaced only with force=True; outputs of earlier runs may be replaced, even
    by another format."""
    (tmp_path / name).write_text("precious")
    check_refused(tok, "exists, and has no manifest", text, tmp_path / "o", resume=False)
    if name != "o":
        check_refused(tok, "exists, and has no manifest", text, tmp_path / "o")
    assert sorted(os.listdir(tmp_path)) == ["a.txt", name]
    assert (tmp_path / name).read_text() == "precious"
    tok.encode_files(text, tmp_path / "o", force=True)
    tok.encode_files(text, tmp_path / "o", resume=False, dtype="uint32")
    tok.encode_files(text, tmp_path / "o", resume=False, format="npy")
    (tmp_path / "o").write_text("replaced by somebody")
    check_refused(tok, "exists, and has no manifest", text, tmp_path / "o", resume=False)


def test_other_journals_are_not_replaced(tok: ggtok.Tokenizer, text: Path, tmp_path: Path) -> None:
    (tmp_path / "o.journal").write_text("12 May: precious\n")
    for options in ({}, {"resume": False}, {"force": True}):
        check_refused(tok, r"o.journal: is not a journal", text, tmp_path / "o", **options)
    assert (tmp_path / "o.journal").read_text() == "12 May: precious\n"


@posix
def test_sources_and_the_model(tok: ggtok.Tokenizer, text: Path, tmp_path: Path) -> None:
    """The output can't be a source or the model, whatever its name, even with force=True."""
    text = text.rename(tmp_path / "a")
    (tmp_path / "link").symlink_to(text)
    os.link(text, tmp_path / "hard")
    model = tmp_path / "model"
    model.write_bytes(Path(str(tok._loaded.path)).read_bytes())
    own = ggtok.load(model)
    for out in ("a", "link", "hard"):
        match = "is both a source and the output"
        check_refused(tok, match, text, tmp_path / out, resume=False, force=True)
    check_refused(own, "is the source itself", text, model, resume=False, force=True)
    assert text.read_text() == "some text" and model.read_bytes()[:4] == b"GGUF"


def test_folders_that_are_missing(tok: ggtok.Tokenizer, text: Path, tmp_path: Path) -> None:
    check_refused(tok, "the folder .*nowhere doesn't exist", text, tmp_path / "nowhere" / "o")


@posix
def test_files_that_may_not_be_written(
    tok: ggtok.Tokenizer, text: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tok.encode_files(text, tmp_path / "o")
    (tmp_path / "o").chmod(0o400)
    monkeypatch.setattr(os, "access", lambda path, how: os.stat(path).st_mode & 0o200)
    check_refused(tok, "Permission denied", text, tmp_path / "o", resume=False)


@posix
def test_folders_that_may_not_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tmp_path.chmod(0o500)
    monkeypatch.setattr(os, "access", lambda path, how: os.stat(path).st_mode & 0o200)
    kind = files.FileFormat("a file", bool)
    with pytest.raises(ggtok.FileError, match="Permission denied"):
        files.check_target(str(tmp_path / "new"), kind)
    tmp_path.chmod(0o700)
    assert files.check_target(str(tmp_path / "new"), kind) is None


@posix
def test_unfinished_files_are_never_links(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None
) -> None:
    """Even if somebody replaces an unfinished file by a link, the link's target is left
    unchanged."""
    (tmp_path / "a.txt").write_text(" ".join(documents(1, 60)))
    (tmp_path / "mine").write_text("precious")

    def stop(progress: ggtok.EncodeProgress) -> None:
        if progress.read > 12_000:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "o", progress=stop)
    (tmp_path / "o.partial").unlink()
    (tmp_path / "o.partial").symlink_to("mine")
    check_refused(tok, "o.partial", tmp_path / "a.txt", tmp_path / "o")
    tok.encode_files(tmp_path / "a.txt", tmp_path / "o", resume=False)
    assert (tmp_path / "mine").read_text() == "precious"


def test_a_stream_that_became_a_file_is_kept(tmp_path: Path) -> None:
    """The path becomes a regular file after it was checked and before it is opened."""
    path = tmp_path / "out"
    path.write_bytes(b"somebody's")
    with pytest.raises(OSError, match="changed while it was opened"):
        files._stream(str(path), b"x")
    assert path.read_bytes() == b"somebody's"
