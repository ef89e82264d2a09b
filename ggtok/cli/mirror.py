"""The rules of .gitignore for files whose paths are not UTF-8, which rignore doesn't name.

A copy of the folder is made that has these files, empty and under other names, and the files of
rules. What the rules leave of the copy tells what they leave of the folder.
"""

from __future__ import annotations

import os
import re
import stat
import tempfile
from collections.abc import Callable, Iterable, Iterator

from ggtok.base.reading import read_regular

RULES = (".gitignore", ".ignore", os.path.join(".git", "info", "exclude"))
_RULES_MOST = 1 << 24  # bytes
_ODD = re.compile("[\ud800-\udfff]")  # bytes that are not UTF-8, as names of files have them


def not_ignored(folder: str, walk: Callable[[str], Iterable[str]]) -> Iterator[str]:
    """The regular files below `folder` whose paths are not UTF-8 and that `walk`, which obeys
    the rules, would give."""
    whole = os.path.abspath(folder)
    with tempfile.TemporaryDirectory(prefix="ggtok-") as root:
        originals: dict[str, str] = {}
        above: set[str] = set()
        for path in _odd_files(folder):
            place = os.path.normpath(os.path.join(whole, os.path.relpath(path, folder)))
            copied = _copied(root, place)
            os.makedirs(os.path.dirname(copied), exist_ok=True)
            open(copied, "wb").close()
            originals[copied] = path
            while (parent := os.path.dirname(place)) != place and parent not in above:
                above.add(parent)
                place = parent
        for parent in above:
            _copy_rules(parent, _copied(root, parent))
        if originals:
            yield from (originals[path] for path in walk(_copied(root, whole)) if path in originals)


def _odd_files(folder: str) -> Iterator[str]:
    for here, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(here, name)
            if _ODD.search(path) and stat.S_ISREG(os.lstat(path).st_mode):
                yield path


def _translated(text: str) -> str:
    """Private characters in place of bytes that are not UTF-8: equal bytes, equal characters."""
    return _ODD.sub(lambda odd: chr(ord(odd[0]) - 0xD800 + 0xE000), text)


def _copied(root: str, path: str) -> str:
    """Where the copy of an absolute path is."""
    return os.path.join(root, _translated(os.path.splitdrive(path)[1]).lstrip(os.sep))


def _copy_rules(folder: str, copied: str) -> None:
    for name in RULES:
        try:
            rules = read_regular(os.path.join(folder, name), _RULES_MOST)
        except OSError:  # there are none
            continue
        os.makedirs(os.path.dirname(os.path.join(copied, name)), exist_ok=True)
        with open(os.path.join(copied, name), "w", encoding="utf-8") as f:
            f.write(_translated(rules.decode("utf-8", "surrogateescape")))
