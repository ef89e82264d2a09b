"""Counts the words of a corpus on several threads, and saves the counts."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ggtok.base import files
from ggtok.base.concurrency import Channel
from ggtok.errors import InvalidTypeError, InvalidValueError, file_error
from ggtok.native import training as native
from ggtok.native.arguments import thread_count, truth
from ggtok.vocabularies.corpus import Piece, Reading, pieces

if TYPE_CHECKING:
    from numpy.typing import NDArray

_MAGIC = b"ggtok word counts 1\n"
KIND = files.FileFormat("a file of word counts", lambda head: head.startswith(_MAGIC))
_BATCH = 1 << 20  # bytes of small texts that form one unit of work
MIN_MAX_WORDS = 1024
DEFAULT_PRE = "llama-bpe"


@dataclass(frozen=True)
class Progress:
    """The progress of training, which is passed to its ``progress`` function.

    Attributes:
        phase: "count" or "merge".
        bytes: the number of bytes of text read so far.
        tokens: the number of tokens that merges have produced so far.
        of: the number of tokens to produce.
        count: the number of occurrences of the pair that was merged last.
        seconds: seconds since the phase began.
    """

    phase: Literal["count", "merge"]
    seconds: float
    bytes: int = 0
    tokens: int = 0
    of: int = 0
    count: int = 0


ProgressFn = Callable[[Progress], object]


@dataclass(frozen=True)
class Cut:
    """How texts are split into words. Counts can be merged only if they have the same Cut."""

    model: str
    pre: str | None
    patterns: tuple[str, ...] | None

    def counts(self, max_words: int) -> native.WordCountTable:
        if self.model == "spm":
            return native.WordCountTable(spaces=True, max_words=max_words)
        if self.patterns is not None:
            from ggtok.loading.loaded import by_patterns

            return native.WordCountTable(split=by_patterns(self.patterns), max_words=max_words)
        return native.WordCountTable(pre=self.pre, max_words=max_words)


class WordCounts:
    """The words of a corpus and their counts, which determine the result of training.

    :func:`ggtok.count_words` creates them, and :func:`ggtok.train` accepts them as its source.
    They can be saved, loaded, and merged with counts of the same pre-tokenizer from other
    machines. Copies and pickles have the same contents as a saved file. Threads may share an
    object unless one of them calls its :meth:`merge`, which changes it.
    """

    def __init__(self, cut: Cut | None = None, max_words: int = 0) -> None:
        # Users call count_words() or load() instead.
        if not isinstance(cut, Cut):
            raise InvalidTypeError(
                "WordCounts can't be created directly: call ggtok.count_words(sources)"
            )
        self._cut = cut
        self._native = cut.counts(max_words)
        self._inputs: list[str] = []  # paths of the files that these counts were loaded from

    @property
    def model(self) -> str:
        """The model that the words can train: ``"bpe"`` or ``"spm"``."""
        return self._cut.model

    @property
    def pre(self) -> str | None:
        """The pre-tokenizer that split the texts into words, or None."""
        return self._cut.pre

    @property
    def pre_patterns(self) -> tuple[str, ...] | None:
        """The regular expressions that split the texts into words, or None."""
        return self._cut.patterns

    def __len__(self) -> int:
        """Returns the number of distinct words."""
        return self._native.info().n_words

    @property
    def total(self) -> int:
        """The total number of words: the sum of all counts."""
        return self._native.info().total

    @property
    def dropped(self) -> tuple[int, int]:
        """The number of distinct words that ``max_words`` dropped, and the number of their
        occurrences."""
        info = self._native.info()
        return info.dropped_words, info.dropped

    def __repr__(self) -> str:
        cut = self.pre or ("patterns" if self.pre_patterns else "SentencePiece")
        return f"<ggtok.WordCounts of {cut}: {len(self)} words>"

    def items(self) -> Iterator[tuple[bytes, int]]:
        """Yields the words, in UTF-8, with their counts, most frequent first."""
        words, ends, times = self._native.arrays()
        data, start = words.tobytes(), 0
        for end, count in zip(ends.tolist(), times.tolist(), strict=True):
            yield data[start:end], count
            start = end

    def merge(self, *others: WordCounts) -> None:
        """Add other counts to these.

        Raises:
            InvalidValueError: the others have a different pre-tokenizer, or a count would exceed 64
                bits.
        """
        for other in others:
            if not isinstance(other, WordCounts):
                raise InvalidTypeError(f"counts must be WordCounts, not {type(other).__name__}")
            if other._cut != self._cut:
                raise InvalidValueError(f"{other!r} and {self!r} differ in how words are split")
            self._add(*other._native.arrays())
            self._inputs += other._inputs

    def _add(
        self, words: NDArray[np.uint8], ends: NDArray[np.uint64], times: NDArray[np.uint64]
    ) -> None:
        counter = native.WordCounter(self._native)
        counter.add_words(words, ends, times)
        counter.flush()

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write the counts to a file, completely or not at all.

        Args:
            path: the file. An existing file of counts is replaced, unless :meth:`load` read
                these counts from it.
            force: also replace a file that isn't a file of counts.

        Raises:
            FileError: the file can't be written.
            InvalidValueError: the file isn't a file of counts, or these counts were loaded from
                it.
        """
        name, force = os.fsdecode(os.fspath(path)), truth(force, "force")
        files.check_target(name, KIND, inputs=self._inputs, force=force)
        files.write(name, self._as_file(), KIND, inputs=self._inputs, force=force)

    def __reduce__(self) -> tuple[object, ...]:
        return type(self)._parsed, (self._as_file(),)

    def _as_file(self) -> bytes:
        words, ends, times = self._native.arrays()
        about = {
            "model": self.model,
            "pre": self.pre,
            "pre_patterns": self.pre_patterns,
            "words": len(ends),
            "bytes": len(words),
        }
        head = _MAGIC + json.dumps(about).encode() + b"\n"
        arrays = [ends.astype("<u8"), times.astype("<u8"), words]
        return head + b"".join(a.tobytes() for a in arrays)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> WordCounts:
        """Read counts that :meth:`save` wrote.

        Raises:
            FileError: the file can't be read.
            InvalidValueError: the file isn't a file of counts.
        """
        name = os.fspath(path)
        try:
            with open(name, "rb") as file:
                data = file.read()
        except OSError as e:
            raise file_error(e.errno or 0, e.strerror or str(e), name) from None
        try:
            counts = cls._parsed(data)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as e:
            raise InvalidValueError(f"{name!s}: not word counts saved by ggtok: {e}") from None
        counts._inputs.append(os.path.abspath(os.fsdecode(name)))
        return counts

    @classmethod
    def _parsed(cls, data: bytes) -> WordCounts:
        if not data.startswith(_MAGIC):
            raise ValueError("it has another format")
        end = data.index(b"\n", len(_MAGIC)) + 1
        about = json.loads(data[len(_MAGIC) : end])
        n, size, patterns = about["words"], about["bytes"], about["pre_patterns"]
        if not isinstance(n, int) or not isinstance(size, int) or n < 0:
            raise ValueError("the header's numbers can't be read")
        if len(data) - end != 16 * n + size:
            raise ValueError("its length doesn't match its header")
        if about["model"] not in ("bpe", "spm"):
            raise ValueError(f"its model is {about['model']!r}")
        ends = np.frombuffer(data, "<u8", n, end).astype(np.uint64)
        times = np.frombuffer(data, "<u8", n, end + 8 * n).astype(np.uint64)
        words = np.frombuffer(data, np.uint8, size, end + 16 * n)
        counts = cls(Cut(about["model"], about["pre"], patterns and tuple(patterns)))
        counts._add(words, ends, times)
        return counts


# ---- threads ----


def _batches(texts: Iterator[Piece]) -> Iterator[list[Piece]]:
    """Collects small texts into larger units of work."""
    batch: list[Piece] = []
    size = 0
    for piece in texts:
        batch.append(piece)
        size += len(piece[0]) + 64
        if size >= _BATCH:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Workers:
    """Threads that count words."""

    def __init__(self, counts: native.WordCountTable, threads: int) -> None:
        self._work: Channel[list[Piece]] = Channel(2 * threads)
        self._failed: list[BaseException] = []
        self._threads: list[threading.Thread] = []
        try:
            for _ in range(threads):
                thread = threading.Thread(target=self._run, args=(counts,), daemon=True)
                thread.start()
                self._threads.append(thread)
        except BaseException:
            self._work.close()
            raise

    def _run(self, counts: native.WordCountTable) -> None:
        counter: native.WordCounter | None = None
        try:
            while (batch := self._work.get()) is not None:
                counter = counter or native.WordCounter(counts)
                for text, lines in batch:
                    counter.add(text, lines)
            if counter is not None and not self._work.closed:
                counter.flush()
        except BaseException as e:
            self._failed.append(e)
            self._work.close()

    def put(self, batch: list[Piece]) -> bool:
        """Queues a unit of work; returns False if a thread has failed."""
        return self._work.put(batch)

    def finish(self, stop: bool) -> None:
        if stop:
            self._work.close()
        self._work.end()
        for thread in self._threads:
            thread.join()
        if self._failed and not stop:
            raise self._failed[0]


def _count_on_this_thread(
    counts: native.WordCountTable, batches: Iterator[list[Piece]], report: Callable[[int], None]
) -> None:
    counter = native.WordCounter(counts)
    for batch in batches:
        for text, lines in batch:
            counter.add(text, lines)
        report(sum(len(text) for text, _ in batch))
    counter.flush()


def fill(
    counts: native.WordCountTable,
    sources: object,
    *,
    reading: Reading,
    threads: int,
    progress: ProgressFn | None,
) -> None:
    """Adds the words of all sources to the counts."""
    began, read = time.perf_counter(), 0

    def report(n: int) -> None:
        nonlocal read
        read += n
        if progress is not None:
            progress(Progress("count", time.perf_counter() - began, bytes=read))

    batches = _batches(pieces(sources, reading))
    if threads == 1:
        _count_on_this_thread(counts, batches, report)
        return
    workers = _Workers(counts, threads)
    finished = False
    try:
        for batch in batches:
            if not workers.put(batch):
                break
            report(sum(len(text) for text, _ in batch))
        finished = True
    finally:
        workers.finish(stop=not finished)


# ---- arguments ----


def check_cut(
    model: object,
    pre: object,
    pre_patterns: Sequence[str] | None,
    models: Sequence[str] = ("bpe", "spm"),
) -> Cut:
    """Checks the arguments that define how texts are split into words."""
    if model == "spm":
        for name, used in ("pre", pre != DEFAULT_PRE), ("pre_patterns", pre_patterns is not None):
            if used:
                raise InvalidValueError(f"{name} has no effect with the model 'spm'")
        return Cut("spm", None, None)
    if model != "bpe":
        raise InvalidValueError(f"model must be {' or '.join(map(repr, models))}, not {model!r}")
    if pre_patterns is not None:
        from ggtok.loading.loaded import patterns_tuple

        return Cut("bpe", None, patterns_tuple(pre_patterns))
    if not isinstance(pre, str):
        raise InvalidTypeError(f"pre must be str, not {type(pre).__name__}")
    if "\0" in pre:
        raise InvalidValueError("pre contains a NUL character")
    if pre == "whitespace":
        raise InvalidValueError(
            "the pre-tokenizer 'whitespace' drops white space, so a vocabulary trained with it "
            "couldn't decode ids to the original text"
        )
    return Cut("bpe", pre, None)


def check_threads(threads: object, cut: Cut) -> int:
    from ggtok.text.batch_encoding import MAX_THREADS, cores

    n = thread_count(threads)  # type: ignore[arg-type]
    # Splitting by patterns runs in Python and holds the GIL, so more threads don't help.
    return 1 if cut.patterns is not None else min(n or cores(), MAX_THREADS)


def check_documents(documents: object) -> bool:
    if documents not in ("lines", "whole"):
        raise InvalidValueError(f"documents must be 'lines' or 'whole', not {documents!r}")
    return documents == "lines"


def check_max_words(max_words: object) -> int:
    if max_words is None:
        return 0
    if isinstance(max_words, bool) or not isinstance(max_words, int):
        raise InvalidTypeError(f"max_words must be int, not {type(max_words).__name__}")
    if not MIN_MAX_WORDS <= max_words < 2**63:
        raise InvalidValueError(f"max_words must be {MIN_MAX_WORDS} or more, but is {max_words}")
    return max_words


def count_words(
    sources: object,
    *,
    model: Literal["bpe", "spm"] = "bpe",
    pre: str = DEFAULT_PRE,
    pre_patterns: Sequence[str] | None = None,
    documents: Literal["lines", "whole"] = "lines",
    kind: Literal["text", "jsonl", "parquet", "arrow"] | None = None,
    field: str | Sequence[str] | None = None,
    errors: Literal["raise", "replace", "skip"] = "raise",
    max_words: int | None = None,
    threads: int = 0,
    progress: ProgressFn | None = None,
) -> WordCounts:
    """Count the words of a corpus: the first phase of :func:`ggtok.train`.

    Counts can be saved, merged with those from other machines, and used to train any number of
    vocabularies with the same pre-tokenizer.

    Args:
        sources, model, pre, pre_patterns, documents, kind, field, errors: as for
            :func:`ggtok.train`.
        max_words, threads, progress: as for :func:`ggtok.train`.

    Raises:
        FileError: a file can't be read, or isn't text.
        DocumentError: a document of a file is malformed.
        UnknownPreTokenizerError: the pre-tokenizer's name is unknown.
        TextEncodeError: a ``str`` contains a lone surrogate.
        InvalidTypeError, InvalidValueError: an argument has a wrong type or value.
    """
    cut = check_cut(model, pre, pre_patterns)
    reading = Reading.checked(check_documents(documents), field, errors, kind)
    limit = check_max_words(max_words)
    n_threads = check_threads(threads, cut)
    counts = WordCounts(cut, limit)
    fill(counts._native, sources, reading=reading, threads=n_threads, progress=progress)
    return counts
