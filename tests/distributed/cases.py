"""Creates a dataset for distributed encoding, and checks the result."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import ggtok
from ggtok import distributed
from ggtok.distributed import Job, Shards
from tests.files.corpus import Ids, cut, documents, ids_of
from tests.support.vocabularies import fixture

MODEL = fixture("bpe-llama3")
DEATHS = 2


def write(folder: Path, files: int = 8, each: int = 200) -> list[str]:
    """Writes Parquet files, two of them identical, and returns their documents in order."""
    texts = []
    for i in range(files):
        some = documents(min(i, files - 2), each, 60)
        pyarrow.parquet.write_table(pa.table({"text": some}), folder / f"{i:02}.parquet")
        texts += some
    return texts


def check(folder: Path, summary: ggtok.Summary, texts: list[str]) -> None:
    """Asserts that the shards contain each document once, in order, with the ids from
    ``encode``."""
    tok = ggtok.load(MODEL)
    manifest = json.loads((folder / "manifest.json").read_text())
    ids: Ids = []
    for shard in manifest["shards"]:
        path = folder / shard["shard"]
        data = np.fromfile(path, manifest["dtype"])
        ids += cut(data, np.fromfile(f"{path}.offsets", "<i8"))
    assert ids == ids_of(tok, texts, tok.eos_id)
    assert summary.documents == len(texts) and summary.ids == sum(map(len, ids))
    assert manifest["counts"]["documents"] == len(texts)


class Dying(Job):
    """A job that kills its process after the work is done, DEATHS times in all. The shard is
    written, but its record is lost, so the framework runs the task again."""

    def __call__(self, batches: Any) -> Any:
        record = super().__call__(batches)
        for n in range(DEATHS):
            try:
                os.close(os.open(f"{self.folder}.death-{n}", os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                continue
            os._exit(1)
        return record


class DyingShards(Shards):
    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.job = Dying(**vars(self.job))


def run(encode: Any, data: Any, folder: Path, texts: list[str], dying: bool) -> None:
    """Runs one job and checks its result."""
    real = distributed.Shards
    distributed.Shards = DyingShards if dying else real  # type: ignore[misc]
    try:
        summary = encode(data, ggtok.load(MODEL), folder)
    finally:
        distributed.Shards = real  # type: ignore[misc]
    check(folder, summary, texts)
    died = len(list(folder.parent.glob(f"{folder.name}.death-*")))
    assert died == (DEATHS if dying else 0)
    shards = len(json.loads((folder / "manifest.json").read_text())["shards"])
    print(f"  {folder.name}: {shards} shards, {died} workers died, every document once, in order")
