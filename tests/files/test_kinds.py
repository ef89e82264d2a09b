"""The contents of a .json file decide whether it is JSON lines or text; ``kind=`` overrides
this."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora import jsonl as jsonl_reader
from ggtok.corpora.documents import Fields
from ggtok.corpora.sources import Search
from tests.files.corpus import ids_of, jsonl, raw_ids

RECORD = {"text": "a", "url": "b"}
LINE = json.dumps(RECORD).encode()
PRETTY = json.dumps(RECORD, indent=2).encode()


def kind_of(path: Path, field: str = "text") -> str:
    (source,) = jsonl_reader.decide_json_kinds(Search().find(path), Fields([field]))
    return source.kind


ROWS: list[tuple[bytes, str]] = [
    (LINE, "jsonl"),
    (LINE + b"\n", "jsonl"),
    (b"\xef\xbb\xbf" + LINE + b"\r\n" + LINE, "jsonl"),
    (b"\n \n" + LINE + b"\n\n" + LINE, "jsonl"),
    (b'{"body": "a"}\n{"body": "b"}\n', "jsonl"),  # reading fails later: a field is missing
    (b'{"text": "cut\n' + LINE, "jsonl"),  # reading fails later: a line is malformed
    (b'{"body": "a"}\n', "text"),
    (b'{"text": 3}', "text"),
    (PRETTY, "text"),
    (b"[" + LINE[:-1] + b"\n", "text"),
    (b'[1, 2]\n{"text": "a"}', "text"),
    (b"", "text"),
    (b"{", "text"),
    (b"{\n", "text"),
    (b"no JSON\n" + LINE, "text"),
    (b'["text"]', "text"),
    (b'[{"body": "a"}]', "text"),
    (b"[" * 5000, "text"),
    (b"\xff\xfe", "text"),
]


@pytest.mark.parametrize(("data", "kind"), ROWS)
@pytest.mark.parametrize("name", ["a.json", "a.JSON", "a.json.gz"])
def test_json(tmp_path: Path, data: bytes, kind: str, name: str) -> None:
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert kind_of(tmp_path / name) == kind


def test_other_fields(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"m": {"t": "a"}}')
    assert kind_of(tmp_path / "a.json") == "text"
    assert kind_of(tmp_path / "a.json", "m.t") == "jsonl"


@pytest.mark.parametrize("data", [b"[" + LINE + b"]", b"[\n  " + PRETTY + b",\n" + PRETTY + b"]"])
def test_arrays_of_records_are_refused(tok: ggtok.Tokenizer, tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.json").write_bytes(data)
    with pytest.raises(ggtok.InvalidValueError, match=r"a\.json: an array of records.*kind='text'"):
        tok.encode_files(tmp_path, tmp_path / "o")
    tok.encode_files(tmp_path, tmp_path / "o", kind="text")
    assert raw_ids(tmp_path / "o") == ids_of(tok, [data], tok.eos_id)


def test_only_the_beginning_is_examined(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, small: None
) -> None:
    """If the first line is an object and doesn't end in the part that is examined, the caller must
    pass `kind`."""
    monkeypatch.setattr(jsonl_reader, "LOOK", 1000)
    path = tmp_path / "a.json"
    path.write_bytes(LINE + b"\n" + LINE + b"\xff" * 10_000)
    assert kind_of(path) == "jsonl"
    path.write_bytes(b'{"text": "' + b"a" * 2000 + b'"}')
    with pytest.raises(
        ggtok.InvalidValueError, match=r"pass kind='jsonl' or kind='text' \(--kind\)"
    ):
        kind_of(path)
    path.write_bytes(b"[" + b" " * 2000 + LINE)
    assert kind_of(path) == "text"


@pytest.mark.parametrize("name", ["a.json", "a.json.gz"])
def test_documents_of_json(tok: ggtok.Tokenizer, tmp_path: Path, name: str) -> None:
    data = jsonl(["one", "two"])
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    tok.encode_files(tmp_path, tmp_path / "o")
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["one", "two"], tok.eos_id)


@pytest.mark.parametrize("name", ["a.txt", "a.parquet", "a.jsonl", "a.json", "a"])
def test_kind_overrides_names(tok: ggtok.Tokenizer, tmp_path: Path, name: str) -> None:
    data = jsonl(["one", "two"])
    (tmp_path / name).write_bytes(data)
    for kind, texts in (("text", [data]), ("jsonl", [b"one", b"two"])):
        options: Any = {"kind": kind, "resume": False}
        tok.encode_files(tmp_path / name, tmp_path / "o", **options)
        assert raw_ids(tmp_path / "o") == ids_of(tok, texts, tok.eos_id)
        manifest = json.loads((tmp_path / "o.manifest.json").read_text())
        assert manifest["options"]["kind"] == kind
    with pytest.raises(ggtok.InvalidValueError, match='kind was "jsonl", is "text"'):
        tok.encode_files(tmp_path / name, tmp_path / "o", kind="text")
    with pytest.raises(ggtok.InvalidValueError, match="kind must be one of text, jsonl, parquet"):
        tok.encode_files(tmp_path / name, tmp_path / "o", kind="csv")  # type: ignore[arg-type]


@pytest.mark.full
def test_kind_of_tables(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(pa.table({"text": ["one"]}), tmp_path / "a.data")
    tok.encode_files(tmp_path / "a.data", tmp_path / "o", kind="parquet")
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["one"], tok.eos_id)


@pytest.mark.parametrize("separator", [None, "|", "|" * 50])
@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz"])
@pytest.mark.parametrize("length", [0, 1, 100, 5000])
def test_a_byte_order_mark_is_dropped(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, separator: Any, name: str, length: int
) -> None:
    """A BOM is dropped only at the beginning of a file, in short and long documents and in resumed
    runs."""
    text = "\ufeff|" + "word \u00fc " * length if length else ""
    data = ("\ufeff" + text).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    expected = text.split(separator) if separator == "|" else [text] if text else []
    expected = expected[: -1 if expected and not expected[-1] else None]
    seen = []

    def stop(progress: ggtok.EncodeProgress) -> None:
        seen.append(progress)
        if len(seen) in (3, 9):
            raise KeyboardInterrupt

    for _ in range(3):
        try:
            summary = tok.encode_files(
                tmp_path / name, tmp_path / "o", separator=separator, progress=stop
            )
        except KeyboardInterrupt:
            continue
    assert raw_ids(tmp_path / "o") == ids_of(tok, expected, tok.eos_id)
    assert summary.bytes == (len(data) if length else 0)


@pytest.mark.parametrize("errors", ["raise", "replace", "skip"])
@pytest.mark.parametrize("separator", [None, "\n"])
def test_empty_files_have_no_document(
    tok: ggtok.Tokenizer, tmp_path: Path, errors: Any, separator: Any
) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in ("_SUCCESS", "a.txt", "b.jsonl", "c.parquet", "d.arrow", "e.json", "f.gz"):
        (folder / name).write_bytes(gzip.compress(b"") if name.endswith("gz") else b"")
    (folder / "g.txt").write_text("text")
    summary = tok.encode_files(folder, tmp_path / "o", errors=errors, separator=separator)
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["text"], tok.eos_id)
    assert (summary.sources, summary.documents, summary.empty) == (8, 1, 0)
    rows = json.loads((tmp_path / "o.manifest.json").read_text())["sources"]
    assert [row["documents"] for row in rows] == [0] * 7 + [1]


def test_training_drops_byte_order_marks(tmp_path: Path) -> None:
    (tmp_path / "_SUCCESS").write_bytes(b"")
    (tmp_path / "a.parquet").write_bytes(b"")
    (tmp_path / "a.txt").write_text("\ufeffone two")
    words = ggtok.count_words(tmp_path, pre="gpt-2").items()
    assert {word.decode() for word, _ in words} == {"one", " two"}
