"""The files that ``ggtok count`` counts, and their tokens.

Files are counted on one thread for each core. A small file is one task. Larger files, and files of
unknown size, are split at positions where ``ggtok_safe_cut`` proves that splitting doesn't change
the ids (docs/design/blocks.md), and each part is a task. Only a few tasks wait at a time, so memory
use grows only with the longest stretch of text without such a position.
"""

from __future__ import annotations

import glob
import os
import stat
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path

import ggtok
from ggtok.base.escape import number
from ggtok.base.files import SNIFFED, check_regular
from ggtok.cli import input_texts, messages
from ggtok.corpora import sources
from ggtok.corpora.documents import Fields, other_encoding
from ggtok.errors import DocumentError
from ggtok.native import ADD_SPECIAL, NOT_FIRST_BLOCK, NOT_LAST_BLOCK, PARSE_SPECIAL
from ggtok.native.contexts import Blocks
from ggtok.text.batch_encoding import n_threads

# ---- the files ----

_GIT = ".git"  # git's own folder, which is skipped
_RULES = (".gitignore", ".ignore", os.path.join(".git", "info", "exclude"))


class FolderFilter:
    """Selects the files in folders.

    Args:
        include, exclude: as for :class:`ggtok.corpora.sources.GlobFilter`.
        ignore: whether to skip files that .gitignore and .ignore list.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str], ignore: bool) -> None:
        self._choice, self._ignore = sources.GlobFilter(include, exclude), ignore

    def files(self, paths: Sequence[str]) -> Iterator[str]:
        """Yields the files that the paths name, each only once: files, matches of globs, and the
        regular files in folders, sorted. Links in folders aren't followed.

        Raises:
            OSError: a folder can't be read.
        """
        seen: set[str] = set()
        real = cache(os.path.realpath)
        paths = [each for path in paths for each in _matches(path)]
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


def _matches(path: str) -> list[str]:
    """Returns the matches of a glob, or a list of only the path if it isn't a glob."""
    if os.path.lexists(path) or not glob.has_magic(path):
        return [path]
    return sorted(glob.glob(path, recursive=True)) or [path]


def _all(folder: str) -> Iterator[str]:
    def fail(error: OSError) -> None:
        raise error

    for here, folders, names in os.walk(folder, onerror=fail):
        folders[:] = [name for name in folders if name != _GIT]
        for name in names:
            yield os.path.join(here, name)


def _check_rules(folder: str) -> None:
    """Raises an error for a rule file that isn't regular, because rignore would wait for a FIFO, or
    read an endless device."""
    here = os.path.abspath(folder)
    folders = [here]
    while (above := os.path.dirname(here)) != here:
        folders.append(above)
        here = above
    for here in chain(folders, (here for here, _, _ in os.walk(folder))):
        for name in _RULES:
            path = os.path.join(here, name)
            try:
                status = os.stat(path)
            except OSError:  # the file doesn't exist
                continue
            if not stat.S_ISDIR(status.st_mode):
                check_regular(status, path)


def _not_ignored(folder: str) -> Iterator[str]:
    import rignore

    os.scandir(folder).close()  # raises an error that rignore would hide
    _check_rules(folder)
    has_others = False
    walker = rignore.walk(
        Path(folder),
        ignore_hidden=False,
        require_git=False,
        follow_links=False,
        overrides=[f"!{_GIT}"],
    )
    while True:
        try:
            path = next(walker)
        except StopIteration:
            break
        except ValueError:  # rignore skips a path that isn't UTF-8
            has_others = True
            continue
        name = str(path)
        if not os.path.isdir(name) or os.path.islink(name):
            yield name
    if has_others:
        # Paths that aren't UTF-8 can't be matched with the rules.
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


# ---- the files' tokens ----

# A part of a text, or a sequence of documents.
Text = bytearray | Sequence[bytes]

PART = 1 << 20  # the approximate size of a part in bytes
_SMALL = 4 << 20  # bytes; a file of at most this size is one task
# Parts of more bytes than this are counted on the main thread, where Ctrl-C stops the work at once.
_LONG = 16 << 20
_WAITING = 4  # tasks that may wait per thread
_TABLES = b"PAR1", b"ARROW1"  # the first bytes of Parquet and Arrow files


@dataclass
class Counted:
    """The number of tokens in a file, or the reason why the file isn't counted: ``skipped`` is
    "binary", "encoding" or "table", or ``error`` is a message."""

    path: str
    tokens: int = 0
    bytes: int = 0
    skipped: str | None = None
    error: str | None = None


class _Skipped(Exception):
    """Raised if a file isn't text. The argument is the value for ``Counted.skipped``."""


class FileCounter:
    """Counts the tokens in files, like ``tok.count`` for the whole text.

    Args:
        tok: the tokenizer.
        add_special, parse_special: as for ``tok.count``.
        binary: whether to also count files with a NUL near the beginning.
        fields: if given, lines are JSON objects, and these fields are the texts; if None, each
            file is a text.

    Attributes:
        bytes: the number of bytes counted so far.
        tokens: the number of tokens in these bytes.
    """

    def __init__(
        self,
        tok: ggtok.Tokenizer,
        *,
        add_special: bool,
        parse_special: bool,
        binary: bool,
        fields: Fields | None = None,
    ) -> None:
        self._tok = tok
        self._fields = fields
        self._flags = add_special * ADD_SPECIAL | parse_special * PARSE_SPECIAL
        self._sniffs = not binary
        self._own = threading.local()  # a context for each thread
        self._tasks: deque[tuple[Counted, Future[tuple[int, int]]]] = deque()
        self.bytes = 0
        self.tokens = 0

    def count(self, paths: Iterable[str]) -> Iterator[Counted | None]:
        """Yields the count for each file, in order, and sometimes None to report progress.

        ``-`` is standard input, which is never treated as binary.
        """
        n = n_threads(self._tok._loaded, 0)
        order: deque[Counted] = deque()
        with ThreadPoolExecutor(n, "ggtok count") as pool:
            try:
                for path in paths:
                    counted = Counted(path)
                    for _ in self._submit(pool, counted):
                        while len(self._tasks) > _WAITING * n:
                            self._finish()
                        yield None
                    order.append(counted)
                    while order and not (self._tasks and self._tasks[0][0] is order[0]):
                        yield order.popleft()
                while self._tasks:
                    self._finish()
                    yield None
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
        yield from order

    def _submit(self, pool: ThreadPoolExecutor, counted: Counted) -> Iterator[None]:
        """Submits a file's tasks, yielding after each."""
        with _recording_faults(counted):
            size = _size(counted.path)
            if size is not None and size <= _SMALL:
                self._tasks.append((counted, pool.submit(self._file, counted.path)))
                yield
                return
            for text, flags in self._texts(counted.path, size is not None):
                if len(text) > _LONG:
                    self._add(counted, self._part(text, flags))
                else:
                    self._tasks.append((counted, pool.submit(self._part, text, flags)))
                yield

    def _finish(self) -> None:
        """Waits for the oldest task, and adds its result."""
        counted, task = self._tasks.popleft()
        with _recording_faults(counted):
            self._add(counted, task.result())

    def _add(self, counted: Counted, done: tuple[int, int]) -> None:
        tokens, n = done
        counted.tokens += tokens
        counted.bytes += n
        self.tokens += tokens
        self.bytes += n

    # ---- tasks ----

    def _file(self, path: str) -> tuple[int, int]:
        """Returns the number of tokens and bytes in a file."""
        tokens = size = 0
        for text, flags in self._texts(path, True):
            more, n = self._part(text, flags)
            tokens, size = tokens + more, size + n
        return tokens, size

    def _part(self, text: Text, flags: int) -> tuple[int, int]:
        if not isinstance(text, bytearray):
            return self._documents(text)
        return len(self._blocks().encode(text, len(text), flags)) // 4, len(text)

    def _documents(self, texts: Sequence[bytes]) -> tuple[int, int]:
        counts = self._tok.count_batch(
            texts,
            add_special=bool(self._flags & ADD_SPECIAL),
            parse_special=bool(self._flags & PARSE_SPECIAL),
            threads=1,
        )
        return sum(counts), sum(map(len, texts))

    def _blocks(self) -> Blocks:
        own = self._own
        if not hasattr(own, "blocks"):
            own.blocks = Blocks(self._tok._loaded)
        blocks: Blocks = own.blocks
        return blocks

    def _checked(self, path: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """Yields the blocks of a file. Raises _Skipped if it isn't text."""
        left = SNIFFED if self._sniffs and path != "-" else 0
        encoding = None
        for block in blocks:
            encoding = other_encoding(block) if left == SNIFFED else encoding
            if left == SNIFFED and block.startswith(_TABLES):
                raise _Skipped("table")
            if left > 0 and b"\0" in block[:left]:
                raise _Skipped("encoding" if encoding else "binary")
            left -= len(block)
            yield block

    def _texts(self, path: str, regular: bool) -> Iterator[tuple[Text, int]]:
        """Yields the parts of a file that can be encoded separately, each with its flags."""
        with input_texts.blocks(path, regular=regular, decompress=True) as blocks:
            checked = self._checked(path, blocks)
            if self._fields is None:
                yield from self._parts(checked)
                return
            from ggtok.corpora.jsonl import Lenient, documents

            faults = Lenient("replace", input_texts.name_of(path))
            for texts in documents(checked, faults, self._fields):
                yield texts, self._flags

    def _parts(self, blocks: Iterator[bytes]) -> Iterator[tuple[Text, int]]:
        flags, text, enough = self._flags, bytearray(), PART
        for block in blocks:
            text += block
            if len(text) <= enough:
                continue
            n = self._blocks().safe_cut(text, flags)
            if not n:
                enough = 2 * len(text)
                continue
            yield text[:n], flags | NOT_LAST_BLOCK
            flags |= NOT_FIRST_BLOCK
            del text[:n]
            enough = max(PART, 2 * len(text))
        yield text, flags


@contextmanager
def _recording_faults(counted: Counted) -> Iterator[None]:
    """A context that records in `counted` why a file can't be counted."""
    try:
        yield
    except _Skipped as e:
        counted.skipped = str(e)
    except (OSError, DocumentError) as e:
        counted.error = messages.reason(e)


def _size(path: str) -> int | None:
    """Returns the size of a regular file, or None for any other input."""
    if path == "-":
        return None
    found = os.stat(path)
    return found.st_size if stat.S_ISREG(found.st_mode) else None
