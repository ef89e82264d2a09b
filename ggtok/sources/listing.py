"""What is on this machine: every model that the sources know of, summed up.

Of each file only the beginning is read, as far as it takes to tell the kind of
vocabulary and the number of tokens (64 kB of nearly all); no vocabulary is built.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

from ggtok import _native
from ggtok.errors import GGTokError
from ggtok.sources import hfcache, lmstudio, ollama
from ggtok.sources.folders import files
from ggtok.sources.split import first

_FIRST = 64 << 10


@dataclass(frozen=True)
class Model:
    """A file, and what its vocabulary is (None: it has none, or `error` says more).

    Attributes:
        source: ``"hf"``, ``"llama.cpp"``, ``"ollama"``, ``"lmstudio"`` or ``"file"``.
        name: what ``ggtok.load`` knows it by.
        path, size: the file, and its bytes (of a split model, those of the first).
        vocab_type, model, pre, n_tokens: as of a ``Tokenizer``.
    """

    source: str
    name: str
    path: str | None
    size: int | None = None
    vocab_type: str | None = None
    model: str | None = None
    pre: str | None = None
    n_tokens: int | None = None
    error: str | None = None


def models(folders: Iterable[str] = ()) -> Iterator[Model]:
    """The models in `folders`; if there are none, those of every source."""
    folders = list(folders)
    if folders:
        for folder in folders:
            for file in files(folder):
                if file.endswith(".gguf") and file == first(file):
                    path = os.path.join(folder, *file.split("/"))
                    yield _summed_up("file", path, path)
        return
    for source, name, found in chain(hfcache.models(), ollama.models(), lmstudio.models()):
        if isinstance(found, Exception):
            yield Model(source, name, None, error=_said(found, name))
        else:
            yield _summed_up(source, name, found)


def _summed_up(source: str, name: str, path: str) -> Model:
    size = None
    try:
        with open(path, "rb", buffering=0) as f:
            size = os.fstat(f.fileno()).st_size
            data, wanted = bytearray(), _FIRST
            while True:
                while len(data) < min(wanted, size):
                    block = f.read(wanted - len(data))
                    if not block:
                        raise GGTokError("the file became shorter while it was read")
                    data += block
                summary = _native.peek(data, size, path)
                if isinstance(summary, tuple):
                    return Model(source, name, path, size, *summary)
                wanted = max(summary, 2 * len(data))
    except (GGTokError, OSError) as e:
        return Model(source, name, path, size, error=_said(e, path))


def _said(error: Exception, name: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{name}: ")
