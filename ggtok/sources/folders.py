"""Walking folders: what can't be read isn't there."""

from __future__ import annotations

import os
from collections.abc import Iterator


def scan(folder: str) -> list[os.DirEntry[str]]:
    """A folder's entries by name; none if it can't be read."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:
        return []


def files(folder: str) -> Iterator[str]:
    """The files in a folder and its subfolders, as paths from there with ``/`` on every
    platform. Links are followed, to each folder once; one that leads nowhere is no file."""
    return _files(folder, "", set())


def _files(folder: str, below: str, seen: set[tuple[int, int]]) -> Iterator[str]:
    try:
        stat = os.stat(folder)
    except OSError:
        return
    if (stat.st_dev, stat.st_ino) in seen:
        return
    seen.add((stat.st_dev, stat.st_ino))
    for entry in scan(folder):
        try:
            is_folder, is_file = entry.is_dir(), entry.is_file()
        except OSError:  # links in a circle
            continue
        if is_folder:
            yield from _files(entry.path, f"{below}{entry.name}/", seen)
        elif is_file:
            yield below + entry.name
