"""Measures the throughput of the Dask recipe on a text file with different numbers of workers.

python -m tests.distributed.scale SOURCE [--workers 1 2 4] [--rounds 2] [--model GGUF]

The file is first converted to Parquet files with documents of 16 kB; this isn't timed.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from pathlib import Path

import ggtok
from ggtok.distributed import encode_dask
from tests.support.vocabularies import real

DOCUMENT, FILES = 16384, 32


def cut(source: Path, folder: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    each = -(-source.stat().st_size // FILES)
    with source.open("rb") as file:
        for i in range(FILES):
            text = file.read(each).decode("utf-8", "replace")
            rows = [text[at : at + DOCUMENT] for at in range(0, len(text), DOCUMENT)]
            table = pa.table({"text": rows})
            pyarrow.parquet.write_table(table, folder / f"{i:02}.parquet", compression="zstd")


def cpu() -> float:
    times = os.times()
    return times.user + times.system


def main() -> None:
    import dask.dataframe
    import distributed

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("source", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--model", type=Path)
    args = parser.parse_args()
    tok = ggtok.load(args.model or real("llama-bpe"))
    with tempfile.TemporaryDirectory(prefix="ggtok-scale-", dir=args.source.parent) as name:
        folder = Path(name)
        (folder / "in").mkdir()
        cut(args.source, folder / "in")
        for workers in args.workers * args.rounds:
            with (
                distributed.LocalCluster(workers, threads_per_worker=1) as cluster,
                distributed.Client(cluster) as client,
            ):
                client.run(lambda: __import__("ggtok.distributed"))
                before = sum(client.run(cpu).values())
                start = time.perf_counter()
                data = dask.dataframe.read_parquet(folder / "in")
                summary = encode_dask(data, tok, folder / "out", errors="replace")
                seconds = time.perf_counter() - start
                used = sum(client.run(cpu).values()) - before
            print(
                f"{workers} workers: {seconds:.1f} s, {summary.bytes / seconds / 1e6:.0f} MB/s; "
                f"CPU {used:.1f} s, {summary.bytes / used / 1e6:.0f} MB a second",
                flush=True,
            )
            shutil.rmtree(folder / "out")


if __name__ == "__main__":
    main()
