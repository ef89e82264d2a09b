"""Reading can continue from any position. Also tests details that larger tests reach only by
chance."""

from __future__ import annotations

import errno
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok import distributed
from ggtok.base import concurrency, files
from ggtok.base.files import sync_folder
from ggtok.corpora import encode_documents, jsonl, sources, streams, tables, text
from ggtok.corpora.documents import DocumentPiece, Faults, Fields, Pieces, SourcePosition
from ggtok.corpora.sources import SourceFile
from ggtok.corpora.streams import Stream
from ggtok.corpora.summary import RunCounts
from ggtok.native.contexts import Blocks
from tests.files.corpus import compressed, documents, ids_of, raw_ids
from tests.files.corpus import jsonl as lines
from tests.support import samples
from tests.support.full import Lazy, full
from tests.support.samples import times

pa: Any = Lazy("pyarrow")
feather: Any = Lazy("pyarrow.feather")
parquet: Any = Lazy("pyarrow.parquet")

Read = Callable[[SourceFile, SourcePosition], Pieces]
TEXT = Fields.checked(None)


def source(path: Path) -> SourceFile:
    (found,) = sources.Search().find(path)
    return found


def documents_and_faults(pieces: list[DocumentPiece]) -> tuple[list[bytes], RunCounts]:
    """Returns the documents that aren't dropped, regardless of how they are divided into pieces,
    and the counts of faults."""
    found: list[bytes] = []
    text: bytes | None = b""
    faults = RunCounts()
    for piece in pieces:
        faults.add(piece.faults or RunCounts())
        found += piece.many
        if piece.many:
            continue
        text = None if piece.text is None or text is None else text + piece.text
        if piece.ends:
            found += [] if text is None else [text]
            text = b""
    assert text == b""
    return found, faults


def check_positions(read: Read, found: SourceFile) -> None:
    """Checks that reading from each piece's `next` returns the remaining documents."""
    pieces = list(read(found, SourcePosition(0)))
    assert len(pieces) > 8
    for n in range(len(pieces) - 1):
        before, rest = pieces[: n + 1], list(read(found, pieces[n].next))
        # If `before` ends inside a document, the first piece of `rest` continues that document.
        assert rest[0].begins == before[-1].ends
        assert documents_and_faults([*before, *rest]) == documents_and_faults(pieces), n
        assert sum(piece.size for piece in [*before, *rest]) == sum(p.size for p in pieces)


@pytest.mark.parametrize("end", [".txt", ".txt.gz", full(".txt.zst")])
@pytest.mark.parametrize("errors", ["replace", "skip"])
def test_text(tok: ggtok.Tokenizer, tmp_path: Path, small: None, end: str, errors: str) -> None:
    r = random.Random(1)
    texts = [each.encode().replace(b"|", b"") for each in documents(1, 30, 900)]
    for i in r.sample(range(30), 6):
        at = r.randrange(len(texts[i]))
        texts[i] = texts[i][:at] + b"\xff\xc3" + texts[i][at:]
    path = compressed(tmp_path / f"a{end}", b"||".join(texts))
    options = text.TextOptions(b"||", errors, False, Blocks(tok._loaded), 0)
    check_positions(
        lambda found, position: text.read_text_documents(found, position, options), source(path)
    )


@pytest.mark.parametrize("separator", [b"\n", b"--"])
@pytest.mark.parametrize("errors", ["replace", "skip"])
@pytest.mark.parametrize("invalid", [(), (b"b\xff", b"\xc3")])
def test_faults_in_groups(
    tmp_path: Path, tok: ggtok.Tokenizer, separator: bytes, errors: str, invalid: tuple[bytes, ...]
) -> None:
    """Faulty documents in a group are treated as if each of them were alone."""
    r = random.Random(2)
    texts = r.choices([b"", b"a", "\u00e4".encode(), *invalid], k=times(70_000, of=99_999))
    path = tmp_path / "a.txt"
    path.write_bytes(separator.join([*texts, b"end"]))
    options = text.TextOptions(separator, errors, False, Blocks(tok._loaded), 0)
    found, faults = documents_and_faults(
        list(text.read_text_documents(source(path), SourcePosition(0), options))
    )
    alone = [Faults(errors, "").document(each, 0, SourcePosition(0), 0, "") for each in texts]
    assert found == [*(piece.text for piece in alone if piece.text is not None), b"end"]
    expected = RunCounts()
    for piece in alone:
        expected.add(piece.faults or RunCounts())
    assert faults == expected
    assert faults.empty > 1000
    assert bool(faults.invalid_utf8) == bool(invalid)


def test_records(tmp_path: Path, small: None) -> None:
    texts = documents(1, 60)
    for name in ("a.jsonl", *(["a.jsonl.zst"] if samples.FULL else [])):
        path = compressed(tmp_path / name, lines(texts))
        check_positions(
            lambda found, position: jsonl.read_jsonl(found, position, TEXT, "raise"), source(path)
        )


@pytest.mark.full
def test_tables(tmp_path: Path, small: None) -> None:
    table = pa.table({"text": documents(1, 60)})
    parquet.write_table(table, tmp_path / "a.parquet", row_group_size=7)
    feather.write_feather(table, str(tmp_path / "a.feather"), chunksize=7)
    for name in ("a.parquet", "a.feather"):
        found = source(tmp_path / name)
        check_positions(
            lambda found, position: tables.read_table(found, position, TEXT, "raise"), found
        )


def test_seek(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In compressed files, seek moves to any offset, and raises an error beyond the end."""
    monkeypatch.setattr(streams, "BLOCK", 10)
    data = bytes(range(200))
    for name in ("a.gz", "a", *(["a.zst"] if samples.FULL else [])):
        found = source(compressed(tmp_path / name, data))
        for offset in (0, 1, 9, 10, 99, 101, 200):
            with Stream(found) as stream:
                stream.seek(offset)
                assert b"".join(stream.blocks()) == data[offset:]
        if name != "a":
            with Stream(found) as stream, pytest.raises(ggtok.FileError, match="is shorter than"):
                stream.seek(201)


def test_reading_errors(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """System errors while reading contain the file's name."""
    (tmp_path / "in" / "below").mkdir(parents=True)
    path = tmp_path / "in" / "below" / "a.txt"
    path.write_text("some text")
    with monkeypatch.context() as patched:  # reads return fewer bytes than requested
        patched.setattr(files, "_BLOCK", 2)
        tok.encode_files(f"{tmp_path}/in/*", tmp_path / "o")
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["some text"], tok.eos_id)

    def fails(*_: object) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(text, "read_up_to", fails)
        with pytest.raises(ggtok.FileError, match="Input/output error") as raised:
            tok.encode_files(path, tmp_path / "p")
        assert raised.value.filename == str(path)
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", fails)
        with pytest.raises(ggtok.FileError, match="Input/output error"):
            tok.encode_files(tmp_path / "in", tmp_path / "p")
    sync_folder(str(tmp_path / "nowhere" / "x"))  # no error, as folders can't be opened everywhere


def test_encoding_errors(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors on any thread are raised in the caller's thread."""
    (tmp_path / "a.txt").write_text(" ".join(documents(1, 50)))  # long enough to be split
    (tmp_path / "b.txt").write_text("short")

    def fails(*_: object) -> Any:
        raise MemoryError

    with monkeypatch.context() as patched:
        patched.setattr(tok._loaded, "encode_batch", fails)
        with pytest.raises(ggtok.OutOfMemoryError):
            tok.encode_files(tmp_path / "b.txt", tmp_path / "o")
    with monkeypatch.context() as patched:
        patched.setattr(encode_documents.Encoder, "_part", fails)
        with pytest.raises(MemoryError):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", threads=2)

    part = encode_documents.Encoder._part
    signals = iter([signal.SIGINT])

    def interrupts(*args: Any) -> Any:
        if number := next(signals, None):
            signal.raise_signal(number)
        return part(*args)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with monkeypatch.context() as patched:
        patched.setattr(encode_documents.Encoder, "_part", interrupts)
        with pytest.raises(KeyboardInterrupt):
            tok.encode_files(tmp_path / "a.txt", tmp_path / "o", threads=2)
    signal.signal(signal.SIGINT, before)
    assert sorted(os.listdir(tmp_path)) == ["a.txt", "b.txt"]


def test_errors_in_the_writing_thread() -> None:
    """An error in the writing thread is raised at the next item, or at the end."""

    def do(item: int) -> None:
        if item == 3:
            raise RuntimeError("third")
        seen.append(item)

    for count in (3, 9):
        seen: list[int] = []

        def run(count: int = count) -> None:
            with concurrency.BackgroundWriter(do) as behind:
                for item in range(1, count + 1):
                    behind.put(item)

        with pytest.raises(RuntimeError, match="third"):
            run()
        assert seen == [1, 2]


@pytest.mark.full
def test_large_shards(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A shard is encoded in several batches."""
    texts = documents(1, 50)
    made = []
    for size in (1000, 1 << 30):
        monkeypatch.setattr(distributed, "BYTES", size)
        shards = distributed.Shards(tok, tmp_path / str(size))
        made.append(shards.job([pa.table({"text": texts})]))
    assert made[0] == made[1]
    assert raw_ids(tmp_path / "1000" / made[0]["shard"]) == ids_of(tok, texts, tok.eos_id)


def test_lines_without_records(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"\n \n\r\n")
    summary = tok.encode_files(tmp_path / "a.jsonl", tmp_path / "o")
    assert (summary.documents, summary.bytes) == (0, 5) and raw_ids(tmp_path / "o") == []


def test_a_slow_iterable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Prefetching waits for a slow iterable."""
    monkeypatch.setattr(concurrency, "_POLL", 0.001)

    def slow() -> Iterator[int]:
        for item in range(2):
            time.sleep(0.01)
            yield item

    assert list(concurrency.ahead(slow())) == [0, 1]
