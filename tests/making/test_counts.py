"""Counting words: sources, threads, limits, progress and saved counts.

Claim training.1.
"""

from __future__ import annotations

import itertools
import os
import re
import signal
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ggtok
from ggtok.inspect.parity.texts import PROSE
from ggtok.native import training as native
from ggtok.vocabularies import corpus
from ggtok.vocabularies import counts as counting
from tests.support.interrupts import interrupted, posix
from tests.support.samples import times
from tests.support.waits import LIMIT

TEXT = "one two\nthree  two\n\none\n"
WORDS = {"one": 2, " two": 1, "\n": 3, "three": 1, " ": 1, "\n\n": 0}


def words(source: object, **options: object) -> dict[str, int]:
    options = options if options.get("model") == "spm" else {"pre": "gpt-2", **options}
    return {w.decode(): n for w, n in ggtok.count_words(source, **options).items()}  # type: ignore[arg-type]


# ---- sources ----


def test_valid_sources(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    expected = {"one": 2, " two": 2, "\n": 4, "three": 1, " ": 1}
    for source in (
        TEXT,
        TEXT.encode(),
        bytearray(TEXT.encode()),
        memoryview(TEXT.encode()),
        path,
        [TEXT],
        iter([TEXT[:8], TEXT[8:].encode()]),
        (line for line in TEXT.splitlines(keepends=True)),
    ):
        assert words(source) == expected
    assert words(path, documents="whole") == words(TEXT, documents="whole")
    assert words([path, TEXT, path]) == {word: 3 * n for word, n in expected.items()}
    assert words([]) == words("") == words([b"", path.parent / "a.txt"][:1]) == {}


def test_documents() -> None:
    assert words("a\n\nb", documents="lines") == {"a": 1, "\n": 2, "b": 1}
    assert words("a\n\nb", documents="whole") == {"a": 1, "\n": 2, "b": 1}
    assert words("a \n b", documents="lines") == {"a": 1, " \n": 1, " b": 1}
    assert words("a \n b", documents="whole") == {"a": 1, " \n": 1, " b": 1}
    assert words("a\n\n", documents="lines") == {"a": 1, "\n": 2}
    assert words("a\n\n", documents="whole") == {"a": 1, "\n\n": 1}
    assert words("a\n\n", model="spm") == {"\u2581a": 1}
    assert words("a\nb", model="spm", documents="whole") == {"\u2581a\nb": 1}


def test_malformed_text_is_read_as_when_encoding() -> None:
    assert words(b"a\xffb \xe2\x82") == {"a": 1, "\ufffd": 1, "b": 1, " \ufffd\ufffd": 1} or words(
        b"a\xffb \xe2\x82"
    ) == {"a": 1, "\ufffd": 1, "b": 1, " \ufffd": 1}
    with pytest.raises(ggtok.TextEncodeError):
        words("\ud800")


@pytest.mark.parametrize("letter", ["\0", "a"])
def test_words_of_all_lengths(letter: str) -> None:
    """A word of NULs isn't mistaken for an empty cache entry."""
    expected = {letter * n: n % 3 + 1 for n in range(1, 100)}
    lines = [word for word, times in expected.items() for _ in range(times)]
    assert words("\n".join(lines) + "\n") == {**expected, "\n": len(lines)}


def test_blocks_end_at_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks end at line ends, in files and in texts, even if a line is longer than the size of a
    block."""
    text = "\n".join(PROSE) + "\n" + "x" * 100 + "\n\n" + "last"
    expected = words(text)
    path = tmp_path / "a.txt"
    path.write_text(text)
    for block in (1, 7, 64, 1000):
        monkeypatch.setattr(corpus, "BLOCK", block)
        monkeypatch.setattr("ggtok.corpora.streams.BLOCK", block)
        monkeypatch.setattr(counting, "_BATCH", block)
        for threads in (1, 3):
            assert words(text, threads=threads) == expected
            assert words(path, threads=threads) == expected
    path.write_text("ends with a line\n")
    assert words(path) == words("ends with a line\n")


@pytest.mark.parametrize("documents", ["lines", "whole"])
def test_an_endless_line(
    documents: Literal["lines", "whole"], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An endless line is rejected early, not when memory is full."""
    monkeypatch.setattr("ggtok.corpora.streams.BLOCK", 4)
    monkeypatch.setattr("ggtok.vocabularies.corpus.MAX_TEXT", 10)
    path = tmp_path / "endless.txt"
    path.write_text("ab\n" * 10 + "0123456789")
    if documents == "lines":
        assert len(ggtok.count_words(path, pre_patterns=["[^\n]+"])) == 3
    path.write_text("ab\n" + "0" * 100)
    with pytest.raises(ggtok.InvalidValueError, match=r"endless\.txt: .* more than 10 bytes"):
        ggtok.count_words(path, documents=documents)


def test_invalid_sources(tmp_path: Path) -> None:
    with pytest.raises(ggtok.InvalidTypeError, match=r"sources must be a path, .*not int"):
        ggtok.count_words(3)
    with pytest.raises(ggtok.InvalidTypeError, match=r"sources\[1\] must be a path, .*not int"):
        ggtok.count_words(["a", 3])
    with pytest.raises(ggtok.InvalidTypeError, match=r"sources\[0\] must .*not list"):
        ggtok.count_words([["a"]])
    with pytest.raises(ggtok.FileError) as missing:
        ggtok.count_words(tmp_path / "missing")
    assert isinstance(missing.value, FileNotFoundError)
    with pytest.raises(ggtok.InvalidValueError, match="no file in the folders is selected"):
        ggtok.count_words(tmp_path)


class Stream:
    """An object with the interface of an Arrow library's array."""

    def __arrow_c_stream__(self) -> None: ...


def test_arrow_streams_without_pyarrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ggtok.MissingExtraError, match="needs pyarrow"):
        ggtok.count_words(Stream())


@pytest.mark.full
def test_arrow_streams() -> None:
    pa = pytest.importorskip("pyarrow")
    column = pa.chunked_array([pa.array(["a b", None]), pa.array(["a"])])
    assert words(column) == {"a": 2, " b": 1}
    assert words([pa.array([b"a", b"a b"])]) == {"a": 2, " b": 1}
    assert words(column.dictionary_encode()) == {"a": 2, " b": 1}
    with pytest.raises(ggtok.InvalidTypeError, match="must be of strings, not of int64"):
        ggtok.count_words(pa.array([3]))
    with pytest.raises(ggtok.InvalidTypeError, match=r"must be of strings \("):
        ggtok.count_words([Stream()])


# ---- threads ----


def endless() -> Iterator[str]:
    return (f"word{i} and others\n" for i in itertools.count())


@pytest.mark.parametrize("threads", [1, 3])
def test_a_source_that_fails(threads: int) -> None:
    def failing() -> Iterator[str]:
        yield from itertools.islice(endless(), 100_000)
        raise RuntimeError("the source broke")

    with pytest.raises(RuntimeError, match="the source broke"):
        ggtok.count_words(failing(), threads=threads)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("when", ["add", "flush"])
def test_a_thread_that_fails(threads: int, when: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread's error reaches the caller, even with an endless source."""

    def fail(*_: object) -> None:
        raise MemoryError("no more")

    monkeypatch.setattr(native.WordCounter, when, fail)
    source = endless() if when == "add" else ["a"] * 10
    before = threading.active_count()
    with pytest.raises(MemoryError, match="no more"):
        ggtok.count_words(source, threads=threads)
    assert threading.active_count() == before


@pytest.mark.parametrize("threads", [1, 3])
def test_progress_can_stop_counting(threads: int) -> None:
    seen: list[ggtok.Progress] = []

    def progress(p: ggtok.Progress) -> None:
        seen.append(p)
        if len(seen) == 3:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        ggtok.count_words(endless(), threads=threads, progress=progress)
    assert [p.phase for p in seen] == ["count"] * 3
    assert seen[0].bytes < seen[1].bytes < seen[2].bytes


def test_progress_of_merging_can_stop_it() -> None:
    text = "".join(f"{i * 7919:x} " for i in range(200_000))
    seen: list[ggtok.Progress] = []
    ggtok.train(text, 5000, pre="gpt-2", progress=seen.append)
    merging = [p for p in seen if p.phase == "merge"]
    assert merging and merging[-1].of == 5000
    assert all(a.tokens < b.tokens and a.count >= b.count for a, b in itertools.pairwise(merging))

    def stop(p: ggtok.Progress) -> None:
        if p.phase == "merge":
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        ggtok.train(text, 5000, pre="gpt-2", progress=stop)


def test_a_thread_that_cannot_start(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a thread can't start, the threads that were started before it exit."""
    start, started = threading.Thread.start, []

    def limited(thread: threading.Thread) -> None:
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start"):
        ggtok.count_words("a b c", pre="gpt-2", threads=4)
    for thread in started:
        thread.join(LIMIT)
        assert not thread.is_alive()


@posix
def test_an_interrupt_ends_counting(capfd: pytest.CaptureFixture[str]) -> None:
    """Ctrl-C ends counting, even with an endless source, and nothing is printed."""
    assert interrupted(lambda: ggtok.count_words(endless(), pre="gpt-2", threads=2), 0.05)
    assert capfd.readouterr() == ("", "")


def test_an_interrupt_ends_merging(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ctrl-C ends merging. The library asks periodically whether to continue; here, the interrupt
    happens the second time."""
    counts = ggtok.count_words("".join(f"{i * 7919:x} " for i in range(100_000)), pre="gpt-2")
    asked = []

    def ask(asker: native._ProgressCaller, progress: Any) -> bool:
        asked.append(progress.n_merges)
        if len(asked) == 2:
            signal.raise_signal(signal.SIGINT)
        return call(asker, progress)

    call = native._ProgressCaller.__call__
    monkeypatch.setattr(native._ProgressCaller, "__call__", ask)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            ggtok.train(counts, 200_000)
    finally:
        signal.signal(signal.SIGINT, before)
    assert len(asked) == 2 and capfd.readouterr() == ("", "")


def test_an_exception_before_the_first_line() -> None:
    """A signal may arrive when Python enters the callback."""
    asker = native._ProgressCaller(None)
    handle = native.ffi.new_handle(asker)
    error = KeyboardInterrupt()
    frame = SimpleNamespace(f_locals={"user": handle})
    native._outside(KeyboardInterrupt, error, SimpleNamespace(tb_frame=frame))
    assert asker.failed is error


# ---- split at special tokens ----

pieces = st.text("ab<", min_size=1, max_size=4).map(str.encode)


@settings(max_examples=times(100, of=2000), deadline=None)
@given(st.lists(st.text("ab< \u2581", max_size=12), max_size=20), st.lists(pieces, max_size=6))
def test_words_are_split_at_texts(lines: list[str], texts: list[bytes]) -> None:
    """Words are split as by a regular expression that tries the longest text first."""
    counts = ggtok.count_words("\n".join(lines), model="spm")._native
    words = Counter[bytes]()
    longest_first = [re.escape(text) for text in sorted(texts, key=len, reverse=True)]
    pattern = re.compile(b"|".join(longest_first) or b"(?!)")
    for word, n in items(counts):
        words[pattern.sub(b"\x1f", word)] += n
    cut = counts.cut_at(texts, b"\x1f")
    assert Counter(dict(items(cut))) == words
    assert (cut is counts) == (not any(b"\x1f" in word for word in words))


def items(counts: native.WordCountTable) -> Iterator[tuple[bytes, int]]:
    words, ends, counted = counts.arrays()
    start = 0
    for end, n in zip(ends.tolist(), counted.tolist(), strict=True):
        yield words[start:end].tobytes(), n
        start = end


# ---- patterns ----


def test_words_split_by_patterns() -> None:
    assert words("ab ab", pre_patterns=[r"\S+"]) == {"ab": 2, " ": 1}
    with pytest.raises(ggtok.InvalidValueError, match=r"pre_patterns\[0\]"):
        ggtok.count_words("a", pre_patterns=["("])
    with pytest.raises(ggtok.InvalidTypeError, match="pre_patterns must be a list"):
        ggtok.count_words("a", pre_patterns="x")


def test_a_pattern_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def split(_: bytes) -> list[int]:
        raise ZeroDivisionError("in the splitter")

    monkeypatch.setattr("ggtok.loading.loaded.by_patterns", lambda _: split)
    with pytest.raises(ZeroDivisionError, match="in the splitter"):
        ggtok.count_words("a", pre_patterns=["x"])


# ---- a limit ----


def test_max_words_drops_the_rarest() -> None:
    frequent = [f"w{i}" for i in range(300)]
    rare = [f"r{i}" for i in range(20_000)]
    text = "\n".join(itertools.chain(*zip(frequent * 100, rare * 2, strict=False))) + "\n"
    exact = Counter(text.split())
    counts = ggtok.count_words(text, pre_patterns=[r"\n"], max_words=4096, threads=1)
    found = {word.decode(): n for word, n in counts.items()}
    dropped_words, dropped = counts.dropped
    assert len(counts) <= 4096 and dropped_words > 0
    assert counts.total + dropped == sum(exact.values()) + text.count("\n")
    for word in frequent:
        assert 0 <= exact[word] - found[word] <= dropped
        assert found[word] > 50
    v = ggtok.train(text, 400, pre_patterns=[r"\n"], max_words=4096)
    assert "max_words dropped" in str(v.report)
    unlimited = ggtok.count_words(text, pre_patterns=[r"\n"], max_words=100_000)
    assert unlimited.dropped == (0, 0)


def test_max_words_where_all_are_frequent() -> None:
    """The limit holds, even if no word is rare."""
    text = "".join(f"w{i} " * 400 for i in range(3000))
    counts = ggtok.count_words(text, pre="gpt-2", max_words=1024, threads=1)
    assert 0 < len(counts) <= 1024
    assert counts.total + counts.dropped[1] == 2 * 400 * 3000 + 1


# ---- saved counts ----


def test_saved_and_loaded(tmp_path: Path) -> None:
    path = tmp_path / "c.counts"
    for options in ({"pre": "qwen2"}, {"model": "spm"}, {"pre_patterns": [r"\S+"]}):
        counts = ggtok.count_words("\n".join(PROSE), **options)  # type: ignore[arg-type]
        counts.save(path)
        loaded = ggtok.WordCounts.load(path)
        assert list(loaded.items()) == list(counts.items()) and len(loaded) == len(counts)
        assert (loaded.model, loaded.pre) == (counts.model, counts.pre)
        assert loaded.pre_patterns == counts.pre_patterns
        assert repr(loaded) == repr(counts)
        model = counts.model
        a = ggtok.train(counts, 1300, model=model)  # type: ignore[arg-type]
        b = ggtok.train(loaded, 1300, model=model)  # type: ignore[arg-type]
        assert a.texts == b.texts


def test_merged_from_many() -> None:
    whole = ggtok.count_words(PROSE)
    parts = [ggtok.count_words(PROSE[i::3]) for i in range(3)]
    parts[0].merge(*parts[1:])
    assert list(parts[0].items()) == list(whole.items())
    with pytest.raises(ggtok.InvalidValueError, match="differ in how words are split"):
        whole.merge(ggtok.count_words("a", pre="gpt-2"))
    with pytest.raises(ggtok.InvalidTypeError, match="must be WordCounts, not str"):
        whole.merge("a")  # type: ignore[arg-type]


def test_trained_from_other_counts() -> None:
    counts = ggtok.count_words(PROSE, pre="gpt-2")
    assert ggtok.train(counts, 300).pre == "gpt-2"
    assert ggtok.train(counts, 300, pre="gpt-2").pre == "gpt-2"
    for options in ({"pre": "qwen2"}, {"model": "spm"}, {"pre_patterns": ["x"]}):
        with pytest.raises(ggtok.InvalidValueError, match="were split in another way"):
            ggtok.train(counts, 300, **options)  # type: ignore[arg-type]


def header(
    words: object = 1, size: object = 1, model: object = "bpe", pre: object = '"gpt-2"'
) -> bytes:
    cut = f'"model": "{model}", "pre": {pre}, "pre_patterns": null'
    return f'ggtok word counts 1\n{{{cut}, "words": {words}, "bytes": {size}}}\n'.encode()


ONE = (1).to_bytes(8, "little")


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it has another format"),
        (b"ggtok word counts 1\n", "subsection not found"),
        (b"ggtok word counts 1\n[]\n", "list indices"),
        (b"ggtok word counts 1\n{}\n", "words"),
        (b"ggtok word counts 1\n{\n", "Expecting"),
        (header(), "its length"),
        (header(words=-1), "the header's numbers"),
        (header(words='"x"'), "the header's numbers"),
        (header(words=10**15), "its length"),
        (header(model="x") + ONE + ONE + b"a", "its model is 'x'"),
        (header(pre="3") + ONE + ONE + b"a", "encode"),
        (header() + bytes(8) + ONE + b"a", "end of word 0 is out of order"),
        (header() + (2).to_bytes(8, "little") + ONE + b"a", "end of word 0 is out of order"),
        (header() + ONE + ONE + b"\xff", "word 0 is not well-formed UTF-8"),
        (header(pre='"nonsense"') + ONE + ONE + b"a", "unknown pre-tokenizer"),
    ],
)
def test_files_that_are_not_counts(data: bytes, message: str, tmp_path: Path) -> None:
    path = tmp_path / "c.counts"
    path.write_bytes(data)
    with pytest.raises(ggtok.GGTokError, match=message):
        ggtok.WordCounts.load(path)


def test_words_with_count_zero_are_ignored(tmp_path: Path) -> None:
    path = tmp_path / "c.counts"
    path.write_bytes(header() + ONE + bytes(8) + b"a")
    assert len(ggtok.WordCounts.load(path)) == 0


def test_counts_that_cannot_be_read_or_written(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        ggtok.WordCounts.load(tmp_path / "missing")
    with pytest.raises(ggtok.FileError):
        ggtok.count_words("a").save(tmp_path / "none" / "c")
    assert os.listdir(tmp_path) == []


def test_counts_without_a_pre_tokenizer_accept_no_text() -> None:
    counts = native.WordCountTable()
    with pytest.raises(ggtok.InvalidValueError, match="accept only words"):
        native.WordCounter(counts).add(b"a", False)


LIB = native.lib


class FullMemory:
    """The C library with one function that fails for lack of memory."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> object:
        if name != self._name:
            return getattr(LIB, name)

        def fail(*args: Any) -> int:
            error = args[-1]
            error.status = LIB.GGTOK_ERR_MEMORY
            return 1

        return fail


@pytest.mark.parametrize("name", ["counts_copy", "counts_chars", "counter_new"])
def test_out_of_memory(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    counts = ggtok.count_words("a b")
    monkeypatch.setattr(native, "lib", FullMemory(f"ggtok_{name}"))
    use = {
        "counts_copy": counts._native.arrays,
        "counts_chars": counts._native.chars,
        "counter_new": lambda: native.WordCounter(counts._native),
    }
    with pytest.raises(ggtok.OutOfMemoryError):
        use[name]()
