"""Training sources: files, which are read as by encode_files, and files that aren't text."""

from __future__ import annotations

import gzip
import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora.sources import Search
from ggtok.inspect.parity.texts import PROSE
from ggtok.vocabularies import corpus
from ggtok.vocabularies.contents import TrainingReport

LINES = ["one two\n", "one\n", "gr\u00fc\u00dfe\n"]
ROWS = [{"text": LINES[0], "body": "other"}, {"text": LINES[1]}, {"text": LINES[2]}]
EXPECTED = {"one": 2, " two": 1, "gr\u00fc\u00dfe": 1, "\n": 3}


def words(source: object, **options: Any) -> dict[str, int]:
    return {w.decode(): n for w, n in ggtok.count_words(source, pre="gpt-2", **options).items()}


def jsonl(rows: list[dict[str, str]] = ROWS) -> bytes:
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.txt", "".join(LINES).encode()),
        ("a.txt.gz", gzip.compress("".join(LINES).encode())),
        ("a.jsonl", jsonl()),
        ("a.ndjson.gz", gzip.compress(jsonl())),
        ("a.json.gz", gzip.compress(jsonl())),
    ],
    ids=["text", "text.gz", "jsonl", "ndjson.gz", "json.gz"],
)
@pytest.mark.parametrize("documents", ["lines", "whole"])
def test_files_are_read_by_their_names(
    name: str, data: bytes, documents: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(data)
    for source in (tmp_path / name, tmp_path, tmp_path / "a.*", [tmp_path / name]):
        assert words(source, documents=documents) == EXPECTED


def test_the_field_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(jsonl())
    assert words(path, field="body", errors="skip") == {"other": 1}
    with pytest.raises(ggtok.DocumentError, match=r"a\.jsonl: .*the field 'body' is missing"):
        words(path, field="body")
    both = json.dumps({"a": {"b": "one"}, "c": "two"}).encode()
    (tmp_path / "b.jsonl").write_bytes(both)
    assert words(tmp_path / "b.jsonl", field=["a.b", "c"]) == words("one\n\ntwo")
    held = ggtok.train(path, 270, held_out=path, errors="skip", field="body").report
    assert isinstance(held, TrainingReport) and held.held_out_bytes == len("other")


def test_the_kind_overrides_names(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(jsonl())
    assert words(tmp_path / "a.txt", kind="jsonl") == EXPECTED
    (tmp_path / "a.jsonl").write_bytes(b"one\n")
    assert words(tmp_path / "a.jsonl", kind="text") == {"one": 1, "\n": 1}
    with pytest.raises(ggtok.InvalidValueError, match="kind must be one of"):
        words(tmp_path, kind="csv")


def test_tables(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    import pyarrow.feather
    import pyarrow.parquet

    table = pa.table({"body": LINES})
    pyarrow.parquet.write_table(table, tmp_path / "a.parquet")
    pyarrow.feather.write_feather(table, str(tmp_path / "a.feather"))
    for name in ("a.parquet", "a.feather"):
        assert words(tmp_path / name, field="body") == EXPECTED


def test_a_folder_has_no_hidden_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "c.txt").write_text("".join(LINES), "utf-8")
    (tmp_path / ".hidden").write_text("hidden")
    assert words(tmp_path) == EXPECTED
    (tmp_path / "b" / "c.txt").unlink()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ggtok.InvalidValueError, match="no sources"):
        words(Path("."))


@pytest.mark.parametrize("documents", ["lines", "whole"])
@pytest.mark.parametrize(
    "data",
    [gzip.compress(b"text"), b"MZ\0\0\0", b"\x89PNG\r\n\0", "text\n".encode("utf-16")],
    ids=["gzip", "program", "image", "utf-16"],
)
def test_no_text_is_an_error(data: bytes, documents: str, tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(data)
    what = "(a binary file|.*not valid UTF-8|UTF-16)"
    with pytest.raises(ggtok.GGTokError, match=rf"model\.bin: {what}"):
        words(path, documents=documents)
    with pytest.raises(ggtok.GGTokError, match=r"model\.bin"):
        ggtok.train("some text", 260, held_out=path)


def test_invalid_utf8(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"good\nbad \xff\n\nlast")
    with pytest.raises(ggtok.DocumentError, match=r"a\.txt: byte 9: not valid UTF-8") as e:
        words(path)
    assert (e.value.path, e.value.kind) == (str(path), "invalid_utf8")
    assert words(path, errors="replace") == words("good\nbad \ufffd\n\nlast")
    assert words(path, errors="skip") == words("good\n\nlast")
    assert words(path, errors="skip", documents="whole") == {}
    with pytest.raises(ggtok.InvalidValueError, match="errors must be one of"):
        words(path, errors="ignore")
    with pytest.raises(ggtok.InvalidTypeError, match="field must be str or a list of str, not int"):
        words(path, field=3)
    # A character that is split between two blocks is not an error.
    monkeypatch.setattr("ggtok.corpora.streams.BLOCK", 2)
    path.write_text("\u00fc\u00fca\u00fc\n\u00fc", "utf-8")
    assert words(path) == words("\u00fc\u00fca\u00fc\n\u00fc")
    assert words(path, documents="whole") == words(path)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
def test_a_pipe_is_read_once(tmp_path: Path) -> None:
    pipe = str(tmp_path / "pipe")
    os.mkfifo(pipe)
    writer = threading.Thread(target=Path(pipe).write_bytes, args=("".join(LINES).encode(),))
    writer.start()
    assert words(Path(pipe)) == EXPECTED
    writer.join()
    writer = threading.Thread(target=Path(pipe).write_bytes, args=(jsonl(),))
    writer.start()
    assert words(Path(pipe), kind="jsonl") == EXPECTED
    writer.join()
    writer = threading.Thread(target=Path(pipe).write_bytes, args=(b"{}\n" + jsonl(),))
    writer.start()
    assert words(Path(pipe), kind="jsonl", errors="skip") == EXPECTED
    writer.join()
    with pytest.raises(ggtok.InvalidValueError, match="pipe: a parquet file can only be read by"):
        words(Path(pipe), kind="parquet")
    assert corpus.files_of(pipe, Search()) == [pipe]


@pytest.mark.parametrize("options", [{"model": "spm"}, {"pre": "gemma4"}, {"pre": "gpt-2"}])
def test_the_report_counts_the_texts_own_bytes(options: dict[str, Any]) -> None:
    """In some vocabularies the space mark has three bytes, but it counts as a space with one
    byte."""
    text = "\n".join(line for line in "\n".join(PROSE).split("\n") if line) + "\n"
    report = ggtok.train(text, 1500, **options).report
    assert isinstance(report, TrainingReport)
    assert report.text_bytes == len(text.encode())
