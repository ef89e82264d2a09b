"""For each kind of source, each document gets the same ids as from ``encode``."""

from __future__ import annotations

import json
import os
import random
import zlib
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora import jsonl as jsonl_reader
from tests.files.corpus import compressed, documents, ids_of, jsonl, raw_ids
from tests.support import samples
from tests.support.full import Lazy, full

pa: Any = Lazy("pyarrow")
feather: Any = Lazy("pyarrow.feather")
parquet_files: Any = Lazy("pyarrow.parquet")

TEXTS = documents(1, 60)
PLAIN = [text.replace("\n", " ") for text in TEXTS]


@pytest.fixture
def expected(tok: ggtok.Tokenizer) -> list[list[int]]:
    return ids_of(tok, TEXTS, tok.eos_id)


@pytest.mark.parametrize("end", ["", ".gz", ".bz2", ".xz", full(".zst")])
@pytest.mark.parametrize("separator", ["\n", "<|endoftext|>", b"aab", "\0"])
def test_text_by_separator(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, end: str, separator: str | bytes
) -> None:
    data = separator if isinstance(separator, bytes) else separator.encode()
    texts = [text.replace("aab", "") for text in PLAIN]
    path = compressed(tmp_path / f"a.txt{end}", data.join(text.encode() for text in texts) + data)
    summary = tok.encode_files(path, tmp_path / "o", separator=separator)
    assert raw_ids(tmp_path / "o") == ids_of(tok, texts, tok.eos_id)
    assert summary.documents == len(texts) and summary.sources == 1
    assert summary.bytes == sum(len(text.encode()) + len(data) for text in texts)
    assert summary.ids == sum(map(len, raw_ids(tmp_path / "o")))


@pytest.mark.parametrize("end", ["", ".gz", ".bz2", ".xz", full(".zst")])
def test_whole_files(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, end: str, expected: list[list[int]]
) -> None:
    """Each file is a document, and one of them is long. Files from folders and globs are sorted,
    and hidden files are ignored."""
    folder = tmp_path / "in"
    (folder / "below").mkdir(parents=True)
    for i, text in enumerate(TEXTS):
        name = f"{'below/' if i >= 30 else ''}{i:03}.txt{end}"
        compressed(folder / name, text.encode())
    (folder / ".hidden").write_text("no")
    (folder / ".git").mkdir()
    (folder / ".git" / "config").write_text("no")
    (folder / "dangling").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    with pytest.warns(ggtok.VocabWarning, match="dangling: a dangling link is skipped"):
        tok.encode_files(folder, folder / "o")
    # A folder's own files come before those in its subfolders.
    assert raw_ids(folder / "o") == expected
    tok.encode_files(
        [f"{folder}/**/03*", f"{folder}/0*.txt{end}", str(folder / "below")], tmp_path / "p"
    )
    glob = [*range(30, 40), *range(30), *range(40, 60)]
    assert raw_ids(tmp_path / "p") == [expected[i] for i in glob]
    # Outputs of earlier runs aren't sources.
    (folder / "dangling").unlink()
    again = tok.encode_files(folder, folder / "o", resume=False)
    assert again.sources == 60


@pytest.mark.parametrize("end", [".jsonl", ".ndjson.gz", full(".jsonl.zst")])
@pytest.mark.parametrize("parser", ["orjson", "msgspec", "json"])
def test_jsonl(
    tok: ggtok.Tokenizer,
    tmp_path: Path,
    small: None,
    expected: list[list[int]],
    end: str,
    parser: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    use(parser, monkeypatch)
    data = b"\xef\xbb\xbf" + jsonl(TEXTS, "content").replace(b"\n", b"\n  \n\n", 5)
    path = compressed(tmp_path / f"a{end}", data[:-1])  # without a newline after the last line
    summary = tok.encode_files(path, tmp_path / "o", field="content")
    assert raw_ids(tmp_path / "o") == expected
    assert summary.bytes == len(data[:-1])


def use(parser: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulates that this parser is the only one installed."""
    for other in {"orjson": [], "msgspec": ["orjson"], "json": ["orjson", "msgspec"]}[parser]:
        monkeypatch.setitem(__import__("sys").modules, other, None)
    jsonl_reader._parser.cache_clear()
    monkeypatch.setattr(jsonl_reader, "_parser", jsonl_reader._parser.__wrapped__)


NESTED = [{"meta": {"text": t, "n": {"t": t[::-1]}}, "title": t[:9], "a.b": t} for t in TEXTS]
FIELDS = [
    ("meta.text", TEXTS),
    (["meta.text"], TEXTS),
    ("a.b", TEXTS),
    (["title", "meta.n.t"], [f"{t[:9]}\n\n{t[::-1]}" for t in TEXTS]),
    (["title", "title", "a.b"], [f"{t[:9]}\n\n{t[:9]}\n\n{t}" for t in TEXTS]),
]


@pytest.mark.parametrize(("field", "texts"), FIELDS)
def test_nested_and_several_fields(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, field: Any, texts: list[str]
) -> None:
    """A field whose name contains dots takes precedence over a path; several fields are joined by
    blank lines."""
    data = "".join(json.dumps(record) + "\n" for record in NESTED)
    (tmp_path / "a.jsonl").write_text(data)
    tok.encode_files(tmp_path / "a.jsonl", tmp_path / "o", field=field)
    assert raw_ids(tmp_path / "o") == ids_of(tok, texts, tok.eos_id)
    manifest = json.loads((tmp_path / "o.manifest.json").read_text())
    assert manifest["options"]["field"] == (field[0] if len(field) == 1 else field)


@pytest.mark.full
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.feather"])
@pytest.mark.parametrize(("field", "texts"), FIELDS)
def test_nested_and_several_columns(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, name: str, field: Any, texts: list[str]
) -> None:
    WRITERS[name](pa.Table.from_pylist(NESTED), tmp_path / name)
    tok.encode_files(tmp_path / name, tmp_path / "o", field=field)
    assert raw_ids(tmp_path / "o") == ids_of(tok, texts, tok.eos_id)


@pytest.mark.full
def test_nested_nulls(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    """The field, its struct, or one of several fields is null."""
    rows = [{"m": {"t": "a"}, "u": "x"}, {"m": {"t": None}, "u": "x"}, {"m": None, "u": "x"}]
    rows.append({"m": {"t": "b"}, "u": None})
    for name in ("a.parquet", "a.arrow"):
        WRITERS[name](pa.Table.from_pylist(rows), tmp_path / name)
        options: Any = {"errors": "skip", "resume": False}
        tok.encode_files(tmp_path / name, tmp_path / "o", field="m.t", **options)
        assert raw_ids(tmp_path / "o") == ids_of(tok, ["a", "b"], tok.eos_id)
        summary = tok.encode_files(tmp_path / name, tmp_path / "o", field=["u", "m.t"], **options)
        assert raw_ids(tmp_path / "o") == ids_of(tok, ["x\n\na"], tok.eos_id)
        assert summary.missing == 3
        for field in ("m.x", "u.t", "m", "x.t"):
            with pytest.raises((ggtok.InvalidValueError, ggtok.InvalidTypeError)):
                tok.encode_files(tmp_path / name, tmp_path / "p", field=field)


@pytest.mark.parametrize(
    ("line", "field", "what"),
    [
        ({"m": {"u": "a"}}, "m.t", "the field 'm.t' is missing"),
        ({"m": [{"t": "a"}]}, "m.t", "the field 'm.t' is missing"),
        ({"m": "t"}, "m.t", "the field 'm.t' is missing"),
        ({"m": {"t": 3}}, "m.t", "the field 'm.t' is not a string"),
        ({"m.t": None, "m": {"t": "a"}}, "m.t", "the field 'm.t' is not a string"),
        ({"a": "x", "b": None}, ["a", "b"], "the field 'b' is not a string"),
        ({"a": "\ud800", "b": "x"}, ["a", "b"], "the field 'a' and 'b' has a lone surrogate"),
    ],
)
def test_faulty_nested_fields(
    tok: ggtok.Tokenizer, tmp_path: Path, line: Any, field: Any, what: str
) -> None:
    (tmp_path / "a.jsonl").write_text(json.dumps(line))
    with pytest.raises(ggtok.DocumentError, match=what):
        tok.encode_files(tmp_path / "a.jsonl", tmp_path / "o", field=field)


LINES = [
    b'{"text": "a"}',
    b'{"text": "a", "text": "b"}',
    b'{"text": "\\ud800"}',
    b'{"text": "\\ud83d\\ude00"}',
    b'{"text": "a\xff"}',
    b'{"x": "\xff", "text": "a"}',
    b'{"text": "\xed\xa0\x80"}',
    b'{"text": 3}',
    b'{"text": null}',
    b"{}",
    b"[]",
    b'"text"',
    b"3",
    b"nonsense",
    b'{"text": "a"',
    b'{"text": "a"} x',
    b'{"text": "a", "n": NaN}',
    b'{"text": "a", "n": 1e999}',
    b'{"text": "a", "n": 123456789012345678901234567890}',
    b'{"text": "a\tb"}',
    b'{"text": "a\\u0000b"}',
    b"{'text': 'a'}",
    b'{"text": ""}',
    b'{"text": "a", "n": 01}',
    b'{"\\u0074ext": "a"}',
    b'{"text": "a",}',
    b"[" * 3000 + b"]" * 3000,
    b'{"text": "a", "n": ' + b"[" * 3000 + b"]" * 3000 + b"}",
    b'\xef\xbb\xbf{"text": "a"}',
    b'{"text": "a"}\r',
    b"\x0c",
]


def test_jsonl_parsers_agree(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No line's result depends on which parser is installed."""
    (tmp_path / "a.jsonl").write_bytes(b"{}\n" + b"\n".join(LINES))
    seen = {}
    for parser in ("orjson", "msgspec", "json"):
        with monkeypatch.context() as patched:
            use(parser, patched)
            for errors in ("replace", "skip"):
                out = tmp_path / f"{parser}-{errors}"
                summary = tok.encode_files(tmp_path / "a.jsonl", out, errors=errors)
                seen[parser, errors] = summary.as_dict() | {"files": 0, "seconds": 0}, raw_ids(out)
    for errors in ("replace", "skip"):
        assert seen["orjson", errors] == seen["json", errors]
        assert seen["msgspec", errors] == seen["json", errors]
    counts, ids = seen["json", "skip"]
    assert (counts["invalid_utf8"], counts["empty"], counts["missing"]) == (4, 1, 4)
    kept = [b"a", b"b", "\U0001f600".encode(), *[b"a"] * 3, b"a\0b", *[b"a"] * 2]
    assert ids == ids_of(tok, kept, tok.eos_id)
    assert counts["skipped"] == len(LINES) - len(kept)  # the added {} makes up for the blank line


def parquet(table: pa.Table, path: Path) -> None:
    parquet_files.write_table(table, path, row_group_size=7, compression="zstd")


def arrow_file(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


def arrow_stream(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_stream(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)


WRITERS = {
    "a.parquet": parquet,
    "a.arrow": arrow_file,
    "b.ipc": arrow_stream,
    "a.feather": lambda table, path: feather.write_feather(table, path, compression="lz4"),
}


@pytest.mark.full
@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize("type", ["string", "large_string", "binary", "string_view", "dictionary"])
def test_tables(
    tok: ggtok.Tokenizer,
    tmp_path: Path,
    small: None,
    expected: list[list[int]],
    name: str,
    type: str,
) -> None:
    kind = pa.dictionary(pa.int32(), pa.string()) if type == "dictionary" else getattr(pa, type)()
    column = pa.array(TEXTS, pa.string()).cast(kind)
    table = pa.table({"n": pa.array(range(60)), "text": column, "x": pa.array(TEXTS)})
    WRITERS[name](table, tmp_path / name)
    summary = tok.encode_files(tmp_path / name, tmp_path / "o")
    assert raw_ids(tmp_path / "o") == expected
    assert summary.bytes == sum(len(text.encode()) for text in TEXTS)


@pytest.mark.full
def test_tables_with_nulls(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    parquet(pa.table({"t": pa.array(["a", None, ""])}), tmp_path / "a.parquet")
    arrow_file(pa.table({"t": pa.nulls(2)}), tmp_path / "b.arrow")
    summary = tok.encode_files(tmp_path, tmp_path / "o", field="t", errors="skip")
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["a"], tok.eos_id)
    assert (summary.missing, summary.empty, summary.skipped) == (3, 1, 4)
    with pytest.raises(ggtok.DocumentError, match=r"a.parquet: row 1: the field 't' is null"):
        tok.encode_files(tmp_path, tmp_path / "p", field="t")


@pytest.mark.parametrize("errors", ["raise", "replace", "skip"])
@pytest.mark.parametrize("end", ["", ".gz"])
def test_faulty_documents(
    tok: ggtok.Tokenizer, tmp_path: Path, small: None, errors: str, end: str
) -> None:
    """Random short and long documents have faults at random positions. U+FFFD replaces the same
    bytes as in Python's decoder."""
    r = random.Random(3)
    bad = [b"\xff", b"\xc3", b"\xe2\x82", b"\xed\xa0\x80", b"\xf0\x9f\x98"]
    texts = [text.encode().replace(b"|", b"") for text in documents(4, 80, 900)]
    for i in r.sample(range(80), 25):
        for _ in range(r.randrange(1, 4)):
            at = r.randrange(len(texts[i]) + 1)
            texts[i] = texts[i][:at] + r.choice(bad) + texts[i][at:]
    for i in r.sample(range(79), 8):
        texts[i] = b""
    valid = [text.decode("utf-8", "replace").encode() == text for text in texts]
    path = compressed(tmp_path / f"a.txt{end}", b"||".join(texts))
    out = tmp_path / "o"
    if errors == "raise":
        with pytest.raises(ggtok.DocumentError, match="at byte") as raised:
            tok.encode_files(path, out, separator="||")
        first = next(i for i, text in enumerate(texts) if not text or not valid[i])
        assert raised.value.kind == ("invalid_utf8" if texts[first] else "empty")
        assert f"byte {len(b'||'.join(texts[:first])) + 2 * bool(first)}:" in str(raised.value)
        assert not out.exists()
        return
    summary = tok.encode_files(path, out, separator="||", errors=errors)
    if errors == "skip":
        kept = [text for text, good in zip(texts, valid, strict=True) if text and good]
    else:
        kept = [text.decode("utf-8", "replace").encode() for text in texts]
    assert raw_ids(out) == ids_of(tok, kept, tok.eos_id)
    assert summary.invalid_utf8 == valid.count(False)
    assert summary.empty == texts.count(b"")
    assert summary.documents == len(kept) and summary.skipped == len(texts) - len(kept)
    assert summary.bytes == len(b"||".join(texts))


# The block header of an .xz file with a 1.5 GiB dictionary, without its CRC-32.
_HEADER = bytes.fromhex("0200210125000000")
LARGE_XZ = (
    bytes.fromhex("fd377a585a000004e6d6b446") + _HEADER + zlib.crc32(_HEADER).to_bytes(4, "little")
)


@pytest.mark.full
@pytest.mark.parametrize(("log", "reads"), [(29, True), (30, True), (31, False)])
def test_zstd_windows(tok: ggtok.Tokenizer, tmp_path: Path, log: int, reads: bool) -> None:
    """Windows of up to 1 GiB are supported; larger windows (zstd --long=31) raise an error that
    says so."""
    import zstandard

    options = zstandard.ZstdCompressionParameters(window_log=log)
    press = zstandard.ZstdCompressor(compression_params=options).compressobj()
    (tmp_path / "a.txt.zst").write_bytes(press.compress(b"some text") + press.flush())
    if reads:
        tok.encode_files(tmp_path / "a.txt.zst", tmp_path / "o")
        assert raw_ids(tmp_path / "o") == ids_of(tok, ["some text"], tok.eos_id)
    else:
        with pytest.raises(ggtok.FileError, match=r"a.txt.zst: needs more than 1024 MiB .*zstd -d"):
            tok.encode_files(tmp_path / "a.txt.zst", tmp_path / "o")


Refusal = tuple[object, dict[str, object], type[Exception], str]


def check_refused(tok: ggtok.Tokenizer, folder: Path, rows: list[Refusal]) -> None:
    """Checks each row's error, and that no file is left in the folder."""
    before = set(folder.iterdir())
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        for sources, options, error, message in rows:
            with pytest.raises(ggtok.GGTokError) as raised:
                tok.encode_files(sources, folder / "o", **options)
            assert isinstance(raised.value, error), sources
            assert message in str(raised.value), (sources, options, str(raised.value))
            assert not (folder / "o").exists()
            for path in set(folder.iterdir()) - before:
                path.unlink()


@pytest.mark.full
def test_what_is_refused_by_the_packages_of_extras(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "cut.txt.zst").write_bytes(
        compressed(tmp_path / "x.zst", b"abc" * 99).read_bytes()[:-3]
    )
    (tmp_path / "not.txt.zst").write_bytes(b"abcdefgh")
    (tmp_path / "not.parquet").write_bytes(b"PAR1abc")
    (tmp_path / "not.arrow").write_bytes(b"abcdefghijklmnop")
    parquet(pa.table({"t": [1]}), tmp_path / "int.parquet")
    arrow_stream(pa.Table.from_arrays([pa.array(["a"])] * 2, ["t", "t"]), tmp_path / "two.arrow")
    rows: list[Refusal] = [
        ("cut.txt.zst", {}, ggtok.FileError, "cut.txt.zst: the compressed data is cut off"),
        ("not.txt.zst", {}, ggtok.FileError, "not.txt.zst: not valid zstd data"),
        ("not.parquet", {}, ggtok.FileError, "not.parquet: "),
        ("not.arrow", {}, ggtok.FileError, "not.arrow: "),
        ("int.parquet", {}, ValueError, "no column 'text'; there are 't'; pass field="),
        ("int.parquet", {"field": "t"}, TypeError, "the column 't' is of int64"),
        ("two.arrow", {"field": "t"}, ValueError, "several columns 't'"),
    ]
    check_refused(tok, tmp_path, rows)


def test_what_is_refused(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each error contains the file's name and says what to do."""
    (tmp_path / "a.txt").write_text("a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "cut.txt.gz").write_bytes(
        compressed(tmp_path / "x.gz", b"abc" * 99).read_bytes()[:-9]
    )
    for end in (".bz2", ".xz"):
        whole = compressed(tmp_path / f"x{end}", b"abc" * 99).read_bytes()
        (tmp_path / f"cut.txt{end}").write_bytes(whole[:-13])
        (tmp_path / f"not.txt{end}").write_bytes(b"abc")
    (tmp_path / "large.txt.xz").write_bytes(LARGE_XZ)
    (tmp_path / "not.txt.gz").write_bytes(b"abc")
    (tmp_path / "bad.txt.gz").write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 20)
    (tmp_path / "a.parquet.gz").write_bytes(b"")
    rows: list[Refusal] = [
        ("nowhere.txt", {}, FileNotFoundError, "nowhere.txt"),
        ("*.nothing", {}, FileNotFoundError, "no file matches"),
        ("empty", {}, ValueError, "no sources"),
        ([], {}, ValueError, "no sources"),
        (3, {}, TypeError, "sources must be a path or an iterable of paths, not int"),
        ([3], {}, TypeError, "but one is int"),
        ("a\0b", {}, ValueError, "NUL"),
        ("/dev/null", {}, ValueError, "not a regular file"),
        ("cut.txt.gz", {}, ggtok.FileError, "cut.txt.gz: the compressed data is cut off"),
        ("not.txt.gz", {}, ggtok.FileError, "not.txt.gz: not valid gzip data"),
        ("bad.txt.gz", {}, ggtok.FileError, "bad.txt.gz: not valid gzip data"),
        ("cut.txt.bz2", {}, ggtok.FileError, "cut.txt.bz2: the compressed data is cut off"),
        ("cut.txt.xz", {}, ggtok.FileError, "cut.txt.xz: the compressed data is cut off"),
        ("not.txt.bz2", {}, ggtok.FileError, "not.txt.bz2: not valid bz2 data"),
        ("not.txt.xz", {}, ggtok.FileError, "not.txt.xz: not valid xz data"),
        ("large.txt.xz", {}, ggtok.FileError, "large.txt.xz: needs more than 1024 MiB of memory"),
        ("large.txt.xz", {}, ggtok.FileError, "decompress it with 'xz -d'"),
        ("a.parquet.gz", {}, ValueError, "decompress it"),
        ("a.txt", {"format": "tar"}, ValueError, "format must be one of 'raw', 'npy'"),
        ("a.txt", {"dtype": "int8"}, ValueError, "dtype must be one of 'auto', 'uint16'"),
        (
            "a.txt",
            {"format": "megatron", "dtype": "uint32"},
            ValueError,
            "no uint32: use the dtype 'int32'",
        ),
        ("a.txt", {"errors": "strict"}, ValueError, "errors must be one of raise, replace, skip"),
        ("a.txt", {"separator": ""}, ValueError, "separator is empty"),
        ("a.txt", {"separator": 3}, TypeError, "separator must be str or bytes"),
        ("a.txt", {"field": 3}, TypeError, "field must be str or a list of str, not int"),
        ("a.txt", {"field": ["a", 3]}, TypeError, "field must be str or a list of str"),
        ("a.txt", {"field": []}, ValueError, "field names no field"),
        ("a.txt", {"threads": -1}, ValueError, "threads must not be negative"),
    ]
    check_refused(tok, tmp_path, rows)
    monkeypatch.chdir(tmp_path)
    for out, message in (
        (3, "out must be str"),
        (tmp_path, "is a folder"),
        ("a/", "is not a file name"),
    ):
        with pytest.raises(ggtok.GGTokError, match=message):
            tok.encode_files("a.txt", out)
    (tmp_path / "a").write_text("a")
    with pytest.raises(ggtok.InvalidValueError, match="is both a source and the output"):
        tok.encode_files("a", "a")
    with pytest.raises(ggtok.FileError, match="nowhere/o: the folder nowhere doesn't exist"):
        tok.encode_files("a.txt", "nowhere/o")


def test_a_source_that_changes_meanwhile(tok: ggtok.Tokenizer, tmp_path: Path, small: None) -> None:
    for i in range(50):
        (tmp_path / f"{i:02}.txt").write_text("some text " * 100)

    def change(_: object) -> None:
        with (tmp_path / "49.txt").open("a") as file:
            file.write("more")

    with pytest.raises(ggtok.FileError, match=r"49.txt: changed while it was read; run again"):
        tok.encode_files(tmp_path, tmp_path / "o", progress=change)


def test_missing_extras(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If a package is missing, the error names the extra that installs it."""
    for name in ("a.txt.zst", "a.parquet", "a.arrow"):
        (tmp_path / name).write_bytes(b"x")
    monkeypatch.setitem(__import__("sys").modules, "zstandard", None)
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    for name, extra in (("a.txt.zst", "zstd"), ("a.parquet", "arrow"), ("a.arrow", "arrow")):
        with pytest.raises(ggtok.MissingExtraError, match=rf"pip install \"ggtok\[{extra}\]\""):
            tok.encode_files(tmp_path / name, tmp_path / "o")
    with pytest.raises(ggtok.MissingExtraError, match="format='arrow' needs pyarrow"):
        tok.encode_files(tmp_path / "a.arrow", tmp_path / "o", format="arrow")


@pytest.mark.full
def test_the_standard_librarys_zstd(
    tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Simulates Python 3.14's zstd module with zstandard's decompressor."""
    import sys
    import types

    import zstandard

    path = compressed(tmp_path / "a.txt.zst", b"some text")
    module = types.SimpleNamespace(
        DecompressionParameter=types.SimpleNamespace(window_log_max=1),
        ZstdDecompressor=lambda options: zstandard.ZstdDecompressor().decompressobj(),
        ZstdError=zstandard.ZstdError,
    )
    monkeypatch.setitem(sys.modules, "compression", types.SimpleNamespace(zstd=module))
    monkeypatch.setitem(sys.modules, "zstandard", None)
    tok.encode_files(path, tmp_path / "o")
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["some text"], tok.eos_id)


def test_documents_that_are_too_long(
    tok: ggtok.Tokenizer,
    load_fixture: object,
    tmp_path: Path,
    small: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Documents and records that must fit in memory whole have a size limit."""
    from ggtok.corpora import text

    for module in (text, jsonl_reader):
        monkeypatch.setattr(module, "LIMIT", 1000)
    monkeypatch.setattr("ggtok.corpora.tables.LIMIT", 1000)
    long = "word " * 1000
    (tmp_path / "a.txt").write_text(long)
    (tmp_path / "b.jsonl").write_text(json.dumps({"text": long}))
    if samples.FULL:
        parquet(pa.table({"text": [long]}), tmp_path / "c.parquet")
    tok.encode_files(tmp_path / "a.txt", tmp_path / "o")
    assert raw_ids(tmp_path / "o") == ids_of(tok, [long], tok.eos_id)
    whole = load_fixture("test")  # a vocabulary with which documents can't be divided
    for name, options, which in (
        *([("a.txt", {"format": "arrow"}, tok)] if samples.FULL else []),
        ("b.jsonl", {}, tok),
        *([("c.parquet", {}, tok)] if samples.FULL else []),
        ("a.txt", {"eos": False}, whole),
    ):
        with pytest.raises(ggtok.FileError, match=r"MiB"):
            which.encode_files(tmp_path / name, tmp_path / "p", resume=False, **options)
