"""Encodes corpora on many machines, with Ray Data, Dask or Spark.

Each recipe sends its workers a tokenizer (the bytes of its metadata, or the model's name) and
batches of an Arrow column. A task writes one shard of ids, and returns a record of it. After all
tasks, one manifest is written. docs/scale.md has examples.

    >>> from ggtok import distributed
    >>> distributed.encode_ray(ray.data.read_parquet("s3://..."), tok, "/shared/ids")

**Nothing is lost or duplicated** if a worker dies or a task runs twice. A shard's name is the hash
of its ids, and a shard is renamed only when it is complete. The manifest has only the shards whose
records reached the caller, in the order of the data, and frameworks use each task's result once.
Ignore files that aren't in the manifest.
"""

from ggtok.distributed.job import Job, Shards
from ggtok.distributed.recipes import encode_dask, encode_ray, encode_spark

__all__ = ["Job", "Shards", "encode_dask", "encode_ray", "encode_spark"]
