"""Paths, folders and globs to a list of files, each with what its name says it holds."""

from __future__ import annotations

import glob
import os
import stat
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ggtok.errors import InvalidTypeError, InvalidValueError, file_error, not_found
from ggtok.native.arguments import iterated

# How a file's name ends, without that of a compression: what kind of file it is. All else is text.
KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
}
COMPRESSIONS = (".gz", ".zst")
TABLES = ("parquet", "arrow")


@dataclass(frozen=True, slots=True)
class Source:
    """A file, and what tells it from a changed one.

    Attributes:
        kind: "text", "jsonl", "parquet" or "arrow".
        compression: "", ".gz" or ".zst".
        size: bytes, as it lies on the disk.
        mtime: when it was last changed, nanoseconds.
    """

    path: str
    kind: str
    compression: str
    size: int
    mtime: int


class Own:
    """The files of an output, by their absolute paths or as the files that they are: a source may
    be a link to one."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._paths = frozenset(paths)
        self._files = set()
        for path in self._paths:
            with suppress(OSError):
                status = os.stat(path)
                self._files.add((status.st_dev, status.st_ino))

    def has(self, path: str, status: os.stat_result) -> bool:
        known = (status.st_dev, status.st_ino) in self._files
        return known or os.path.abspath(path) in self._paths


def find(sources: object, own: Iterable[str]) -> list[Source]:
    """The files that `sources` name: a path, or an iterable of paths; in order, those of a
    folder or a glob sorted. `own` are the paths of the output's files, which folders may hold."""
    if isinstance(sources, (str, bytes, os.PathLike)):
        sources = [sources]
    what = "sources must be a path or an iterable of paths"
    if not isinstance(sources, Iterable):
        raise InvalidTypeError(f"{what}, not {type(sources).__name__}")
    found: list[Source] = []
    output = Own(own)
    for each in iterated(sources, what):
        if not isinstance(each, (str, bytes, os.PathLike)):
            raise InvalidTypeError(f"{what}, but one is {type(each).__name__}")
        found += _of_path(os.fsdecode(each), output)
    if not found:
        raise InvalidValueError("no sources: the list is empty, or the folders hold no files")
    return found


def _of_path(path: str, own: Own) -> Iterator[Source]:
    if "\0" in path:
        raise InvalidValueError("sources: a path with a NUL character")
    try:
        status = os.stat(path)
    except OSError as e:
        if not glob.has_magic(path):
            raise file_error(e.errno or 0, e.strerror or str(e), path) from None
        matches = sorted(glob.glob(path, recursive=True))
        if not matches:
            raise not_found(f"{path}: no file matches") from None
        for match in matches:
            yield from _within(match, own)
        return
    if stat.S_ISDIR(status.st_mode):
        yield from _folder(path, own)
    elif own.has(path, status):
        raise InvalidValueError(f"{path}: a source and the output at once")
    elif stat.S_ISREG(status.st_mode):
        yield _source(path, status)
    else:
        raise InvalidValueError(
            f"{path}: not a regular file; a run that was stopped must be able to read it again"
        )


def _within(path: str, own: Own) -> Iterator[Source]:
    """What a folder or a glob names: whatever isn't a file is passed over."""
    if os.path.isdir(path):
        yield from _folder(path, own)
        return
    try:
        status = os.stat(path)
    except OSError:  # a link that leads nowhere
        return
    if stat.S_ISREG(status.st_mode) and not own.has(path, status):
        yield _source(path, status)


def _folder(path: str, own: Own) -> Iterator[Source]:
    """The files in a folder and those below it, sorted by path, without hidden ones."""

    def fail(e: OSError) -> None:
        raise file_error(e.errno or 0, e.strerror or str(e), e.filename or path) from None

    for folder, folders, names in os.walk(path, onerror=fail):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted(names):
            if not name.startswith("."):
                yield from _within(os.path.join(folder, name), own)


def _source(path: str, status: os.stat_result) -> Source:
    name = path.lower()
    compression = compression_of(path)
    kind = KINDS.get(os.path.splitext(name.removesuffix(compression))[1], "text")
    if compression and kind in TABLES:
        raise InvalidValueError(
            f"{path}: {kind} files are compressed inside, so {compression} around one can't be "
            "read in parts: decompress it"
        )
    return Source(path, kind, compression, status.st_size, status.st_mtime_ns)


def compression_of(path: str) -> str:
    """How the file's name says that it is compressed: "", ".gz" or ".zst"."""
    return next((end for end in COMPRESSIONS if path.lower().endswith(end)), "")


def changed(source: Source, status: os.stat_result) -> bool:
    return (source.size, source.mtime) != (status.st_size, status.st_mtime_ns)
