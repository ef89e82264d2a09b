"""Finds the files that paths, folders and globs name, and derives their kinds from their names."""

from __future__ import annotations

import glob
import os
import re
import stat
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ggtok.base.escape import quoted
from ggtok.errors import (
    InvalidTypeError,
    InvalidValueError,
    VocabWarning,
    file_error,
    not_found,
)
from ggtok.loading.loaded import checked_path
from ggtok.native.arguments import is_one_of, iterate

# The kind of a file by its extension, after removing a compression extension such as .gz. Files
# with other extensions are text.
KINDS = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".parquet": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".json": "json",
}
NAMES = ("text", "jsonl", "parquet", "arrow")
COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
TABLES = ("parquet", "arrow")


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file, with the size and time by which changes are detected.

    Attributes:
        kind: one of NAMES, or "json" if the contents must decide (:func:`.decide_json_kinds`).
        compression: "" or one of COMPRESSIONS.
        size: the number of bytes on disk (compressed).
        mtime: the modification time in nanoseconds.
    """

    path: str
    kind: str
    compression: str
    size: int
    mtime: int


class Own:
    """The files of an output, which can't be sources. They are recognized by absolute path or by
    inode, since a source may be a link to an output file."""

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


class Search:
    """Finds the files that paths, folders and globs name, but each real path only once.

    Args:
        own: the paths of the output's files, which are ignored in folders.
        choice: selects among the files in folders and from globs.
        kind: the kind of all files, one of NAMES, or None if each file's name decides.
    """

    def __init__(
        self, own: Iterable[str] = (), choice: GlobFilter | None = None, kind: str | None = None
    ) -> None:
        self._own = Own(own)
        self._choice = choice or GlobFilter()
        self._kind = kind
        self._seen: set[str] = set()
        self._found: list[SourceFile] = []
        self._dangling: dict[str, None] = {}

    def find(self, sources: object) -> list[SourceFile]:
        """Returns the files that one or several paths name, in order, except files that this search
        has already found. The files of a folder or a glob are sorted."""
        if isinstance(sources, (str, bytes, os.PathLike)):
            sources = [sources]
        what = "sources must be a path or an iterable of paths"
        if not isinstance(sources, Iterable):
            raise InvalidTypeError(f"{what}, not {type(sources).__name__}")
        self._found, self._dangling = [], {}
        for each in iterate(sources, what):
            if not isinstance(each, (str, bytes, os.PathLike)):
                raise InvalidTypeError(f"{what}, but one is {type(each).__name__}")
            self._add(os.fsdecode(checked_path(each, "sources")))
        if self._dangling:
            warnings.warn(_about(list(self._dangling)), VocabWarning, stacklevel=2)
        if not self._seen:
            raise InvalidValueError(
                "no sources: the list is empty, or no file in the folders is selected"
            )
        return self._found

    def _add(self, path: str) -> None:
        if "\0" in path:
            raise InvalidValueError("sources: a path with a NUL character")
        try:
            status = os.stat(path)
        except OSError as e:
            if not glob.has_magic(path):
                raise file_error(e.errno or 0, e.strerror or str(e), path) from None
            matches = sorted(expand_glob(path))
            if not matches:
                raise not_found(f"{path}: no file matches") from None
            for match in matches:
                self._add_match(match)
            return
        if stat.S_ISDIR(status.st_mode):
            self._add_folder(path)
        elif self._own.has(path, status):
            raise InvalidValueError(f"{path}: is both a source and the output")
        elif stat.S_ISREG(status.st_mode):
            self._add_file(path, os.path.realpath(path), status)
        else:
            raise InvalidValueError(
                f"{path}: not a regular file, so a resumed run couldn't read it again"
            )

    def _add_match(self, path: str) -> None:
        """Adds a match of a glob: a file, or a folder with its contents."""
        status = self._status(path)
        name = _plain(path).replace(os.sep, "/")
        if status is None or self._choice.excludes(name):
            return
        if stat.S_ISDIR(status.st_mode):
            self._add_folder(path)
        elif self._choice.has(name):
            self._add_other(path, os.path.realpath(path), status)

    def _add_folder(self, path: str) -> None:
        """Adds the files in a folder and its subfolders, sorted by path, without hidden files and
        folders. Links are followed, but each folder is entered only once."""
        waiting = [(path, os.path.realpath(path), "")]
        entered = set()
        while waiting:
            folder, real, relative = waiting.pop()
            if real in entered:
                continue
            entered.add(real)
            below = []
            for entry in entries_of(folder):
                name = relative + entry.name
                status = None if self._choice.excludes(name) else self._status(entry.path)
                if status is None:
                    continue
                is_link = entry.is_symlink()
                at = os.path.realpath(entry.path) if is_link else os.path.join(real, entry.name)
                if stat.S_ISDIR(status.st_mode):
                    below.append((entry.path, at, name + "/"))
                elif self._choice.has(name):
                    self._add_other(entry.path, at, status)
            waiting += reversed(below)

    def _status(self, path: str) -> os.stat_result | None:
        """Returns the status of a path that was found in a folder or by a glob, or None for a
        dangling link."""
        try:
            return os.stat(path)
        except OSError as e:
            if not os.path.islink(path):
                raise file_error(e.errno or 0, e.strerror or str(e), path) from None
        self._dangling[_plain(path)] = None
        return None

    def _add_other(self, path: str, real: str, status: os.stat_result) -> None:
        """Adds a file that was found in a folder or by a glob, unless it is a FIFO, a device or
        part of the output."""
        if stat.S_ISREG(status.st_mode) and not self._own.has(path, status):
            self._add_file(path, real, status)

    def _add_file(self, path: str, real: str, status: os.stat_result) -> None:
        if real not in self._seen:
            self._seen.add(real)
            self._found.append(_source(_plain(path), status, self._kind))


def _about(links: list[str]) -> str:
    more = f" (and {len(links) - 1} more)" if len(links) > 1 else ""
    return f"{links[0]}: a dangling link is skipped{more}"


def _plain(path: str) -> str:
    """Returns the shortest spelling of a path: ``./in`` becomes ``in``. Paths with ``..`` are kept,
    since ``..`` after a link isn't the folder that contains the link."""
    return path if os.pardir in path.split(os.sep) else os.path.normpath(path)


def checked_kind(kind: object) -> str | None:
    """Checks a caller's argument for the kind of files."""
    if kind is not None and not is_one_of(kind, NAMES):
        raise InvalidValueError(f"kind must be one of {', '.join(NAMES)}, not {quoted(kind)}")
    return None if kind is None else str(kind)


def _source(path: str, status: os.stat_result, kind: str | None) -> SourceFile:
    name = path.lower()
    compression = compression_of(path)
    kind = kind or KINDS.get(os.path.splitext(name.removesuffix(compression))[1], "text")
    if compression and kind in TABLES:
        raise InvalidValueError(
            f"{path}: {kind} files are compressed inside, so {compression} around one can't be "
            "read in parts: decompress it"
        )
    return SourceFile(path, kind, compression, status.st_size, status.st_mtime_ns)


def compression_of(path: str) -> str:
    """Returns a file's compression according to its name: "" or one of COMPRESSIONS."""
    extension = os.path.splitext(path)[1].lower()
    return extension if extension in COMPRESSIONS else ""


def has_changed(source: SourceFile, status: os.stat_result) -> bool:
    return (source.size, source.mtime) != (status.st_size, status.st_mtime_ns)


class GlobFilter:
    """Selects files in a folder.

    Args:
        include, exclude: globs. A glob without ``/`` is matched against names, others against paths
            relative to the folder. An excluded folder is excluded with all its contents.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include, self._exclude = include, exclude

    @classmethod
    def checked(cls, include: object, exclude: object) -> GlobFilter:
        """Checks and converts a caller's arguments, each of which is one or several globs."""
        return cls(_globs(include, "include"), _globs(exclude, "exclude"))

    def excludes(self, path: str) -> bool:
        """Whether the path itself is excluded, ignoring the folders above it."""
        return bool(self._exclude) and _matches(path, self._exclude)

    def has(self, path: str) -> bool:
        """Whether the globs select a file, without checking the folders above it."""
        return not self.excludes(path) and (not self._include or _matches(path, self._include))

    def has_below(self, path: str) -> bool:
        """Whether the globs select a file and exclude no folder above it."""
        parts = path.split("/")
        above = ("/".join(parts[:n]) for n in range(1, len(parts)))
        return not any(map(self.excludes, above)) and self.has(path)


def _globs(named: object, what: str) -> list[str]:
    globs = [named] if isinstance(named, str) else named
    if not isinstance(globs, (list, tuple)) or not all(isinstance(each, str) for each in globs):
        raise InvalidTypeError(f"{what} must be str or a list of str, not {type(named).__name__}")
    return list(globs)


def _matches(path: str, globs: Sequence[str]) -> bool:
    name = path.rpartition("/")[2]
    return any(fnmatchcase(path if "/" in glob else name, glob) for glob in globs)


_SEPARATOR = f"[{re.escape(os.sep + (os.altsep or ''))}]"
# Matches ``**/``, possibly repeated, or ``**`` at the end.
_DEEP = re.compile(rf"(?:^|(?<={_SEPARATOR}))(?:\*\*(?:{_SEPARATOR}+|$))+")


def expand_glob(pattern: str) -> set[str]:
    """Returns the paths that a glob matches, as in ``glob.glob(pattern, recursive=True)``, with
    three differences: ``**`` enters each folder only once, even if links form a cycle; an
    unreadable folder raises FileError; and ``**`` at the end matches only the folders before it,
    which represent all of their contents."""
    found = _DEEP.search(pattern)
    if found is None:
        return set(glob.glob(pattern))
    above, below = pattern[: found.start()], pattern[found.end() :]
    folders = expand_glob(above) if above else {""}
    folders = {folder for folder in folders if os.path.isdir(folder or ".")}
    if not below:
        return {folder or "." for folder in folders}
    return {
        path
        for folder in folders
        for each in folders_below(folder)
        for path in expand_glob(glob.escape(os.path.join(each, "")) + below if each else below)
    }


def folders_below(folder: str) -> Iterator[str]:
    """Yields a folder and its subfolders, except hidden folders. Links are followed, but each
    folder is yielded only once."""
    waiting = [folder]
    seen = set()
    while waiting:
        path = waiting.pop()
        real = os.path.realpath(path or ".")
        if real in seen:
            continue
        seen.add(real)
        yield path
        below = (os.path.join(path, entry.name) for entry in reversed(entries_of(path)))
        waiting += filter(os.path.isdir, below)


def entries_of(folder: str) -> list[os.DirEntry[str]]:
    """Returns the entries of a folder, sorted by name, except hidden entries."""
    try:
        with os.scandir(folder or ".") as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), folder) from None
    return sorted(found, key=lambda entry: entry.name)
