"""Globs: which files of folders are meant, and which paths a pattern names."""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase

from ggtok.errors import InvalidTypeError, file_error


class Choice:
    """Which files of a folder are meant.

    Args:
        include, exclude: globs; one without ``/`` is matched with names, else with paths from
            the folder. What is excluded is so with all that is in it.
    """

    def __init__(self, include: Sequence[str] = (), exclude: Sequence[str] = ()) -> None:
        self._include, self._exclude = include, exclude

    @classmethod
    def checked(cls, include: object, exclude: object) -> Choice:
        """Of a caller's arguments: each a glob, or several."""
        return cls(_globs(include, "include"), _globs(exclude, "exclude"))

    def excludes(self, path: str) -> bool:
        """Whether a file or folder is excluded by its own path."""
        return bool(self._exclude) and _matches(path, self._exclude)

    def has(self, path: str) -> bool:
        """Whether a file is meant that is in no excluded folder."""
        return not self.excludes(path) and (not self._include or _matches(path, self._include))

    def has_below(self, path: str) -> bool:
        """Whether a file is meant, the folders above it considered."""
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
# ``**/``, which may be repeated, or ``**`` at the end.
_DEEP = re.compile(rf"(?:^|(?<={_SEPARATOR}))(?:\*\*(?:{_SEPARATOR}+|$))+")


def expanded(pattern: str) -> set[str]:
    """The paths that a glob matches, as ``glob.glob(pattern, recursive=True)`` finds them. But
    ``**`` enters each folder once, where glob follows links that lead back without end, and raises
    a FileError for one that can't be read; and a ``**`` at the end stands for the folders before
    it, with all that is in them."""
    found = _DEEP.search(pattern)
    if found is None:
        return set(glob.glob(pattern))
    above, below = pattern[: found.start()], pattern[found.end() :]
    folders = expanded(above) if above else {""}
    folders = {folder for folder in folders if os.path.isdir(folder or ".")}
    if not below:
        return {folder or "." for folder in folders}
    return {
        path
        for folder in folders
        for each in folders_below(folder)
        for path in expanded(glob.escape(os.path.join(each, "")) + below if each else below)
    }


def folders_below(folder: str) -> Iterator[str]:
    """A folder and those below it, each once, without hidden ones; links are followed."""
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
    """What is in a folder, sorted, without what is hidden."""
    try:
        with os.scandir(folder or ".") as entries:
            found = [entry for entry in entries if not entry.name.startswith(".")]
    except OSError as e:
        raise file_error(e.errno or 0, e.strerror or str(e), folder) from None
    return sorted(found, key=lambda entry: entry.name)
