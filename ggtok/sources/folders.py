"""Walks folders. Unreadable folders are treated as missing, and reported on request."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Unreadable:
    """A folder or file that can't be read and may contain models, and the reason."""

    path: str
    reason: str


# Collects what `scan` and its callers can't read; None: don't collect.
Notes = list[Unreadable] | None


def note(notes: Notes, path: str, error: OSError) -> None:
    """Adds a path to `notes`, unless it is missing or inside a path that is already noted."""
    if notes is None or isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return
    if not any(path == known.path or path.startswith(known.path + os.sep) for known in notes):
        notes.append(Unreadable(path, error.strerror or str(error)))


def scan(folder: str, notes: Notes = None) -> list[os.DirEntry[str]]:
    """The entries of a folder, sorted by name; empty if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as e:
        note(notes, folder, e)
        return []


def files(folder: str, notes: Notes = None) -> Iterator[str]:
    """The files in a folder and its subfolders, as relative paths with ``/`` on all platforms.

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
        except OSError:  # a cycle of links
            continue
        if is_folder:
            yield from _files(entry.path, f"{below}{entry.name}/", seen, notes)
        elif is_file:
            yield below + entry.name
