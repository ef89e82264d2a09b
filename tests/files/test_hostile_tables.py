"""Untrusted tables can't make the process expose its memory or allocate excessively."""

from __future__ import annotations

import io
import json
import random
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.corpora import tables
from tests.files import hostile
from tests.files.corpus import ids_of, raw_ids
from tests.support.full import Lazy
from tests.support.vocabularies import fixture

pa: Any = Lazy("pyarrow")
parquet: Any = Lazy("pyarrow.parquet")
pytestmark = pytest.mark.full

TEXTS = ["01234567", "89abcdef", "ghijklmn"]  # 24 bytes in total
SHORT = struct.pack("<4i", 0, 8, 16, 24)
LONG = struct.pack("<4q", 0, 8, 16, 24)
VIEW = struct.pack("<i4sii", 20, b"0123", 0, 0)  # fields: length, prefix, buffer, offset
VIEWED = [text * 5 for text in ("0123", "89ab")]


def offsets(format: str, *values: int) -> bytes:
    return struct.pack(format, *values)


def rows() -> list[tuple[str, bytes]]:
    short, long = pa.array(TEXTS), pa.array(TEXTS, pa.large_string())
    binary = pa.array([text.encode() for text in TEXTS])
    views = pa.array(VIEWED, pa.string_view())
    coded = pa.DictionaryArray.from_arrays(pa.array([0, 1, 2], pa.int32()), short)
    indices = struct.pack("<3i", 0, 1, 2)
    found = []
    for name, column in (("string", short), ("binary", binary)):
        for values in (
            (0, 8, 16, 5000),
            (0, 8, 16, 2_000_000_000),
            (0, 16, 8, 24),
            (-9, 8, 16, 24),
        ):
            changed = hostile.arrow(column, SHORT, offsets("<4i", *values))
            found.append((f"{name} {values}", changed))
    for values in ((0, 8, 16, 5000), (0, 8, 16, 1 << 40), (0, 1 << 62, 16, 24)):
        found.append((f"large {values}", hostile.arrow(long, LONG, offsets("<4q", *values))))
    for buffer, offset, n in ((7, 0, 20), (0, 5000, 20), (0, -9, 20), (0, 0, 5000), (-1, 0, 20)):
        view = struct.pack("<i4sii", n, b"0123", buffer, offset)
        found.append((f"view {buffer, offset, n}", hostile.arrow(views, VIEW, view)))
    for values in ((0, 1, 5000), (0, 1, -1), (0, 1, 2_000_000_000)):
        changed = hostile.arrow(coded, indices, struct.pack("<3i", *values))
        found.append((f"dictionary {values}", changed))
    changed = hostile.arrow(coded, SHORT, offsets("<4i", 0, 8, 16, 5000))
    found.append(("values of a dictionary", changed))
    stream = hostile.arrow(short, SHORT, offsets("<4i", 0, 8, 16, 5000), stream=True)
    return [*found, ("stream", stream)]


@pytest.mark.parametrize("errors", ["raise", "replace", "skip"])
def test_offsets_outside_the_buffers(tok: ggtok.Tokenizer, tmp_path: Path, errors: str) -> None:
    """Offsets outside the buffers raise an error before any text is read."""
    path = tmp_path / "a.arrow"
    for name, data in rows():
        path.write_bytes(data)
        with pytest.raises(ggtok.FileError, match=r"a.arrow: ") as raised:
            tok.encode_files(path, tmp_path / "o", errors=errors)
        assert not (tmp_path / "o").exists(), (name, raised.value)


def test_texts_that_are_not_utf8(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    """A document with malformed UTF-8 doesn't make the whole file invalid, even in a column of
    strings."""
    path = tmp_path / "a.arrow"
    for kind in (pa.string(), pa.large_string(), pa.string_view()):
        path.write_bytes(hostile.arrow(pa.array(["a", "b#c"], kind), b"b#c", b"b\xffc"))
        out = tmp_path / f"o.{kind}"
        summary = tok.encode_files(path, out, errors="replace")
        assert summary.invalid_utf8 == 1
        assert raw_ids(out) == ids_of(tok, ["a", "b\ufffdc"], tok.eos_id)


def test_columns_of_other_libraries(tok: ggtok.Tokenizer) -> None:
    """Columns from other libraries are checked, except for their buffers' sizes, which the Arrow
    interface doesn't provide."""
    data = hostile.arrow(pa.array(TEXTS), SHORT, offsets("<4i", 0, 16, 8, 24))
    table = pa.ipc.open_file(pa.py_buffer(data)).read_all()
    for read in (
        lambda: list(tok.encode_batches(table)),
        lambda: ggtok.train(table["text"], 300),
    ):
        with pytest.raises(ggtok.InvalidValueError, match="the Arrow data is malformed"):
            read()


# A child process with limited memory and time, which prints its peak memory in kB.
_CHILD = """
import json, resource, signal, sys
signal.alarm(200)
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
import ggtok
from tests.support import memory
tok = ggtok.load(sys.argv[1])
before = memory.peak()
class Enough(Exception): pass
def progress(p):
    if p.documents > 10: raise Enough
try:
    tok.encode_files(*sys.argv[2:4], progress=progress)
    said = "read"
except Enough:
    said = "enough"
except ggtok.GGTokError as e:
    said = f"{type(e).__name__}: {e}"
print(json.dumps([said, memory.peak() - before]))
"""


def in_child(path: Path) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(fixture("bpe-llama3")), str(path), f"{path}.out"],
        cwd=Path(__file__).resolve().parents[2],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    said, kilobytes = json.loads(done.stdout)
    return said, kilobytes


linux = pytest.mark.skipif(sys.platform != "linux", reason="/proc tells how much memory it was")


@linux
@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"encrypted": True}, "not a readable parquet file|Cannot decrypt"),
        ({"chunks": 3}, "row 0: the field 'text' is null"),
        ({"chunks": 0}, "has only 0 columns"),
        ({"metadata": False}, "fewer or more rows than its metadata says"),
        ({"size": 1 << 50, "rows": 5}, "rows of more than 1024 MiB"),
        ({"rows": 1_000_000_000}, "row 0: the field 'text' is null"),
        ({"rows": (1 << 31) - 1, "size": 1}, "row 0: the field 'text' is null"),
    ],
)
def test_parquet_files_with_wrong_metadata(
    tmp_path: Path, options: dict[str, Any], says: str
) -> None:
    """With these files of a few hundred bytes, pyarrow on its own crashes or allocates
    gigabytes."""
    path = tmp_path / "a.parquet"
    path.write_bytes(hostile.parquet(options.pop("rows", 5), **options))
    assert path.stat().st_size < 400
    said, kilobytes = in_child(path)
    assert re.search(says, said), said
    assert kilobytes < 300_000


@linux
def test_a_long_value_in_many_rows(tmp_path: Path) -> None:
    """Many rows refer to a dictionary's long value, in a Parquet or Arrow file of a few hundred
    bytes."""
    text = pa.array(["word " * 200_000])
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 50_000, pa.int32()), text)
    table = pa.table({"text": column})
    parquet.write_table(
        table,
        tmp_path / "a.parquet",
        compression="zstd",
        store_schema=False,
        dictionary_pagesize_limit=1 << 30,
    )
    assert (tmp_path / "a.parquet").stat().st_size < 600
    with pa.ipc.new_file(
        tmp_path / "a.arrow", table.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")
    ) as writer:
        writer.write_table(table)
    for name in ("a.parquet", "a.arrow"):
        said, kilobytes = in_child(tmp_path / name)
        assert said == "enough"
        assert kilobytes < 800_000


def test_names_that_are_not_utf8(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    path.write_bytes(hostile.parquet(5, name=b"\xff\xfe"))
    with pytest.raises(ggtok.GGTokError, match=r"a.parquet: "):
        tok.encode_files(path, tmp_path / "o")


def test_runs_of_nulls(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    """Runs of nulls are counted at once, with the same result as when read row by row."""
    texts = ["a", *[None] * 9000, "b", None]
    parquet.write_table(pa.table({"text": texts}), tmp_path / "a.parquet")
    summary = tok.encode_files(tmp_path / "a.parquet", tmp_path / "o", errors="skip")
    assert (summary.documents, summary.missing, summary.skipped) == (2, 9001, 9001)
    assert raw_ids(tmp_path / "o") == ids_of(tok, ["a", "b"], tok.eos_id)


@pytest.mark.parametrize("new", ["new_file", "new_stream"])
def test_a_billion_nulls(
    new: str, tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A few bytes can claim any number of null rows. They are counted without visiting them."""
    n = 1_000_000_000
    path = tmp_path / "a.arrow"
    for column in (pa.nulls(n), pa.nulls(5)):
        table = pa.table({"text": column})
        with path.open("wb") as file, getattr(pa.ipc, new)(file, table.schema) as writer:
            writer.write_table(table)
        assert path.stat().st_size < 1000
        monkeypatch.setattr(tables, "_group", None)  # visits rows
        summary = tok.encode_files(path, tmp_path / "o", errors="skip", resume=False)
        assert (summary.documents, summary.missing, summary.skipped) == (0, *[len(column)] * 2)


def bases() -> dict[str, list[bytes]]:
    tables = [
        pa.table({"text": ["a", "bc", "def"]}),
        pa.table({"n": [1, 2, 3], "text": ["a", None, "def"]}),
        pa.table({"text": pa.array(["ab", "cd", "ab"]).dictionary_encode()}),
        pa.table({"text": pa.array(["a", "long enough for a buffer"], pa.string_view())}),
    ]
    made: dict[str, list[bytes]] = {"parquet": [], "arrow": []}
    for table in tables:
        for compression in ("none", "zstd"):
            sink = io.BytesIO()
            parquet.write_table(table, sink, compression=compression)
            made["parquet"].append(sink.getvalue())
        for new in (pa.ipc.new_file, pa.ipc.new_stream):
            sink = io.BytesIO()
            with new(sink, table.schema) as writer:
                writer.write_table(table)
            made["arrow"].append(sink.getvalue())
    return made


@pytest.mark.parametrize("kind", ["parquet", "arrow"])
def test_mutated_files(tok: ggtok.Tokenizer, tmp_path: Path, kind: str) -> None:
    """A mutated file is either read, or raises one of ggtok's errors, which names the file."""
    r, path = random.Random(4), tmp_path / f"a.{kind}"
    some = bases()[kind]
    read = unnamed = 0
    for _ in range(400):
        data = bytearray(r.choice(some))
        for _ in range(r.choice([1, 1, 2, 4])):
            data[r.randrange(len(data))] = r.randrange(256)
        path.write_bytes(data)
        try:
            tok.encode_files(path, tmp_path / "o", errors="replace", resume=False)
            read += 1
        except ggtok.GGTokError as e:
            unnamed += "a." + kind not in str(e)
    assert read > 20 and not unnamed
