"""The tokens of many files of any size, counted on a thread for each core.

Small files are a task each. The others, and what has no size, are cut where
``ggtok_safe_cut`` proves that nothing reaches across (docs/design/blocks.md), and each part is
a task. Few tasks wait at a time, so that memory grows only with the longest stretch that can't
be cut.
"""

from __future__ import annotations

import os
import stat
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import dataclass

import ggtok
from ggtok.base.files import SNIFFED
from ggtok.cli import reading
from ggtok.cli.status import reason
from ggtok.corpora.fields import Fields
from ggtok.errors import DocumentError
from ggtok.native import ADD_SPECIAL, NOT_FIRST_BLOCK, NOT_LAST_BLOCK, PARSE_SPECIAL
from ggtok.native.contexts import Blocks
from ggtok.text.batches import n_threads

# A part of a text, or documents.
Text = bytearray | Sequence[bytes]

PART = 1 << 20  # bytes, about, of a part
_SMALL = 4 << 20  # bytes of a file that one task reads
# Bytes of a part that the main thread counts, which Ctrl-C stops at once.
_LONG = 16 << 20
_WAITING = 4  # tasks for each thread


@dataclass
class Counted:
    """A file's tokens, or why there are none."""

    path: str
    tokens: int = 0
    bytes: int = 0
    skipped: str | None = None
    error: str | None = None


class _Binary(Exception):
    pass


class Counter:
    """Counts files by a tokenizer, as ``tok.count`` would the whole of each.

    Args:
        tok: the tokenizer.
        add_special, parse_special: as of ``tok.count``.
        binary: whether files with a NUL near their beginning are counted, too.
        fields: the files' lines are JSON objects, and these fields the texts; None: files are
            texts.

    Attributes:
        bytes: how many bytes have been counted so far.
        tokens: how many tokens they are.
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
        """Each file's count, in order; None now and then, when some have been counted.

        ``-`` is standard input, which is never taken for binary.
        """
        n = n_threads(self._tok._native, 0)
        order: deque[Counted] = deque()
        with ThreadPoolExecutor(n, "ggtok count") as pool:
            try:
                for path in paths:
                    counted = Counted(path)
                    for _ in self._begin(pool, counted):
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

    def _begin(self, pool: ThreadPoolExecutor, counted: Counted) -> Iterator[None]:
        """Makes a file's tasks, one after the other."""
        try:
            size = _size(counted.path)
            if size is not None and size <= _SMALL:
                self._tasks.append((counted, pool.submit(self._file, counted.path)))
                yield
                return
            with self._blocks_of(counted.path, size is not None) as blocks:
                for text, flags in self._texts(counted.path, blocks):
                    if len(text) > _LONG:
                        self._add(counted, self._part(text, flags))
                    else:
                        self._tasks.append((counted, pool.submit(self._part, text, flags)))
                    yield
        except _Binary:
            counted.skipped = "binary"
        except (OSError, DocumentError) as e:
            counted.error = reason(e)

    def _finish(self) -> None:
        """Waits for the first task."""
        counted, task = self._tasks.popleft()
        try:
            self._add(counted, task.result())
        except _Binary:
            counted.skipped = "binary"
        except (OSError, DocumentError) as e:
            counted.error = reason(e)

    def _add(self, counted: Counted, done: tuple[int, int]) -> None:
        tokens, n = done
        counted.tokens += tokens
        counted.bytes += n
        self.tokens += tokens
        self.bytes += n

    # ---- tasks ----

    def _file(self, path: str) -> tuple[int, int]:
        """Tokens and bytes of a file."""
        tokens = size = 0
        with self._blocks_of(path, True) as blocks:
            for text, flags in self._texts(path, blocks):
                more, n = self._part(text, flags)
                tokens, size = tokens + more, size + n
        return tokens, size

    def _blocks_of(self, path: str, regular: bool) -> AbstractContextManager[Iterator[bytes]]:
        return reading.blocks(path, regular=regular, decompress=True)

    def _part(self, text: Text, flags: int) -> tuple[int, int]:
        if not isinstance(text, bytearray):
            return self._documents(text)
        return len(self._blocks().encode(text, len(text), flags)) // 4, len(text)

    def _documents(self, texts: Sequence[bytes]) -> tuple[int, int]:
        ids, _ = self._tok.encode_batch_arrays(
            texts,
            add_special=bool(self._flags & ADD_SPECIAL),
            parse_special=bool(self._flags & PARSE_SPECIAL),
            threads=1,
        )
        return len(ids), sum(map(len, texts))

    def _blocks(self) -> Blocks:
        own = self._own
        if not hasattr(own, "blocks"):
            own.blocks = Blocks(self._tok._native)
        blocks: Blocks = own.blocks
        return blocks

    def _checked(self, path: str, blocks: Iterator[bytes]) -> Iterator[bytes]:
        """The same blocks, if they aren't those of a binary file."""
        left = SNIFFED if self._sniffs and path != "-" else 0
        for block in blocks:
            if left > 0 and b"\0" in block[:left]:
                raise _Binary
            left -= len(block)
            yield block

    def _texts(self, path: str, blocks: Iterator[bytes]) -> Iterator[tuple[Text, int]]:
        """What may be encoded alone: parts of a text, or some documents."""
        checked = self._checked(path, blocks)
        if self._fields is None:
            return self._parts(checked)
        from ggtok.corpora.jsonl import Lenient, documents

        faults = Lenient("replace", reading.STDIN if path == "-" else path)
        return ((texts, self._flags) for texts in documents(checked, faults, self._fields))

    def _parts(self, blocks: Iterator[bytes]) -> Iterator[tuple[Text, int]]:
        """A text in parts that may be encoded alone, and the flags to do so."""
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


def _size(path: str) -> int | None:
    """A file's size; None: it is another kind of file, as a path that was given may be."""
    if path == "-":
        return None
    found = os.stat(path)
    return found.st_size if stat.S_ISREG(found.st_mode) else None
