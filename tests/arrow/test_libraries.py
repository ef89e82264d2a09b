"""Exchanges columns with the real libraries: pyarrow, polars, duckdb, datasets, Dask.

`pip install -e ".[test-adapters]"` installs them.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.support.vocabularies import fixture

pa = pytest.importorskip("pyarrow", exc_type=ImportError)
WORDS = ["Hello, world", "", "a text of more than twelve bytes", "café 日本", "x" * 12, "y" * 13]
NULLS = [*WORDS[:3], None, *WORDS[3:], None]
IDS = "large_list<item: int32>"


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


def expected(tok: ggtok.Tokenizer, texts: list[str | None]) -> list[list[int] | None]:
    return [None if text is None else tok.encode(text) for text in texts]


TYPES = {
    "string": pa.string(),
    "large_string": pa.large_string(),
    "string_view": pa.string_view(),
    "binary": pa.binary(),
    "large_binary": pa.large_binary(),
    "binary_view": pa.binary_view(),
    "dictionary": pa.dictionary(pa.int8(), pa.string()),
    "large dictionary": pa.dictionary(pa.uint32(), pa.large_string()),
}


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("texts", [WORDS, NULLS], ids=["words", "nulls"])
def test_pyarrow(tok: ggtok.Tokenizer, name: str, texts: list[Any]) -> None:
    raw = [text.encode() if text and "binary" in name else text for text in texts]
    whole = pa.array(raw, TYPES[name])
    want = expected(tok, texts)
    for column, ids in (
        (whole, want),
        (whole.slice(2), want[2:]),
        (whole.slice(1, 3), want[1:4]),
        (whole.slice(len(texts)), []),
        (pa.chunked_array([whole.slice(1), whole.slice(0, 0), whole]), want[1:] + want),
        (pa.chunked_array([], TYPES[name]), []),
        (pa.table({"text": whole}).slice(1), want[1:]),
        (pa.record_batch({"text": whole}).slice(1), want[1:]),
        (pa.StructArray.from_arrays([whole], ["text"]).slice(3), want[3:]),
        (pa.table({"text": whole}).to_reader(max_chunksize=2), want),
    ):
        result = pa.array(tok.encode_batch_arrow(column))
        result.validate(full=True)
        assert str(result.type) == IDS
        assert result.to_pylist() == ids
    if texts is WORDS:
        assert tok.encode_batch(whole) == want
        assert tok.encode_batch_arrays(whole)[0].tolist() == [
            id for ids in want for id in ids or ()
        ]
    else:
        with pytest.raises(ggtok.InvalidValueError, match=r"texts\[3\] is null"):
            tok.encode_batch(whole)


def test_pyarrow_shares_the_buffers(tok: ggtok.Tokenizer) -> None:
    ids = tok.encode_batch_arrow(pa.array(WORDS))
    one, two = pa.array(ids), pa.array(ids)
    for a, b in zip(one.buffers(), two.buffers(), strict=True):
        assert (a is None) == (b is None)
        assert a is None or a.address == b.address
    del ids, two
    child = one.values
    del one
    assert child.to_pylist() == [id for word in WORDS for id in tok.encode(word)]


def test_streams_from_python(tok: ggtok.Tokenizer) -> None:
    """A generator yields batches to a call on another thread. If it fails, the call raises an
    error."""

    def batches(n: int) -> Iterator[Any]:
        for i in range(n):
            yield pa.record_batch({"text": [f"number {i}", None]})
        if n == 3:
            raise OSError("the disk is gone")

    def reader(n: int) -> Any:
        return pa.RecordBatchReader.from_batches(pa.schema({"text": pa.string()}), batches(n))

    want = expected(tok, [t for i in range(5) for t in (f"number {i}", None)])
    found: list[object] = []
    stream = reader(5)
    thread = threading.Thread(target=lambda: found.append(tok.encode_batch_arrow(stream)))
    thread.start()
    thread.join()
    assert pa.array(found[0]).to_pylist() == want
    with pytest.raises(ggtok.InvalidValueError, match=r"stream failed: .*disk is gone"):
        tok.encode_batch_arrow(reader(3))


def test_other_types_of_pyarrow_raise_errors(tok: ggtok.Tokenizer) -> None:
    nulls = pa.array(tok.encode_batch_arrow(pa.nulls(3)))
    assert nulls.to_pylist() == [None] * 3
    for column in (
        pa.array([1, 2]),
        pa.array([["a"]]),
        pa.table({"a": ["x"], "b": ["y"]}),
        pa.array([b"ab"], pa.binary(2)),
        pa.RunEndEncodedArray.from_arrays([2], ["a"]),
        pa.array([{"a": {"b": "c"}}]),
    ):
        with pytest.raises(ggtok.InvalidTypeError, match=r"texts: (the|a) "):
            tok.encode_batch_arrow(column)


def test_random_columns(tok: ggtok.Tokenizer) -> None:
    rng = random.Random(20)
    for _ in range(40):
        texts = [
            None if rng.random() < 0.2 else rng.choice(WORDS) * rng.randrange(4) for _ in range(30)
        ]
        cuts = sorted(rng.sample(range(31), 3))
        kind = rng.choice([*list(TYPES.values())[:3], TYPES["dictionary"]])
        whole = pa.array(texts, kind)
        spans = list(zip([0, *cuts], [*cuts, 30], strict=True))
        column = pa.chunked_array([whole.slice(a, b - a) for a, b in spans], kind)
        assert pa.array(tok.encode_batch_arrow(column)).to_pylist() == expected(tok, texts)


def test_polars(tok: ggtok.Tokenizer) -> None:
    pl = pytest.importorskip("polars", exc_type=ImportError)
    want = expected(tok, NULLS)
    for series in (
        pl.Series(NULLS),
        pl.Series(NULLS, dtype=pl.Categorical),
        pl.Series([None if text is None else text.encode() for text in NULLS]),
        pl.DataFrame({"text": NULLS}),
        pl.Series([*NULLS[:4], "z"]).slice(0, 4).append(pl.Series(NULLS[4:])),
    ):
        ids = pl.Series(tok.encode_batch_arrow(series))
        assert ids.dtype == pl.List(pl.Int32)
        assert ids.to_list() == want
    assert tok.encode_batch(pl.Series(WORDS)) == expected(tok, list(WORDS))
    counted = pl.DataFrame({"text": NULLS}).with_columns(
        n=pl.col("text").map_batches(
            lambda s: pl.Series(tok.encode_batch_arrow(s)).list.len(), return_dtype=pl.UInt32
        )
    )
    assert counted["n"].to_list() == [ids and len(ids) for ids in want]


def test_duckdb(tok: ggtok.Tokenizer) -> None:
    duckdb = pytest.importorskip("duckdb", exc_type=ImportError)
    want = expected(tok, NULLS)
    connection = duckdb.connect()
    texts = pa.table({"text": NULLS})
    relation = connection.sql("select text from texts")
    assert pa.array(tok.encode_batch_arrow(relation)).to_pylist() == want
    ids = pa.table({"ids": pa.array(tok.encode_batch_arrow(texts))})
    counted = connection.sql("select len(ids) from ids").fetchall()
    assert [n for (n,) in counted] == [row and len(row) for row in want]
    connection.create_function(
        "tokenize",
        lambda column: pa.array(tok.encode_batch_arrow(column)),
        ["VARCHAR"],
        "INTEGER[]",
        type="arrow",
        null_handling="special",
    )
    assert ids.num_rows == len(texts)
    assert [row for (row,) in connection.sql("select tokenize(text) from texts").fetchall()] == want


def test_datasets(tok: ggtok.Tokenizer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    datasets = pytest.importorskip("datasets", exc_type=ImportError)
    monkeypatch.setenv("HF_DATASETS_OFFLINE", "1")
    datasets.disable_progress_bars()
    datasets.Dataset.from_dict({"text": NULLS * 20}).save_to_disk(tmp_path / "data")
    data = datasets.load_from_disk(tmp_path / "data")  # memory-maps the file

    def tokenized(table: Any) -> Any:
        return pa.table({"ids": pa.array(tok.encode_batch_arrow(table["text"]))})

    for processes in (None, 2):
        mapped = data.with_format("arrow").map(
            tokenized,
            batched=True,
            batch_size=37,
            remove_columns=["text"],
            num_proc=processes,
            load_from_cache_file=False,
        )
        assert mapped.with_format(None)["ids"][:] == expected(tok, NULLS * 20)


def test_pandas(tok: ggtok.Tokenizer) -> None:
    pd = pytest.importorskip("pandas", exc_type=ImportError)
    assert tok.encode_batch(pd.Series(WORDS)) == expected(tok, list(WORDS))
    ids = pa.array(tok.encode_batch_arrow(pd.Series(NULLS)))
    assert ids.to_pylist() == expected(tok, NULLS)
    assert tok.encode_batch(pd.Series([1, 2]).astype(str)) == tok.encode_batch(["1", "2"])


def test_dask_on_two_processes(tmp_path: Path) -> None:
    """Workers receive the tokenizer as a path, from which they load it."""
    distributed = pytest.importorskip("distributed", exc_type=ImportError)
    frames = pytest.importorskip("dask.dataframe", exc_type=ImportError)
    pd = pytest.importorskip("pandas", exc_type=ImportError)
    tok = ggtok.load(fixture("bpe-llama3"))
    texts = [f"{WORDS[i % 6]} {i}" if i % 7 else None for i in range(400)]
    frame = frames.from_pandas(pd.DataFrame({"text": texts}), npartitions=8)

    def tokenized(part: Any, tok: ggtok.Tokenizer) -> Any:
        ids = pa.array(tok.encode_batch_arrow(part["text"], threads=1))
        return part.assign(ids=ids.to_pylist())

    meta = {"text": object, "ids": object}
    with (
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=2,
            processes=True,
            dashboard_address=None,
            local_directory=tmp_path,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        assert list(client.run(tok.encode, "Hello").values()) == [tok.encode("Hello")] * 2
        with pytest.raises(ggtok.TextEncodeError, match=r"^text has a lone surrogate \(U\+D800\)"):
            client.submit(tok.encode, "\ud800").result()
        with pytest.raises(ggtok.TextDecodeError, match="unexpected end of data"):
            client.submit(tok.decode, tok.encode("日")[:-1], errors="strict").result()
        computed = frame.map_partitions(tokenized, tok, meta=meta).compute()
    assert [None if row is None else list(row) for row in computed["ids"]] == expected(tok, texts)
