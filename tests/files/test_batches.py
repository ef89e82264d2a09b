"""``encode_batches``: encodes iterables of texts, which may be endless."""

from __future__ import annotations

import itertools
import signal
import subprocess
import sys
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.corpora import iterate
from ggtok.corpora.summary import EncodeProgress
from tests.files.corpus import documents, ids_of
from tests.support.full import Lazy
from tests.support.vocabularies import fixture
from tests.support.waits import LIMIT, until

pa: Any = Lazy("pyarrow")

TEXTS = documents(1, 300)


def joined(batches: Any) -> list[list[int]]:
    ids = []
    for array, offsets in batches:
        assert array.dtype == np.int32 and offsets.dtype == np.int64
        assert offsets[0] == 0 and offsets[-1] == len(array)
        ids += [array[a:b].tolist() for a, b in itertools.pairwise(offsets)]
    return ids


class Stream:
    """An object with only the interface of an Arrow stream."""

    def __init__(self, data: Any) -> None:
        self.data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.data.__arrow_c_stream__(requested_schema)


def chunked(kind: Any) -> Any:
    return pa.chunked_array([pa.array(TEXTS[:100]).cast(kind), pa.array(TEXTS[100:]).cast(kind)])


ARROW: dict[str, Any] = {
    "strings": lambda: Stream(chunked(pa.string())),
    "large strings": lambda: Stream(chunked(pa.large_string())),
    "string views": lambda: Stream(chunked(pa.string_view())),
    "binary": lambda: Stream(chunked(pa.binary())),
    "table": lambda: Stream(pa.table({"x": chunked(pa.string())})),
    "reader": lambda: Stream(pa.table({"x": chunked(pa.string())}).to_reader()),
    "slices": lambda: Stream(pa.chunked_array([["no", *TEXTS[:9]], TEXTS[9:]]).slice(1)),
}
SOURCES: dict[str, Any] = {
    "list": lambda: TEXTS,
    "generator": lambda: (text for text in TEXTS),
    "bytes and others": lambda: [
        [str, str.encode, lambda t: bytearray(t.encode()), lambda t: memoryview(t.encode())][i % 4](
            t
        )
        for i, t in enumerate(TEXTS)
    ],
}


@pytest.mark.parametrize(
    "name", [*SOURCES, *(pytest.param(name, marks=pytest.mark.full) for name in ARROW)]
)
@pytest.mark.parametrize("batch_bytes", [1, 1000, 1 << 30])
def test_texts(tok: ggtok.Tokenizer, name: str, batch_bytes: int) -> None:
    batches = list(
        tok.encode_batches({**SOURCES, **ARROW}[name](), batch_bytes=batch_bytes, threads=2)
    )
    assert joined(batches) == ids_of(tok, TEXTS, None)
    sizes = {1: 300, 1 << 30: 1}
    assert len(batches) == sizes.get(batch_bytes, len(batches)) and len(batches) > 0


def test_files_of_lines(tok: ggtok.Tokenizer, tmp_path: Path) -> None:
    """The texts are lines of an open file, or of a file given as a path."""
    path = tmp_path / "a.txt"
    path.write_text("one\n\ntwo\nthree")
    expected = ids_of(tok, ["one\n", "\n", "two\n", "three"], None)
    assert joined(tok.encode_batches(path)) == expected
    with path.open("rb") as file:
        assert joined(tok.encode_batches(file)) == expected
    with path.open() as file:
        assert joined(tok.encode_batches(file, batch_bytes=4)) == expected
    with pytest.raises(FileNotFoundError, match="nowhere"):
        list(tok.encode_batches(tmp_path / "nowhere"))


def test_options(tok: ggtok.Tokenizer) -> None:
    texts = ["Hi<|eot_id|>", "there"]
    for add in (True, False):
        for parse in (True, False, ["<|eot_id|>"], []):
            options = {"add_special": add, "parse_special": parse}
            assert joined(tok.encode_batches(texts, **options)) == ids_of(
                tok, texts, None, **options
            )
    assert list(tok.encode_batches([])) == []
    empty = list(tok.encode_batches([""], add_special=False))
    assert joined(empty) == [[]]


def test_progress(tok: ggtok.Tokenizer) -> None:
    seen: list[EncodeProgress] = []
    threads = []

    def progress(p: EncodeProgress) -> None:
        seen.append(p)
        threads.append(threading.current_thread())

    ids = joined(tok.encode_batches(TEXTS, batch_bytes=500, progress=progress))
    assert set(threads) == {threading.main_thread()}
    assert (seen[-1].documents, seen[-1].ids) == (300, sum(map(len, ids)))
    assert seen[-1].bytes == sum(len(text.encode()) for text in TEXTS)
    assert seen[-1].total == 0 and seen[-1].seconds > 0


def test_what_is_refused(tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[tuple[Any, dict[str, Any], str]] = [
        ("text", {}, "not str; pass a file's name as a pathlib.Path"),
        (b"text", {}, "not bytes"),
        ([], {"batch_bytes": 0}, "batch_bytes must be positive, but is 0"),
        ([], {"batch_bytes": 0.5}, "batch_bytes must be an integer, not float"),
        ([], {"threads": -1}, "threads must not be negative"),
    ]
    for texts, options, message in rows:
        with pytest.raises(ggtok.ArgumentError, match=message):
            tok.encode_batches(texts, **options)  # raises immediately, not at the first batch
    with pytest.raises(ggtok.InvalidTypeError, match="must be an iterable of texts, an Arrow str"):
        list(tok.encode_batches(3))
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ggtok.MissingExtraError, match=r"ggtok\[arrow\]"):
        list(tok.encode_batches(Stream(None)))


@pytest.mark.full
def test_streams_that_are_refused(tok: ggtok.Tokenizer) -> None:
    later: list[tuple[Any, str]] = [
        (Stream(pa.chunked_array([[1, 2]])), "of int64, not of strings"),
        (Stream(pa.chunked_array([["a", None]])), r"texts\[1\] is null"),
        (Stream(pa.table({"a": ["x"], "b": ["y"]})), "must have one column, not 2: select one"),
        (Stream(pa.chunked_array([pa.array([{"a": 1}])])), "not of strings"),
    ]
    for texts, message in later:
        with pytest.raises(ggtok.InvalidTypeError, match=message):
            list(tok.encode_batches(texts))

    class Broken:
        def __arrow_c_stream__(self, requested_schema: object = None) -> object:
            return 3

    with pytest.raises(ggtok.InvalidTypeError, match="an Arrow stream must be of strings"):
        list(tok.encode_batches(Broken()))


def test_errors_come_after_the_texts_before_them(tok: ggtok.Tokenizer) -> None:
    """An error names the index of its text, and comes after the results for all texts before it."""

    def texts(bad: object) -> Iterator[Any]:
        yield from TEXTS[:50]
        if isinstance(bad, Exception):
            raise bad
        yield bad

    for bad, error, message in (
        (3, TypeError, r"texts\[50\] must be str or bytes-like"),
        ("\ud800", UnicodeEncodeError, r"texts\[50\] has a lone surrogate"),
        (RuntimeError("mine"), RuntimeError, "mine"),
    ):
        seen: list[Any] = []
        with pytest.raises(error, match=message):
            seen.extend(tok.encode_batches(texts(bad), batch_bytes=1000))
        assert joined(seen) == ids_of(tok, TEXTS[:50], None)
    with pytest.raises(ggtok.VocabError):
        list(ggtok.load(fixture("none")).encode_batches(["a"]))


def test_memory_is_bounded(tok: ggtok.Tokenizer) -> None:
    """The reader is at most a few batches ahead, and batches that were yielded are freed."""
    asked = 0

    def texts() -> Iterator[str]:
        nonlocal asked
        while True:
            asked += 1
            yield "some words " * 10

    batches = tok.encode_batches(texts(), batch_bytes=1000)
    for n in range(1, 20):
        ids, _ = next(batches)
        reference = weakref.ref(ids)
        until(lambda: asked >= 10 * (n + 2))  # noqa: B023
        # One batch is being encoded, one is waiting, and one is being read; each has 10 texts.
        assert asked <= 10 * (n + 3)
        del ids, _
        next(batches)
        assert reference() is None
        asked -= 10
    batches.close()  # type: ignore[attr-defined]
    for thread in threading.enumerate():
        if thread.name == "ggtok reader":
            thread.join(LIMIT)
            assert not thread.is_alive()


def test_several_iterators_at_once(tok: ggtok.Tokenizer) -> None:
    """Several iterators use a tokenizer at the same time, in one thread and in several."""
    a, b = (tok.encode_batches(TEXTS, batch_bytes=999, threads=2) for _ in range(2))
    pairs = list(zip(a, b, strict=True))
    assert joined(x for x, _ in pairs) == joined(y for _, y in pairs) == ids_of(tok, TEXTS, None)
    results: list[Any] = []
    threads = [
        threading.Thread(target=lambda: results.append(joined(tok.encode_batches(TEXTS))))
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == 4 * [ids_of(tok, TEXTS, None)]


def test_batches_have_a_maximum_number_of_texts(
    tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The number of texts in a batch is bounded, not only their size."""
    monkeypatch.setattr(iterate, "_TEXTS", 10)
    batches = list(tok.encode_batches([""] * 25))
    assert [len(offsets) - 1 for _, offsets in batches] == [10, 10, 5]


def test_ctrl_c_while_the_iterable_waits() -> None:
    """Ctrl-C works immediately, although another thread waits for the next text forever."""
    script = """
import sys, threading
import ggtok
tok = ggtok.load(sys.argv[1])
def texts():
    yield "text"
    print("waiting", flush=True)
    threading.Event().wait()
try:
    list(tok.encode_batches(texts()))
except KeyboardInterrupt:
    print("stopped", flush=True)
"""
    command = [sys.executable, "-c", script, str(fixture("bpe-llama3"))]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "waiting\n"
    child.send_signal(signal.SIGINT)
    assert child.communicate(timeout=LIMIT)[0] == "stopped\n"
