"""Runs the recipes for distributed encoding on real clusters on this machine.

python -m tests.distributed [ray] [dask] [spark]

Needs the extra test-distributed; Spark needs Java. Each recipe encodes a dataset twice: once
undisturbed, and once with workers that die after they have written a shard.
"""

from __future__ import annotations

import importlib
import logging
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from ggtok.distributed import encode_dask, encode_ray, encode_spark
from tests.distributed import cases

ROOT = Path(__file__).resolve().parents[2]


def both(encode: Any, data: Any, folder: Path, texts: list[str]) -> None:
    for dying in (False, True):
        started = time.perf_counter()
        cases.run(encode, data(), folder / f"{'dying' if dying else 'plain'}", texts, dying)
        print(f"  {time.perf_counter() - started:.1f} s")


def on_ray(source: Path, folder: Path, texts: list[str]) -> None:
    import pyarrow.parquet
    import ray
    import ray.data
    from ray.cluster_utils import Cluster

    logging.getLogger("ray").setLevel(logging.ERROR)
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
    cluster.add_node(num_cpus=1)
    ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
    try:
        print(f"ray {ray.__version__}: {len(ray.nodes())} nodes")

        def data() -> Any:
            files = sorted(source.iterdir())
            return ray.data.from_arrow([pyarrow.parquet.read_table(path) for path in files])

        both(encode_ray, data, folder, texts)
    finally:
        ray.shutdown()
        cluster.shutdown()


def on_dask(source: Path, folder: Path, texts: list[str]) -> None:
    import dask.dataframe
    import distributed

    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        print(f"dask {distributed.__version__}: {len(cluster.workers)} workers")
        both(encode_dask, lambda: dask.dataframe.read_parquet(source), folder, texts)


def on_spark(source: Path, folder: Path, texts: list[str]) -> None:
    import pyspark
    from pyspark.sql import SparkSession

    # Run two tasks at a time; each may fail three times.
    builder = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
    spark = builder.getOrCreate()
    # Spark would sort files by size and so reorder documents, so the rows don't come from files.
    slices = len(list(source.iterdir()))
    try:
        print(f"spark {pyspark.__version__}")
        rows = spark.sparkContext.parallelize([(text,) for text in texts], slices)
        both(encode_spark, lambda: spark.createDataFrame(rows, "text string"), folder, texts)
    finally:
        spark.stop()


RUNS = {"ray": on_ray, "dask": on_dask, "spark": on_spark}


def main() -> None:
    # Workers must be able to import this project and its tests.
    os.environ["PYTHONPATH"] = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    importlib.import_module("ggtok")
    for name in sys.argv[1:] or RUNS:
        with tempfile.TemporaryDirectory(prefix=f"ggtok-{name}-") as temporary:
            source, folder = Path(temporary) / "in", Path(temporary) / "out"
            source.mkdir()
            folder.mkdir()
            RUNS[name](source, folder, cases.write(source))


if __name__ == "__main__":
    main()
