"""Generated documents, files that contain them, and their expected ids."""

from __future__ import annotations

import bz2
import gzip
import itertools
import json
import lzma
import random
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

import ggtok
from ggtok.inspect.parity.texts import PROSE

Ids = list[list[int]]


def documents(seed: int, n: int, longest: int = 400) -> list[str]:
    """Returns nonempty documents with words in many scripts."""
    r = random.Random(seed)
    words = " ".join(PROSE).split(" ")
    return [
        " ".join(r.choices(words, k=r.choice([1, 3, 10, r.randrange(1, longest)])))
        for _ in range(n)
    ]


def ids_of(
    tok: ggtok.Tokenizer, texts: Iterable[str | bytes], eos: int | None, **options: bool
) -> Ids:
    """Returns each document's ids from ``encode``, followed by `eos` unless `eos` is None."""
    return [tok.encode(text, **options) + ([eos] if eos is not None else []) for text in texts]


def raw_ids(path: Path, dtype: str = "<u2") -> Ids:
    """Reads each document's ids from a raw output."""
    return cut(np.fromfile(path, dtype), np.fromfile(f"{path}.offsets", "<i8"))


def cut(ids: np.ndarray, offsets: np.ndarray) -> Ids:
    assert offsets[0] == 0 and offsets[-1] == len(ids)
    return [ids[a:b].tolist() for a, b in itertools.pairwise(offsets)]


def compressed(path: Path, data: bytes) -> Path:
    """Writes a compressed file of two members or frames. The extension selects the compression."""
    half = len(data) // 2
    if path.suffix == ".gz":
        data = gzip.compress(data[:half]) + gzip.compress(data[half:])
    elif path.suffix == ".bz2":
        data = bz2.compress(data[:half]) + bz2.compress(data[half:])
    elif path.suffix == ".xz":
        data = lzma.compress(data[:half]) + bytes(8) + lzma.compress(data[half:]) + bytes(4)
    elif path.suffix == ".zst":
        import zstandard

        press = zstandard.ZstdCompressor().compress
        data = press(data[:half]) + press(data[half:])
    path.write_bytes(data)
    return path


def jsonl(texts: Sequence[str], field: str = "text") -> bytes:
    r = random.Random(1)
    return b"".join(
        json.dumps({"id": i, field: text}, ensure_ascii=r.random() < 0.5).encode() + b"\n"
        for i, text in enumerate(texts)
    )


def files_of(folder: Path, out: str) -> dict[str, bytes]:
    """Returns the contents of an output's files by name, including the manifest."""
    return {path.name: path.read_bytes() for path in folder.glob(f"{out}*")}
