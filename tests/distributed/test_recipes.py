"""Tests the recipes and their jobs with fake frameworks that run tasks immediately.

``python -m tests.distributed`` uses the real frameworks.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest

import ggtok
from ggtok import distributed
from tests.distributed import cases


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    return folder


def tables(source: Path) -> list[pa.Table]:
    return [pyarrow.parquet.read_table(path) for path in sorted(source.iterdir())]


def sent(value: Any) -> Any:
    """Returns the value as a worker receives it: pickled and unpickled."""
    distributed._LOADED.clear()
    return pickle.loads(pickle.dumps(value))


class Ray:
    def __init__(self, source: Path) -> None:
        self.tables = tables(source)
        self.context = SimpleNamespace(execution_options=SimpleNamespace(preserve_order=False))

    def select_columns(self, names: list[str]) -> Ray:
        self.tables = [table.select(names) for table in self.tables]
        return self

    def map_batches(self, function: Any, *, batch_format: str, batch_size: None) -> Ray:
        assert batch_format == "pyarrow" and self.context.execution_options.preserve_order
        self.tables = [sent(function)(table) for table in self.tables]
        return self

    def take_all(self) -> list[dict[str, Any]]:
        return [row for table in self.tables for row in table.to_pylist()]


class Frame:
    """A minimal stand-in for the pandas DataFrame of one partition."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return pa.Table.from_pylist(self.rows).__arrow_c_stream__(requested_schema)


class Dask:
    def __init__(self, source: Path) -> None:
        self.frames = [Frame(table.to_pylist()) for table in tables(source)]

    def __getitem__(self, names: list[str]) -> Dask:
        return self

    def map_partitions(self, function: Any, *args: Any, meta: Any, enforce_metadata: bool) -> Dask:
        assert [name for name, _ in meta] == list(distributed.SCHEMA)
        self.frames = [sent(function)(frame, *sent(args)) for frame in self.frames]
        return self

    def compute(self) -> Any:
        rows = [row for frame in self.frames for row in frame.rows]
        return SimpleNamespace(to_dict=lambda kind: rows)


class Spark:
    def __init__(self, source: Path) -> None:
        self.tables = tables(source)

    def select(self, name: str) -> Spark:
        return self

    def mapInArrow(self, function: Any, schema: str) -> Spark:  # noqa: N802
        assert schema.startswith("shard string, size long, ")
        empty = self.tables[0].slice(0, 0)
        self.rows = [
            row
            for table in (*self.tables, empty)
            for batch in sent(function)(iter(table.to_batches(max_chunksize=50)))
            for row in batch.to_pylist()
        ]
        return self

    def collect(self) -> list[Any]:
        return [SimpleNamespace(asDict=lambda row=row: row) for row in self.rows]


@pytest.fixture(autouse=True)
def frames_are_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    def from_pandas(frame: Any, preserve_index: bool) -> Any:
        return pa.table(frame)

    monkeypatch.setattr(
        "ggtok.distributed.pyarrow",
        lambda what: SimpleNamespace(
            **{
                **vars(pa),
                "Table": SimpleNamespace(from_pandas=from_pandas, from_pylist=pa.Table.from_pylist),
            }
        ),
    )


RECIPES: list[tuple[Callable[..., ggtok.Summary], Any]] = [
    (distributed.encode_ray, Ray),
    (distributed.encode_dask, Dask),
    (distributed.encode_spark, Spark),
]


@pytest.mark.parametrize(("encode", "kind"), RECIPES)
@pytest.mark.parametrize("ship", ["bytes", "name"])
def test_recipes(source: Path, tmp_path: Path, encode: Any, kind: Any, ship: str) -> None:
    texts = cases.write(source, files=4, each=30)
    out = tmp_path / "out"
    summary = encode(kind(source), ggtok.load(cases.MODEL), out, ship=ship)
    cases.check(out, summary, texts)
    with pytest.raises(ggtok.InvalidValueError, match="contains a finished job"):
        encode(kind(source), ggtok.load(cases.MODEL), out)


def test_a_task_run_twice_doubles_nothing(source: Path, tmp_path: Path) -> None:
    """A task that runs twice produces the same shard. Shards that the manifest doesn't name are
    ignored."""
    texts = cases.write(source, files=3, each=30)
    shards = distributed.Shards(ggtok.load(cases.MODEL), tmp_path / "out")
    records = []
    for table in tables(source):
        records.append(shards.job([table]))
        assert shards.job([table]) == records[-1]
    shards.job([tables(source)[0].slice(5)])  # a task whose record is lost
    cases.check(tmp_path / "out", shards.finish(records), texts)
    assert len({record["shard"] for record in records}) == 2  # two of the files are identical


def test_a_job_that_fails_has_written_nothing(source: Path, tmp_path: Path) -> None:
    shards = distributed.Shards(ggtok.load(cases.MODEL), tmp_path / "out")
    table = pa.table({"text": ["a", None, ""]})
    with pytest.raises(ggtok.DocumentError, match="the data: row 1: the field 'text' is null"):
        shards.job([table])
    assert list((tmp_path / "out").iterdir()) == []
    skipping = distributed.Shards(ggtok.load(cases.MODEL), tmp_path / "out", errors="skip")
    record = skipping.job([table])
    summary = skipping.finish([record])
    assert (summary.documents, summary.missing, summary.empty, summary.skipped) == (1, 1, 1, 2)
    for path in (tmp_path / "out").iterdir():
        path.unlink()
    with pytest.raises(ggtok.FileError, match="do workers and caller share the folder"):
        skipping.finish([record])
    again = distributed.Shards(ggtok.load(cases.MODEL), tmp_path / "out", errors="skip")
    (tmp_path / "out" / record["shard"]).mkdir()
    with pytest.raises(ggtok.FileError, match="Is a directory"):
        again.job([table])


@pytest.mark.parametrize("format", ["raw", "npy", "megatron", "arrow"])
def test_formats(tmp_path: Path, format: str) -> None:
    tok = ggtok.load(cases.MODEL)
    shards = distributed.Shards(tok, tmp_path, format=format)
    records = [shards.job([pa.table({"text": [f"text {i}"] * 5})]) for i in range(3)]
    summary = shards.finish(records)
    assert summary.documents == 15 and len(summary.files) == 4
    names = sorted(path.name for path in tmp_path.iterdir())
    assert len(names) == 1 + 3 * (1 if format == "arrow" else 2)
    assert all(Path(path).exists() for path in summary.files)


def test_what_is_refused(tmp_path: Path) -> None:
    tok = ggtok.load(cases.MODEL)
    rows: list[tuple[dict[str, Any], str]] = [
        ({"errors": "no"}, "errors must be one of"),
        ({"format": "no"}, "format must be one of"),
        ({"ship": "no"}, "ship must be 'bytes' or 'name'"),
    ]
    for options, message in rows:
        with pytest.raises(ggtok.InvalidValueError, match=message):
            distributed.Shards(tok, tmp_path, **options)
    with pytest.raises(ggtok.InvalidTypeError, match="can't be sent by its bytes"):
        distributed.Shards(ggtok.load(bytearray(cases.MODEL.read_bytes())), tmp_path)
