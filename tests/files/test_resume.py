"""An interrupted run can be resumed and then writes the same files; changed sources or options are
rejected."""

from __future__ import annotations

import errno
import json
import os
import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora import finished, journal, partial_file, run
from ggtok.corpora.summary import EncodeProgress
from tests.files import kill
from tests.files.corpus import compressed, documents, files_of, jsonl, raw_ids
from tests.support import samples
from tests.support.full import Lazy
from tests.support.vocabularies import fixture

pa: Any = Lazy("pyarrow")
parquet: Any = Lazy("pyarrow.parquet")


class Stop(Exception):
    pass


def stop_after(after: int) -> Any:
    """Returns a progress callback that raises after `after` batches."""

    def progress(_: EncodeProgress) -> None:
        nonlocal after
        after -= 1
        if after < 0:
            raise Stop

    return progress


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Creates a folder with files of every kind, including faulty and long documents. Kinds that
    need a package from an extra are tested only with --full."""
    folder = tmp_path_factory.mktemp("sources")
    r = random.Random(5)
    names = ["a.txt", "b.txt.gz", "d.txt", *(["c.txt.zst"] if samples.FULL else [])]
    for i, name in enumerate(names):
        texts = [text.encode().replace(b"|", b"") for text in documents(i, 40, 900)]
        for j in r.sample(range(40), 6):
            at = r.randrange(len(texts[j]))
            texts[j] = texts[j][:at] + b"\xff" + texts[j][at:]
        texts[3] = b""
        compressed(folder / name, b"||".join(texts))
    for name in ("e.jsonl", "f.jsonl.gz"):
        compressed(folder / name, jsonl(documents(8, 40)) + b"{}\nnonsense\n")
    if samples.FULL:
        table = pa.table({"text": pa.array([*documents(9, 40), None, ""])})
        parquet.write_table(table, folder / "g.parquet", row_group_size=13)
        with pa.ipc.new_file(folder / "h.arrow", table.schema) as writer:
            writer.write_table(table, max_chunksize=11)
    for i in range(30):
        (folder / f"i{i:02}.txt").write_text("one document" * i)
    return folder


@pytest.mark.parametrize(
    ("format", "errors", "separator"),
    [
        ("raw", "skip", "||"),
        ("npy", "replace", "||"),
        ("megatron", "skip", None),
        pytest.param("arrow", "skip", "||", marks=pytest.mark.full),
    ],
)
def test_stopped_anywhere(
    tok: ggtok.Tokenizer,
    tmp_path: Path,
    small: None,
    sources: Path,
    format: str,
    errors: str,
    separator: str | None,
) -> None:
    """Files, manifest and Summary are identical wherever the run was stopped.

    Claim corpora.1, Claim corpora.2.
    """
    options: dict[str, Any] = {"format": format, "errors": errors, "separator": separator}
    out = tmp_path / {"npy": "o.npy", "arrow": "o.arrow"}.get(format, "o.bin")
    whole = tok.encode_files(sources, out, **options)
    expected = files_of(tmp_path, "o.")
    assert len(expected) == {"arrow": 2}.get(format, 3)
    for seed in range(2):
        r = random.Random(seed)
        for path in tmp_path.iterdir():
            path.unlink()
        resumed, stops = [], 0
        while True:
            try:
                progress = stop_after(r.choice([0, 10, 30, 80]))
                threads = r.choice([1, 2])
                summary = tok.encode_files(
                    sources, out, progress=progress, threads=threads, **options
                )
                break
            except Stop:
                stops += 1
                assert not out.exists()
        assert files_of(tmp_path, "o.") == expected
        resumed.append(summary.resumed)
        assert summary.as_dict() | {"seconds": 0, "resumed": 0} == whole.as_dict() | {
            "seconds": 0,
            "resumed": 0,
        }
        assert stops < 100


def test_killed(tmp_path: Path) -> None:
    """After SIGKILL at random moments, at most one checkpoint's work is repeated.

    Claim corpora.2, Claim corpora.3."""
    data = "\n\n".join(documents(1, 9000)).encode()
    (tmp_path / "a.txt").write_bytes(data)
    (tmp_path / "b.jsonl").write_bytes(jsonl(documents(2, 3000)))
    sizes = {"CHECKPOINT": 200_000, "BYTES": 50_000}
    model = str(fixture("bpe-llama3"))
    names = [str(tmp_path / "a.txt"), str(tmp_path / "b.jsonl")]
    options = {"separator": "\n\n", "errors": "replace"}
    lost = kill.compare(model, names, tmp_path, options, sizes, kills=6)
    assert len(lost) >= 3
    # An id takes two bytes, and there is at most one per byte of text, plus BOS and EOS. A batch
    # may exceed its size by one document.
    assert max(lost) <= sizes["CHECKPOINT"] + 4 * sizes["BYTES"]


def test_a_finished_output_is_not_written_again(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.txt").write_text("some text")
    first = tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    before = files_of(tmp_path, "o")
    with monkeypatch.context() as patched:
        patched.setattr(run, "batches", None)
        again = tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    assert again == first and again.resumed == first.ids
    assert files_of(tmp_path, "o") == before
    tok.encode_files(tmp_path / "a.txt", tmp_path / "o", resume=False)
    assert files_of(tmp_path, "o") == before


@pytest.mark.parametrize("format", ["raw", "npy", "megatron"])
def test_a_damaged_output_is_not_complete(
    tok: ggtok.Tokenizer, tmp_path: Path, format: Any
) -> None:
    """An output counts as damaged if any of its files is missing, has another size, or has a
    changed byte, even in its header."""
    (tmp_path / "a.txt").write_text("some text")
    first = tok.encode_files(tmp_path / "a.txt", tmp_path / "o", format=format)
    for name in first.files[:-1]:
        data = Path(name).read_bytes()
        rows = [
            (data[:-1], "bytes, not the"),
            (data + b"\0", "bytes, not the"),
            (None, "is missing"),
        ]
        rows += [
            (bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]]), "its checksum differs")
            for at in (0, len(data) // 2, len(data) - 1)
        ]
        for damaged, message in rows:
            if damaged is None:
                os.unlink(name)
            else:
                Path(name).write_bytes(damaged)
            manifest, faults = finished.verify(str(tmp_path / "o"))
            assert len(faults) == 1 and faults[0].startswith(f"{name}: ") and message in faults[0]
            assert manifest.counts.ids == first.ids
            if damaged is not None or name != first.files[0]:  # else the output is written again
                with pytest.raises(
                    ggtok.FileError, match=f"{message}.*resume=False and force=True"
                ):
                    tok.encode_files(tmp_path / "a.txt", tmp_path / "o", format=format)
            options: Any = {"resume": False, "force": True, "format": format}
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", **options)
            assert Path(name).read_bytes() == data
            assert finished.verify(str(tmp_path / "o"))[1] == []


def test_what_can_not_be_verified(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    out = str(tmp_path / "o")
    with pytest.raises(FileNotFoundError, match=r"o.manifest.json: doesn't exist"):
        finished.verify(out)
    (tmp_path / "a.txt").write_text("some text")
    tok.encode_files(tmp_path / "a.txt", out)
    path = tmp_path / "o.manifest.json"
    manifest = path.read_text()
    for other in ("", "{}", manifest.replace('"raw"', '"zip"'), manifest[:-9]):
        path.write_text(other)
        with pytest.raises(ggtok.FileError, match="is not a manifest of encode_files"):
            finished.verify(out)
    path.write_text(manifest.replace('"o.offsets"', '"../secret"'))
    assert finished.verify(out)[1] == [f"{out}.offsets: isn't in the manifest"]
    with pytest.raises(ggtok.FileError, match=r"o\.offsets: isn't in the manifest"):
        tok.encode_files(tmp_path / "a.txt", out)
    path.write_text(manifest)
    (tmp_path / "o").unlink()
    (tmp_path / "o").mkdir()
    assert "can't be read" in finished.verify(out)[1][0]


def check_refused(message: str, tok: ggtok.Tokenizer, *args: Any, **options: Any) -> None:
    with pytest.raises(ggtok.InvalidValueError) as raised:
        tok.encode_files(*args, **options)
    assert message in str(raised.value)
    assert "resume=False (--restart) starts over" in str(raised.value)


@pytest.mark.parametrize("finished", [False, True])
def test_changes_are_refused(
    tok: ggtok.Tokenizer, load_fixture: Any, tmp_path: Path, small: None, finished: bool
) -> None:
    """Changed sources and options raise an error that names them, for unfinished and finished
    runs."""
    folder, out = tmp_path / "in", tmp_path / "o"
    folder.mkdir()
    for name in ("a.txt", "b.txt"):
        (folder / name).write_text(" ".join(documents(1, 60)))
    if finished:
        tok.encode_files(folder, out)
    else:
        with pytest.raises(Stop):
            tok.encode_files(folder, out, progress=stop_after(20))
        assert (tmp_path / "o.journal").exists()
    check_refused(
        "the source a.txt".replace("a.txt", f"{folder}/a.txt is missing"),
        tok,
        folder / "b.txt",
        out,
    )
    check_refused(
        "the order of the sources changed", tok, [folder / "b.txt", folder / "a.txt"], out
    )
    rows: list[tuple[dict[str, Any], str]] = [
        ({"format": "npy"}, 'format was "raw", is "npy"'),
        ({"dtype": "uint32"}, 'dtype was "uint16", is "uint32"'),
        ({"separator": "x\n"}, 'separator was null, is "x'),
        ({"field": "f"}, 'field was "text", is "f"'),
        ({"add_special": False}, "add_special was true, is false"),
        ({"eos": False}, "eos was true, is false"),
    ]
    for options, message in rows:
        check_refused(message, tok, folder, out, **options)
    check_refused("the model's sha256 was", load_fixture("bpe-qwen2"), folder, out)
    with pytest.raises(ggtok.InvalidValueError, match="the model's pre was null, is"):
        ggtok.load(fixture("bpe-llama3"), pre="gpt-2").encode_files(folder, out)
    (folder / "c.txt").write_text("more")
    check_refused(f"the source {folder}/c.txt is new", tok, folder, out)
    (folder / "c.txt").unlink()
    stat = (folder / "a.txt").stat()
    os.utime(folder / "a.txt", ns=(stat.st_atime_ns, stat.st_mtime_ns + 1))
    check_refused(f"the source {folder}/a.txt was changed", tok, folder, out)
    with (folder / "a.txt").open("a") as file:
        file.write("!")
    check_refused(
        f"the source {folder}/a.txt had {stat.st_size} bytes, has {stat.st_size + 1}",
        tok,
        folder,
        out,
    )
    many = [folder / f"{i}.txt" for i in range(6)]
    for path in many:
        path.write_text("x")
    check_refused("(and 6 more)", tok, many, out)
    # resume=False always starts over.
    tok.encode_files(folder, out, resume=False)
    assert not list(tmp_path.glob("o*.partial")) and not list(tmp_path.glob("*.journal"))


@pytest.mark.parametrize("finished", [False, True])
@pytest.mark.parametrize("length", [1, 60])
def test_content_that_changed_under_the_same_size_and_time(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, finished: bool, length: int
) -> None:
    """Any changed byte in a small file is detected; in a large file, only changes in sampled blocks
    are."""
    path, out = tmp_path / "a.txt", tmp_path / "o"
    path.write_bytes(b"some text\n" * 1000 * length)
    if finished:
        tok.encode_files(path, out)
    else:
        with pytest.raises(Stop):
            tok.encode_files(path, out, progress=stop_after(8 if length == 1 else 30))
    status, data = path.stat(), path.read_bytes()
    for at in (0, len(data) - 1, *([5432] if length == 1 else [])):
        changed = bytearray(data)
        changed[at] = ord("!")
        path.write_bytes(changed)
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        check_refused("a.txt was changed", tok, path, out)
    path.write_bytes(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    tok.encode_files(f"{tmp_path}/./a.txt", out)  # a different spelling of the same source


def test_a_stricter_rule_may_be_relaxed(tok: ggtok.Tokenizer, tmp_path: Path, small: None) -> None:
    """A run with "raise" that stopped at a fault can be resumed with another rule; the reverse
    isn't allowed."""
    texts = [text.replace("\n", " ").encode() for text in documents(1, 100)]
    texts[90] = b"\xff"
    (tmp_path / "a.txt").write_bytes(b"\n".join(texts))
    with pytest.raises(ggtok.DocumentError):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "o", separator="\n")
    with pytest.raises(Stop):
        tok.encode_files(
            tmp_path / "a.txt",
            tmp_path / "o",
            separator="\n",
            errors="skip",
            progress=stop_after(3),
        )
    check_refused(
        'errors was "skip", is "raise"', tok, tmp_path / "a.txt", tmp_path / "o", separator="\n"
    )
    done = tok.encode_files(tmp_path / "a.txt", tmp_path / "o", separator="\n", errors="skip")
    assert done.resumed > 0 and done.skipped == 1
    tok.encode_files(tmp_path / "a.txt", tmp_path / "p", separator="\n", errors="skip")
    assert raw_ids(tmp_path / "o") == raw_ids(tmp_path / "p")


def test_an_output_of_someone_else(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("some text")
    (tmp_path / "o").write_text("precious")
    with pytest.raises(ggtok.InvalidValueError, match="exists, and has no manifest"):
        tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    assert (tmp_path / "o").read_text() == "precious"
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "o"]


def interrupted(tok: ggtok.Tokenizer, folder: Path) -> None:
    (folder / "a.txt").write_text(" ".join(documents(1, 100)))
    with pytest.raises(Stop):
        tok.encode_files(folder / "a.txt", folder / "o", progress=stop_after(40))


def test_data_that_is_not_what_the_journal_says(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None
) -> None:
    """A file that was changed or truncated before the last checkpoint is rejected. Data after the
    checkpoint, and an incomplete line in the journal, are ignored."""
    interrupted(tok, tmp_path)
    partial = tmp_path / "o.partial"
    data, then = partial.read_bytes(), kill.checkpointed(tmp_path / "o.journal")
    for changed in (data[: then - 1], data[: then - 1] + bytes([data[then - 1] ^ 1])):
        partial.write_bytes(changed)
        with pytest.raises(ggtok.FileError, match=r"o.partial: has changed since.*resume=False"):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    partial.write_bytes(data[:then] + b"nonsense")
    with (tmp_path / "o.journal").open("ab") as file:
        file.write(b'12345678 {"checkpoint": {"pla')
    tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    tok.encode_files(tmp_path / "a.txt", tmp_path / "p")
    assert (tmp_path / "o").read_bytes() == (tmp_path / "p").read_bytes()
    (tmp_path / "again").mkdir()
    interrupted(tok, tmp_path / "again")
    (tmp_path / "again" / "o.offsets.partial").unlink()
    with pytest.raises(FileNotFoundError, match=r"o.offsets.partial"):
        tok.encode_files(tmp_path / "again" / "a.txt", tmp_path / "again" / "o")


def test_ctrl_c_writes_a_checkpoint(tok: ggtok.Tokenizer, tmp_path: Path, small: None) -> None:
    """Without one, a run that is interrupted before 64 MB would begin again."""
    (tmp_path / "a.txt").write_text("|".join(documents(4, 300)))
    options: dict[str, Any] = {"separator": "|", "threads": 1}
    tok.encode_files(tmp_path / "a.txt", tmp_path / "whole", **options)
    n_batches = 0

    def progress(_: EncodeProgress) -> None:
        nonlocal n_batches
        n_batches += 1
        if n_batches == 12:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(run, "CHECKPOINT", 64 << 20)
        with pytest.raises(KeyboardInterrupt):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", progress=progress, **options)
        assert (tmp_path / "o.journal").read_bytes().count(b'"checkpoint"') == 1
        summary = tok.encode_files(tmp_path / "a.txt", tmp_path / "o", **options)
    assert 0 < summary.resumed < summary.ids
    for name in ("", ".offsets"):
        assert (tmp_path / f"o{name}").read_bytes() == (tmp_path / f"whole{name}").read_bytes()


def test_ctrl_c_after_a_failed_write_writes_no_checkpoint(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch that is written in part isn't counted."""
    (tmp_path / "a.txt").write_text("|".join(documents(4, 300)))
    options: dict[str, Any] = {"separator": "|", "threads": 1}
    tok.encode_files(tmp_path / "a.txt", tmp_path / "whole", **options)
    append, n_calls = partial_file.PartialFile.append, 0

    def fail(self: partial_file.PartialFile, data: Any) -> None:
        nonlocal n_calls
        n_calls += 1
        if n_calls == 9:
            raise KeyboardInterrupt
        append(self, data)

    monkeypatch.setattr(run, "CHECKPOINT", 64 << 20)
    with monkeypatch.context() as patched:
        patched.setattr(partial_file.PartialFile, "append", fail)
        with pytest.raises(KeyboardInterrupt):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", **options)
    assert not (tmp_path / "o.journal").exists()
    assert not tok.encode_files(tmp_path / "a.txt", tmp_path / "o", **options).resumed
    assert (tmp_path / "o").read_bytes() == (tmp_path / "whole").read_bytes()


@pytest.mark.parametrize("done", range(4))
def test_killed_while_renaming(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: int
) -> None:
    """The next run renames the remaining files."""
    (tmp_path / "a.txt").write_text("some text")
    expected = tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    files = files_of(tmp_path, "o")
    for path in tmp_path.glob("o*"):
        path.unlink()
    count, replace = 0, os.replace

    def stop(source: str, target: str) -> None:
        nonlocal count
        count += 1
        if count > done:
            raise KeyboardInterrupt
        replace(source, target)

    with monkeypatch.context() as patched:
        # Skips the clean-up, as a kill would.
        patched.setattr(run.id_formats, "clean", lambda out: None)
        patched.setattr(journal.Journal, "remove", lambda self: None)
        patched.setattr(journal.os, "replace", stop)
        if done < 3:
            with pytest.raises(KeyboardInterrupt):
                tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
        else:
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    assert tok.encode_files(tmp_path / "a.txt", tmp_path / "o") == expected
    assert files_of(tmp_path, "o") == files
    if not done:
        with pytest.raises(ggtok.FileError, match=r"is missing.*nothing"):
            partial_file.give_name(str(tmp_path / "nothing"))
        (tmp_path / "folder" / "x").mkdir(parents=True)
        (tmp_path / "folder.partial").touch()
        with pytest.raises(ggtok.FileError, match="folder"):
            partial_file.give_name(str(tmp_path / "folder"))


def test_two_runs_at_once(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    """A second run for the same output fails; a run for another output doesn't."""
    (tmp_path / "a.txt").write_text("some text")
    seen = []

    def progress(_: EncodeProgress) -> None:
        with pytest.raises(ggtok.FileError, match="another run is writing this output"):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
        seen.append(tok.encode_files(tmp_path / "a.txt", tmp_path / "p").ids)

    summary = tok.encode_files(tmp_path / "a.txt", tmp_path / "o", progress=progress)
    assert seen == [summary.ids]


def test_a_journal_that_vanishes_while_its_lock_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run that holds the lock finishes and removes the journal, so a new one is created.
    Without fcntl, there are no locks."""
    import fcntl

    path = str(tmp_path / "o.journal")
    flock, calls = fcntl.flock, []

    def removing(file: Any, how: int) -> None:
        flock(file, how)
        calls.append(1)
        if len(calls) == 1:
            os.unlink(path)

    monkeypatch.setattr(fcntl, "flock", removing)
    made = journal.Journal(path)
    assert len(calls) == 2 and os.path.exists(path)
    made.close()
    monkeypatch.setitem(sys.modules, "fcntl", None)
    unlocked = journal.Journal(path)
    unlocked.remove()
    unlocked.close()
    assert len(calls) == 2 and not os.path.exists(path)


class Full:
    """A file on a disk that becomes full after some bytes."""

    def __init__(self, file: Any, room: int) -> None:
        self.file, self.room = file, room

    def write(self, data: Any) -> int:
        if self.room <= 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        n = min(len(data), self.room)
        self.room -= n
        written: int = self.file.write(data[:n])
        return written

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)


def test_a_full_disk(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file; the run can be resumed once there is space again."""
    (tmp_path / "a.txt").write_text(" ".join(documents(1, 100)))
    with monkeypatch.context() as patched:
        opened = partial_file.os.fdopen

        def full(handle: int, mode: str, **options: Any) -> Any:
            file = opened(handle, mode, **options)
            return Full(file, 20_000) if mode == "r+b" else file

        patched.setattr(partial_file.os, "fdopen", full)
        with pytest.raises(OSError, match="No space left") as raised:
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
        assert isinstance(raised.value, ggtok.FileError)
        assert raised.value.filename.endswith("o.partial")
    assert tok.encode_files(tmp_path / "a.txt", tmp_path / "o").resumed > 0

    def fails(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    for module, name in ((partial_file.os, "fdatasync"), (journal.os, "fsync")):
        with monkeypatch.context() as patched:
            patched.setattr(module, name, fails)
            with pytest.raises(ggtok.FileError, match="Input/output error"):
                tok.encode_files(tmp_path / "a.txt", tmp_path / "o", resume=False)


def test_ctrl_c(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C stops the run, which can then be resumed."""
    tok = ggtok.load(fixture("bpe-llama3"))
    monkeypatch.setattr(run, "CHECKPOINT", 20_000)
    monkeypatch.setattr(run, "BYTES", 20_000)
    (tmp_path / "a.txt").write_text("|".join(documents(1, 500)))

    def progress(p: EncodeProgress) -> None:
        if p.bytes > 100_000:
            signal.raise_signal(signal.SIGINT)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            tok.encode_files(
                tmp_path / "a.txt", tmp_path / "o", separator="|", threads=1, progress=progress
            )
    finally:
        signal.signal(signal.SIGINT, before)
    assert (tmp_path / "o.journal").exists() and not (tmp_path / "o").exists()
    entries = [json.loads(line[9:]) for line in (tmp_path / "o.journal").open()]
    assert any("checkpoint" in entry for entry in entries)
