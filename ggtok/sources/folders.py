"""Walking folders. What can't be read counts as missing, but is noted for whoever asks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Unreadable:
    """A folder or file that may hold models, and why it can't be read."""

    path: str
    reason: str


# Where `scan` and its callers note what they can't read; None: nobody asks.
Notes = list[Unreadable] | None


def note(notes: Notes, path: str, error: OSError) -> None:
    """What is missing isn't unreadable, and what is below such a folder is not told again."""
    if notes is None or isinstance(error, (FileNotFoundError, NotADirectoryError)):
        return
    if not any(path == known.path or path.startswith(known.path + os.sep) for known in notes):
        notes.append(Unreadable(path, error.strerror or str(error)))


def scan(folder: str, notes: Notes = None) -> list[os.DirEntry[str]]:
    """A folder's entries by name; none if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError as e:
        note(notes, folder, e)
        return []


def files(folder: str, notes: Notes = None) -> Iterator[str]:
    """The files in a folder and its subfolders, as paths from there with ``/`` on every
    platform. Links are followed, to each folder once; one that leads nowhere is no file."""
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
        except OSError:  # links in a circle
            continue
        if is_folder:
            yield from _files(entry.path, f"{below}{entry.name}/", seen, notes)
        elif is_file:
            yield below + entry.name
