"""Model files: the results of lookups, split models, the choice of a file in a repository, and the
search of folders.

Split models: ``name-00002-of-00005.gguf`` is the second of five files. llama.cpp's ``gguf-split``
writes all key/value pairs to the first file, so only that file has the vocabulary.

:func:`choose` equals ``find_best_model`` and ``gguf_filename_is_model`` in ``common/download.cpp``
in b11549: it chooses the first file, in the order of the listing, whose path contains the
quantization followed by ``.`` or ``-``, ignoring case. Without a quantization, Q4_K_M is preferred,
then Q8_0, then any file. Only the first file of a split model is considered. Files that accompany a
model (projectors, importance matrices, draft heads) are ignored. llama.cpp treats the quantization
as a regular expression, ggtok as plain text.

Unreadable folders are treated as missing, and reported on request.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from ggtok.base.escape import printable
from ggtok.errors import not_found

# ---- the result of a lookup ----

# A function that returns the end of a "not found" message: similar names on this machine.
Hint = Callable[[str], str]


@dataclass(frozen=True)
class Source:
    """The origin of a vocabulary.

    Attributes:
        name: the requested name.
        kind: ``"file"``, ``"hf"``, ``"llama.cpp"`` (llama.cpp's own cache), ``"http"``,
            ``"ollama"`` or ``"lmstudio"``.
        path: the path of a local file, or None.
        url: the URL from which the file was downloaded, or None.
        template: the text of an Ollama model's template layer (Go's ``text/template``, unlike
            ``Tokenizer.chat_template``, which is Jinja), or None.
    """

    name: str
    kind: str
    path: str | None = None
    url: str | None = None
    template: str | None = None


@dataclass(frozen=True)
class Found:
    """A model that was found. If its source has no path, `data` contains the file's metadata, and
    possibly some of its tensor descriptions."""

    source: Source
    data: bytes | None = None


# ---- split models ----

# Numbers have five digits and start at 1, as in llama_split_path.
_SHARD = re.compile(r"(?s)(.+)-([0-9]{5})-of-([0-9]{5})\.gguf", re.IGNORECASE)


def shard(path: str) -> tuple[str, int, int] | None:
    """Returns the part before the numbers, the file's number, and the number of files.

    Returns None if the model isn't split.
    """
    match = _SHARD.fullmatch(path)
    return (match[1], int(match[2]), int(match[3])) if match else None


def first(path: str) -> str:
    """Returns the path of a split model's first file, or the path itself for other models."""
    found = shard(path)
    if found is None or found[1] == 1:
        return path
    at = len(found[0]) + 1
    return path[:at] + "00001" + path[at + 5 :]


def first_shard(path: str) -> str:
    """Does the same as :func:`first` for a local path, but raises FileError if the first file is
    missing."""
    name = first(path)
    if name != path and os.path.exists(path) and not os.path.exists(name):
        raise not_found(
            f"{printable(path)}: the first file of a split model has the vocabulary, but "
            f"{printable(name)} is missing"
        )
    return name


# ---- the model's file in a repository ----

_DEFAULTS = ("Q4_K_M", "Q8_0")
_NO_MODELS = ("mmproj", "imatrix", "mtp-", "eagle3-", "dflash-", "dspark-")


def is_model(path: str) -> bool:
    """Whether this path (with ``/``) is that of a model, or of a split model's first file."""
    if not path.endswith(".gguf"):
        return False
    name = path.rpartition("/")[2]
    if any(word in name for word in _NO_MODELS):
        return False
    split = shard(path)
    return split is None or split[2] <= 1 or split[1] == 1


def choose(paths: Iterable[str], quant: str | None) -> str | None:
    """Returns the path of the model in a repository with these paths, or None."""
    models = [path for path in paths if is_model(path)]
    for wanted in (quant,) if quant else _DEFAULTS:
        pattern = re.compile(re.escape(wanted) + "[.-]", re.IGNORECASE)
        for path in models:
            if pattern.search(path):
                return path
    return models[0] if models and not quant else None


def no_model(name: str, paths: Iterable[str], quant: str | None) -> str:
    """Returns the error message for a repository without such a model."""
    models = sorted(path for path in paths if is_model(path))
    what = f"no GGUF model of quantization '{printable(quant)}'" if quant else "no GGUF model"
    if not models:
        return f"{printable(name)}: there is {what}"
    listed = ", ".join(printable(model, 200) for model in models[:8])
    more = f" and {len(models) - 8} more" if len(models) > 8 else ""
    return f"{printable(name)}: there is {what}; these are there: {listed}{more}"


# ---- the search of folders ----


@dataclass(frozen=True)
class Unreadable:
    """A folder or file that may contain models but can't be read, and the reason."""

    path: str
    reason: str


# The list to which `scan` and its callers add what they can't read; None if no list is needed.
Notes = list[Unreadable] | None


def note(notes: Notes, path: str, error: OSError) -> None:
    """Adds a path to `notes`, unless it is missing or inside a path that is already noted."""
    if notes is None or isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return
    if not any(path == known.path or path.startswith(known.path + os.sep) for known in notes):
        notes.append(Unreadable(path, error.strerror or str(error)))


def scan(folder: str, notes: Notes = None) -> list[os.DirEntry[str]]:
    """Returns the entries of a folder, sorted by name, or an empty list if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as e:
        note(notes, folder, e)
        return []


def in_any_case(folder: str, *names: str) -> str:
    """Joins `names` to a folder's path. A name that doesn't exist is replaced by an existing name
    that differs only in case."""
    for name in names:
        path = os.path.join(folder, name)
        if not os.path.exists(path):
            same = [e.path for e in scan(folder) if e.name.lower() == name.lower()]
            path = same[0] if same else path
        folder = path
    return folder


def files(folder: str, notes: Notes = None) -> Iterator[str]:
    """Returns the files in a folder and its subfolders, as relative paths with ``/`` on all
    platforms.

    Symbolic links are followed, each folder is visited once, and broken links are skipped.
    """
    return _files(folder, "", set(), notes)


def _files(folder: str, below: str, seen: set[tuple[int, int]], notes: Notes) -> Iterator[str]:
    try:
        stat = os.stat(folder)
    except OSError as e:
        note(notes, folder, e)
        return
    if (stat.st_dev, stat.st_ino) in seen:
        return
    seen.add((stat.st_dev, stat.st_ino))
    for entry in scan(folder, notes):
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # the entry is part of a cycle of links
            continue
        if is_folder:
            yield from _files(entry.path, f"{below}{entry.name}/", seen, notes)
        elif is_file:
            yield below + entry.name
