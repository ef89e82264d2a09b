"""Corpora on many machines: recipes for Ray Data, Dask and Spark.

Each hands its workers a tokenizer (its metadata's bytes, or the model's name) and gives them
batches of an Arrow column. A task writes one shard of ids and returns a record of it; when all
have, one manifest is written. docs/scale.md has examples.

    >>> from ggtok import distributed
    >>> distributed.encode_ray(ray.data.read_parquet("s3://..."), tok, "/shared/ids")

**Nothing is lost and nothing is doubled** when a worker dies or a task is run twice: a shard's name
is the hash of its ids, it appears complete or not at all, and only the shards whose records reached
the caller are in the manifest, in the order of the data. A framework takes each task's result once,
however often it was run. Files that the manifest doesn't name don't count.
"""

from ggtok.distributed.job import Job, Shards
from ggtok.distributed.recipes import encode_dask, encode_ray, encode_spark

__all__ = ["Job", "Shards", "encode_dask", "encode_ray", "encode_spark"]
