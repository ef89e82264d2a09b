"""The training functions from ggtok.h."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np

from ggtok import errors
from ggtok.native.library import error, ffi, lib
from ggtok.native.native_tokenizer import Split, Splitter

if TYPE_CHECKING:
    from numpy.typing import NDArray

SYMBOL_SPACE: int = lib.GGTOK_SYMBOL_SPACE
SYMBOL_ONLY_SPACES: int = lib.GGTOK_SYMBOL_ONLY_SPACES
SYMBOL_ALONE: int = lib.GGTOK_SYMBOL_ALONE

_ROW = np.dtype(
    [
        ("left", "u4"),
        ("right", "u4"),
        ("made", "u4"),
        ("pad", "u4"),
        ("count", "u8"),
        ("replaced", "u8"),
    ]
)
assert _ROW.itemsize == ffi.sizeof("ggtok_merge_row")

_functions: list[Any] = []
if not lib.ggtok_train_bind(id(_functions)):
    raise errors.OutOfMemoryError("out of memory")  # pragma: no cover
(_spell,) = _functions


def pre_is_raw(name: str) -> bool:
    """Calls ggtok_pre_is_raw."""
    return bool(lib.ggtok_pre_is_raw(ffi.new("char[]", name.encode("utf-8", "replace"))))


@dataclass(frozen=True)
class Info:
    """The fields of a ggtok_counts_info."""

    n_words: int
    word_bytes: int
    total: int
    total_bytes: int
    dropped_words: int
    dropped: int
    memory: int


class WordCountTable:
    """A ggtok_counts. Each thread adds to it through its own :class:`Counter`."""

    def __init__(
        self,
        *,
        pre: str | None = None,
        split: Split | None = None,
        spaces: bool = False,
        max_words: int = 0,
    ) -> None:
        self._splitter = None if split is None else Splitter(split)
        self._handle = ffi.NULL if split is None else ffi.new_handle(self._splitter)
        name = ffi.NULL if pre is None else ffi.new("char[]", pre.encode("utf-8", "replace"))
        options = ffi.new("ggtok_counts_options *")
        options.cut = (
            lib.GGTOK_CUT_PRE
            if pre is not None
            else lib.GGTOK_CUT_SPACES
            if spaces
            else lib.GGTOK_CUT_CALLER
        )
        options.pre = name
        options.max_words = max_words
        if split is not None:
            options.split, options.split_user = lib.ggtok_python_split, self._handle
        out, err = ffi.new("ggtok_counts **"), ffi.new("ggtok_error *")
        if lib.ggtok_counts_new(options, out, err):
            raise error(err, pre=pre)
        self._counts = ffi.gc(out[0], lib.ggtok_counts_free)

    def info(self) -> Info:
        info = lib.ggtok_counts_get_info(self._counts)
        return Info(*(getattr(info, name) for name in Info.__dataclass_fields__))

    def arrays(self) -> tuple[NDArray[np.uint8], NDArray[np.uint64], NDArray[np.uint64]]:
        """Returns the concatenated words, most frequent first, their end offsets and counts."""
        info = self.info()
        words = np.empty(info.word_bytes, np.uint8)
        ends, times = np.empty(info.n_words, np.uint64), np.empty(info.n_words, np.uint64)
        err = ffi.new("ggtok_error *")
        if lib.ggtok_counts_copy(
            self._counts,
            ffi.from_buffer("char[]", words, require_writable=True),
            ffi.from_buffer("size_t[]", ends, require_writable=True),
            ffi.from_buffer("uint64_t[]", times, require_writable=True),
            err,
        ):
            raise error(err)
        return words, ends, times

    def cut_at(self, texts: Sequence[bytes], boundary: bytes) -> WordCountTable:
        """Calls ggtok_counts_cut_at. Returns self if no word contains any of the texts."""
        ends = ffi.new("size_t[]", list(accumulate(map(len, texts))))
        cut, found, err = WordCountTable(), ffi.new("bool *"), ffi.new("ggtok_error *")
        if lib.ggtok_counts_cut_at(
            *(self._counts, b"".join(texts), ends, len(texts), boundary),
            *(cut._counts, found, err),
        ):
            raise error(err)
        return cut if found[0] else self

    def chars(self) -> list[tuple[int, int]]:
        """Returns code points with their counts, most frequent first."""
        out, n, err = ffi.new("ggtok_char_count **"), ffi.new("size_t *"), ffi.new("ggtok_error *")
        if lib.ggtok_counts_chars(self._counts, out, n, err):
            raise error(err)
        rows = ffi.gc(out[0], lib.ggtok_chars_free)
        return [(rows[i].code, rows[i].count) for i in range(n[0])]


class WordCounter:
    """A ggtok_counter, used by one thread."""

    def __init__(self, counts: WordCountTable) -> None:
        out, err = ffi.new("ggtok_counter **"), ffi.new("ggtok_error *")
        if lib.ggtok_counter_new(counts._counts, out, err):
            raise error(err)
        self._counter = ffi.gc(out[0], lib.ggtok_counter_free)
        self._counts = counts

    def _check(self, status: int, err: Any) -> None:
        splitter = self._counts._splitter
        failure = splitter.take_failure() if splitter is not None else None
        if failure is not None:
            raise failure
        if status:
            raise error(err)

    def add(self, text: object, lines: bool) -> None:
        """Counts the words of a bytes-like object."""
        err = ffi.new("ggtok_error *")
        with ffi.from_buffer("char[]", text) as view:
            self._check(lib.ggtok_counter_add(self._counter, view, len(view), lines, err), err)

    def add_words(self, words: object, ends: NDArray[np.uint64], times: NDArray[np.uint64]) -> None:
        """Adds words with their counts."""
        err = ffi.new("ggtok_error *")
        with (
            ffi.from_buffer("char[]", words) as text,
            ffi.from_buffer("size_t[]", ends) as at,
            ffi.from_buffer("uint64_t[]", times) as n,
        ):
            status = lib.ggtok_counter_add_words(
                self._counter, text, len(text), at, n, len(ends), err
            )
            self._check(status, err)

    def flush(self) -> None:
        err = ffi.new("ggtok_error *")
        self._check(lib.ggtok_counter_flush(self._counter, err), err)


# ---- merging ----

# A callback that gets the number of merges so far and the count of the last merge.
Progress = Callable[[int, int], None]


@dataclass(frozen=True)
class Symbol:
    """The fields of a ggtok_symbol."""

    code: int
    number: int
    script: int = 0
    kind: int = 0


class _ProgressCaller:
    """A `Progress` for ggtok_python_merge to call, and the exception that it raised."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress = progress
        self.failed: BaseException | None = None

    def __call__(self, progress: Any) -> bool:
        try:
            if self.progress is not None:
                self.progress(progress.n_merges, progress.count)
        except BaseException as e:
            self.failed = e
            return False
        return True


def _outside(kind: type, raised: BaseException, traceback: Any) -> None:
    """Handles an exception raised before the first line of ggtok_python_merge.

    Only a signal handler can raise one there.
    """
    ffi.from_handle(traceback.tb_frame.f_locals["user"]).failed = raised


@ffi.def_extern(error=False, onerror=_outside)  # type: ignore[untyped-decorator]
def ggtok_python_merge(user: Any, progress: Any) -> bool:
    caller: _ProgressCaller = ffi.from_handle(user)
    return caller(progress)


def merge(
    counts: WordCountTable,
    *,
    pieces: bool,
    of_bytes: bool,
    initial: Sequence[Symbol],
    first_new: int,
    most_new: int,
    min_count: int,
    max_length: int = 0,
    reserved: Sequence[tuple[Sequence[int], int]] = (),
    progress: Progress | None = None,
) -> NDArray[Any]:
    """Calls ggtok_merge. Returns a structured array: left, right, made, count, replaced.

    Args:
        reserved: for each reserved text, the numbers of its initial symbols and of its own symbol.
    """
    keep: list[Any] = []
    o = ffi.new("ggtok_merge_options *")
    o.rule = lib.GGTOK_RULE_PIECES if pieces else lib.GGTOK_RULE_NUMBERS
    o.bytes = of_bytes
    symbols = ffi.new("ggtok_symbol[]", len(initial))
    for row, symbol in zip(symbols, initial, strict=True):
        row.code, row.number = symbol.code, symbol.number
        row.script, row.kind = symbol.script, symbol.kind
    o.initial, o.n_initial = symbols, len(initial)
    texts = ffi.new("ggtok_reserved[]", len(reserved))
    by_length = sorted(reserved, key=lambda text: len(text[0]))
    for row, (numbers, number) in zip(texts, by_length, strict=True):
        keep.append(ffi.new("uint32_t[]", list(numbers)))
        row.symbols, row.n, row.number = keep[-1], len(numbers), number
    o.reserved, o.n_reserved = texts, len(reserved)
    o.first_new, o.most_new = first_new, most_new
    o.min_count, o.max_length = min_count, max_length
    caller = _ProgressCaller(progress)
    handle = ffi.new_handle(caller)
    o.progress, o.user = lib.ggtok_python_merge, handle
    out, err = ffi.new("ggtok_merges **"), ffi.new("ggtok_error *")
    status = lib.ggtok_merge(counts._counts, o, out, err)
    if caller.failed is not None:
        raise caller.failed
    if status:
        raise error(err)
    merges = ffi.gc(out[0], lib.ggtok_merges_free)
    n = ffi.new("size_t *")
    rows = lib.ggtok_merges_rows(merges, n)
    if not n[0]:
        return np.empty(0, _ROW)
    view = ffi.buffer(rows, n[0] * ffi.sizeof("ggtok_merge_row"))
    copied: NDArray[Any] = np.frombuffer(view, _ROW).copy()
    return copied


def spell(texts: list[bytes], rows: NDArray[Any]) -> list[tuple[bytes, bytes]]:
    """Returns, for each row of merge()'s result, the two texts that it joins. Appends the texts of
    the new symbols to ``texts``."""
    rows = np.ascontiguousarray(rows, _ROW)
    merges: list[tuple[bytes, bytes]] = _spell(texts, rows.ctypes.data, len(rows))
    return merges
