"""Lists the models on this machine.

Only each file's metadata and tensor descriptions are read. They contain the type of the vocabulary
and the number of tokens, and show whether the file is cut off. No vocabulary is built.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain

from ggtok.base.escape import shown
from ggtok.base.files import open_regular
from ggtok.errors import GGTokError
from ggtok.native import peek
from ggtok.sources import hfcache, lmstudio, ollama, prefix
from ggtok.sources.files import Unreadable, files, first, note

_FIRST = 64 << 10


@dataclass(frozen=True)
class Model:
    """A model's file and a summary of its vocabulary.

    Attributes:
        source: ``"hf"``, ``"llama.cpp"``, ``"ollama"``, ``"lmstudio"`` or ``"file"``.
        name: the name for ``ggtok.load``.
        path, size: the file and its size in bytes (the first file of a split model).
        vocab_type, model, pre, n_tokens: as for a ``Tokenizer``. None: the file has no such
            value, or `error` is set.
        error: why the file can't be loaded, or that it is cut off; else None.
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


@dataclass
class Survey:
    """The folders that :func:`models` has searched.

    Attributes:
        looked: source and path of each folder, whether or not it exists, in the order of the
            models.
        unreadable: folders that can't be read, with the reasons. They may contain more models.
    """

    looked: list[tuple[str, str]] = field(default_factory=list)
    unreadable: list[Unreadable] = field(default_factory=list)

    def lines(self, n_models: int) -> list[str]:
        """Lines for the user: the searched folders if no model was found, and unreadable ones."""
        said = []
        if not n_models:
            said.append("no models found; ggtok looked in these folders:")
            for source, folder in self.looked:
                there = "" if os.path.lexists(folder) else " (does not exist)"
                said.append(f"  {source}: {shown(folder)}{there}")
        said += [f"can't read {shown(u.path)}: {shown(u.reason)}" for u in self.unreadable]
        return said


def _stores() -> Iterator[tuple[str, str]]:
    """The folders in which each source stores models."""
    yield from (("hf", folder) for folder in hfcache.hub_folders())
    yield "llama.cpp", hfcache.llamacpp_folder()
    yield from (("ollama", folder) for folder in ollama.stores())
    yield from (("lmstudio", folder) for folder in lmstudio.places())


def models(folders: Iterable[str] = (), survey: Survey | None = None) -> Iterator[Model]:
    """The models in `folders`; if `folders` is empty, those of every source.

    `survey` is complete when the iteration ends.
    """
    folders = list(folders)
    survey = survey or Survey()
    survey.looked += [("file", folder) for folder in folders] or _stores()
    notes = survey.unreadable
    for _, store in survey.looked:
        try:
            os.scandir(store).close()
        except OSError as e:
            note(notes, store, e)
    if folders:
        for folder in folders:
            for file in files(folder, notes):
                if file.endswith(".gguf") and file == first(file):
                    path = os.path.join(folder, *file.split("/"))
                    yield summed_up("file", path, path)
        return
    every = chain(hfcache.models(notes), ollama.models(notes), lmstudio.models(notes))
    for source, name, found in every:
        if isinstance(found, Exception):
            yield Model(source, name, None, error=_said(found, name))
        else:
            yield summed_up(source, name, found)


def summed_up(source: str, name: str, path: str) -> Model:
    """The summary of a file."""
    size = None
    try:
        with open_regular(path) as f:
            size = os.fstat(f.fileno()).st_size
            data, wanted = bytearray(), _FIRST
            while True:
                prefix.fill(f, data, min(wanted, size))
                summary = peek(data, size, path)
                if isinstance(summary, tuple):
                    break
                wanted = max(summary, 2 * len(data))
            try:
                prefix.check_whole(f, data, size, path)
            except GGTokError as e:
                return Model(source, name, path, size, *summary, error=_said(e, path))
            return Model(source, name, path, size, *summary)
    except (GGTokError, OSError) as e:
        return Model(source, name, path, size, error=_said(e, path))


def _said(error: Exception, name: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error).removeprefix(f"{name}: ")
