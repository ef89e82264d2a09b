"""Recipes for Ray Data, Dask and Spark, which use their objects without importing them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

import ggtok
from ggtok.corpora.tables import pyarrow
from ggtok.distributed.job import SCHEMA, Job, Record, Shards


def encode_ray(
    dataset: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Ray dataset, with one shard for each block.

    Args:
        dataset: a ``ray.data.Dataset`` with a column of strings.
        tok: the tokenizer. It is put into Ray's object store once.
        folder: the folder for shards and manifest, with the same path on all nodes.
        **options: ``field`` (``"text"``): the column; ``format``, ``dtype``, ``add_special``,
            ``eos``, ``errors``: as for :meth:`ggtok.Tokenizer.encode_files`; ``threads``: the
            number of threads of each task, 1 by default; ``ship``: ``"bytes"`` sends the file's
            metadata to workers, ``"name"`` sends the path or name, which workers load.

    Raises:
        InvalidValueError, InvalidTypeError: an option is wrong, or the folder contains a
            finished job.
        FileError: a shard is missing in the caller's folder.
        Exceptions of Ray, whose cause is the error of the worker.
    """
    shards = Shards(tok, folder, **options)
    dataset.context.execution_options.preserve_order = True
    records = dataset.select_columns([shards.job.field]).map_batches(
        partial(_ray_task, shards.job), batch_format="pyarrow", batch_size=None
    )
    return shards.finish(records.take_all())


def encode_dask(
    dataframe: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Dask dataframe, with one shard for each partition.

    Args:
        dataframe: a ``dask.dataframe.DataFrame`` with a column of strings.
        tok, folder, **options: as for :func:`encode_ray`.
    """
    shards = Shards(tok, folder, **options)
    meta = [(name, "object" if kind == "string" else kind) for name, kind in SCHEMA.items()]
    records = dataframe[[shards.job.field]].map_partitions(
        _dask_task, shards.job, meta=meta, enforce_metadata=False
    )
    return shards.finish(records.compute().to_dict("records"))


def encode_spark(
    dataframe: Any, tok: ggtok.Tokenizer, folder: str | os.PathLike[str], **options: Any
) -> ggtok.Summary:
    """Encode a column of a Spark dataframe, with one shard for each partition.

    Args:
        dataframe: a ``pyspark.sql.DataFrame`` with a column of strings.
        tok, folder, **options: as for :func:`encode_ray`.
    """
    shards = Shards(tok, folder, **options)
    columns = ", ".join(
        f"{name} {'long' if kind == 'int64' else kind}" for name, kind in SCHEMA.items()
    )
    records = dataframe.select(shards.job.field).mapInArrow(
        partial(_spark_task, shards.job), columns
    )
    return shards.finish(row.asDict() for row in records.collect())


def _ray_task(job: Job, table: Any) -> Any:
    return _table(job([table]))


def _dask_task(frame: Any, job: Job) -> Any:
    pa = pyarrow("ggtok.distributed")
    return type(frame)([job([pa.Table.from_pandas(frame, preserve_index=False)])])


def _spark_task(job: Job, batches: Iterable[Any]) -> Iterator[Any]:
    yield from _table(job(batches)).to_batches()


def _table(record: Record) -> Any:
    """A record as an Arrow table of one row."""
    pa = pyarrow("ggtok.distributed")
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in SCHEMA.items()])
    return pa.Table.from_pylist([record], schema)
