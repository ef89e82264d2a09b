"""The files of folders, without those that .gitignore names."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import chain
from pathlib import Path

from ggtok.base.escape import number
from ggtok.base.files import check_regular
from ggtok.cli import messages
from ggtok.corpora import patterns

_NEVER = ".git"  # what git itself keeps
_RULES = (".gitignore", ".ignore", os.path.join(".git", "info", "exclude"))


class Choice:
    """Which files of a folder are meant.

    Args:
        include, exclude: as of :class:`ggtok.corpora.patterns.Choice`.
        ignore: whether .gitignore and .ignore are obeyed.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str], ignore: bool) -> None:
        self._choice, self._ignore = patterns.Choice(include, exclude), ignore

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """The paths, each file once; in place of a folder its regular files, sorted. Links in it
        aren't followed.

        Raises:
            OSError: a folder can't be read.
        """
        seen: set[str] = set()
        real = cache(os.path.realpath)
        for path in paths:
            is_folder = path != "-" and os.path.isdir(path)
            for each in sorted(self._folder(path)) if is_folder else [path]:
                if len(paths) > 1:
                    folder, name = os.path.split(each)
                    at = os.path.join(real(folder), name) if is_folder else os.path.realpath(each)
                    if each != "-" and at in seen:
                        continue
                    seen.add(at)
                yield each

    def _folder(self, folder: str) -> Iterator[str]:
        walked = _not_ignored(folder) if self._ignore else _all(folder)
        for path in walked:
            relative = os.path.relpath(path, folder).replace(os.sep, "/")
            if self._choice.has_below(relative) and _is_regular(path):
                yield path


def _all(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise error

    for here, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name != _NEVER]
        for name in names:
            yield os.path.join(here, name)


def _check_rules(folder: str) -> None:
    """Refuses files of rules that aren't regular: rignore would wait for a FIFO, and read a link
    to a device without end."""
    here = os.path.abspath(folder)
    places = [here]
    while (above := os.path.dirname(here)) != here:
        places.append(above)
        here = above
    for place in chain(places, (here for here, _, _ in os.walk(folder))):
        for name in _RULES:
            path = os.path.join(place, name)
            try:
                status = os.stat(path)
            except OSError:  # there is none
                continue
            if not stat.S_ISDIR(status.st_mode):
                check_regular(status, path)


def _not_ignored(folder: str) -> Iterator[str]:
    import rignore

    os.scandir(folder).close()  # of which rignore says nothing if it can't be read
    _check_rules(folder)
    odd = False
    walker = rignore.walk(
        Path(folder),
        ignore_hidden=False,
        require_git=False,
        follow_links=False,
        overrides=[f"!{_NEVER}"],
    )
    while True:
        try:
            path = next(walker)
        except StopIteration:
            break
        except ValueError:  # a path that isn't UTF-8 is not given
            odd = True
            continue
        name = str(path)
        if not os.path.isdir(name) or os.path.islink(name):
            yield name
    if odd:
        # No rule can be matched with them.
        found = [path for path in _all(folder) if not _is_utf8(path) and _is_regular(path)]
        if found:
            messages.warn(
                f"{number(len(found), 'file')} with a path that isn't UTF-8: counted, whatever "
                ".gitignore says"
            )
        yield from found


def _is_regular(path: str) -> bool:
    return stat.S_ISREG(os.lstat(path).st_mode)


def _is_utf8(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
