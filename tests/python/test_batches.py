"""Batches that return lists: the lists are created while other threads are still encoding."""

from __future__ import annotations

import gc
import random
import subprocess
import sys
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import ggtok
from tests.support.interrupts import posix, stop_midway
from tests.support.vocabularies import fixture

HUGE = 5 << 18  # size in bytes of a text that is too large to share a chunk with other texts


def _texts(sizes: list[int]) -> list[str]:
    chooser = random.Random(5)
    words = "".join(chooser.choice("the kettle é 日本 \U0001f600 12 ") for _ in range(9000))
    return [(words[i % 50 :] * (n // 8000 + 1))[:n] for i, n in enumerate(sizes)]


_chooser = random.Random(6)
SIZES = {
    "none": [],
    "empty": [0] * 300,
    "one": [50_000],
    "even": [1000] * 900,
    "uneven": [_chooser.choice((0, 1, 40, 3000)) for _ in range(900)],
    "huge first": [HUGE, *[700] * 900],
    "huge in the middle": [*[700] * 450, HUGE, *[700] * 450],
    "huge last": [*[700] * 900, HUGE],
}


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("bpe-llama3"))


def _elsewhere(call: Callable[[], Any]) -> Any:
    """Runs a call on a thread other than the main one and returns its result."""
    results = list[Any]()
    thread = threading.Thread(target=lambda: results.append(call()))
    thread.start()
    thread.join()
    return results[0]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("sizes", SIZES)
def test_the_lists_are_those_of_single_texts(
    tok: ggtok.Tokenizer, sizes: str, threads: int
) -> None:
    texts = _texts(SIZES[sizes])
    want = [tok.encode(text) for text in texts]
    lists = tok.encode_batch(texts, threads=threads)
    assert lists == want
    assert lists == _elsewhere(lambda: tok.encode_batch(texts, threads=threads))
    assert all(gc.is_tracked(each) for each in (lists, *lists))
    for unit in ("byte", "char"):
        both = tok.encode_batch_with_offsets(texts, unit=unit, threads=threads)
        assert [ids for ids, _ in both] == want
        assert all(gc.is_tracked(ids) for ids, _ in both)
        for text, (_, spans) in list(zip(texts, both, strict=True))[:: max(len(texts) // 30, 1)]:
            assert np.array_equal(spans, tok.encode_with_offsets(text, unit=unit)[1])


def test_each_id_in_a_list_holds_one_reference(tok: ggtok.Tokenizer) -> None:
    texts = ["Hello, world"] * 50_000
    kept = max(tok.encode(texts[0]))
    assert kept > 256  # CPython doesn't count references to small ints
    before = sys.getrefcount(kept)
    n = tok.encode(texts[0]).count(kept)
    for threads in (1, 3):
        lists = tok.encode_batch(texts, threads=threads)
        assert sys.getrefcount(kept) == before + n * len(texts)
        assert {sys.getrefcount(each) for each in lists} == {3}
        del lists
        gc.collect()
        assert sys.getrefcount(kept) == before


@pytest.mark.parametrize("at", [0, 25_000, 49_999])
def test_a_text_that_fails_leaves_nothing(at: int) -> None:
    """If a text can't be converted, the call fails before it encodes any text."""
    tok = ggtok.load(fixture("bpe-llama3"))
    texts: list[Any] = ["Hello, world"] * 50_000
    kept = max(tok.encode(texts[0]))
    before = sys.getrefcount(kept)
    texts[at] = "a lone \ud801"
    with pytest.raises(ggtok.TextEncodeError, match=rf"texts\[{at}\]"):
        tok.encode_batch(texts, threads=3)
    gc.collect()
    assert sys.getrefcount(kept) == before


@posix
def test_an_interrupted_batch_leaves_nothing(tok: ggtok.Tokenizer) -> None:
    kept = max(tok.encode("Hello, world"))
    before = sys.getrefcount(kept)
    stop_midway(
        tok, lambda n: lambda: tok.encode_batch(["Hello, world"] * (200_000 * n), threads=3)
    )
    gc.collect()
    assert sys.getrefcount(kept) == before


_OUT_OF_MEMORY = """
import gc, sys
import _testcapi
import ggtok
tok = ggtok.load(sys.argv[1])
texts = ["Hello, world"] * 20_000
want = tok.encode_batch(texts, threads=2)
kept = max(want[0])
before = sys.getrefcount(kept)
failed = 0
for at in (1, 2, 3, 10, 100, 1000, 20_000, 39_000, 39_990):
    error = None
    _testcapi.set_nomemory(at, at + 1)
    try:
        found = tok.encode_batch(texts, threads=2)
    except MemoryError as e:
        error = True
    finally:
        _testcapi.remove_mem_hooks()
    failed += error is not None
    found = None
    gc.collect()
    assert sys.getrefcount(kept) == before, (at, sys.getrefcount(kept), before)
assert failed > 4, failed
assert tok.encode_batch(texts, threads=2) == want
print("ok")
"""


def test_python_out_of_memory_leaves_nothing() -> None:
    pytest.importorskip("_testcapi")
    command = [sys.executable, "-c", _OUT_OF_MEMORY, str(fixture("bpe-llama3"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr, done.returncode) == ("ok\n", "", 0)


def test_the_collector_finds_no_incomplete_list(tok: ggtok.Tokenizer) -> None:
    """The collector never finds an incomplete list: reading one would crash."""
    texts = ["Hello, world", "the kettle " * 30, ""] * 3000
    want = tok.encode_batch(texts, threads=1)
    stop = threading.Event()

    def collect() -> None:
        while not stop.is_set():
            gc.collect()
            for found in gc.get_objects():
                if type(found) is list:
                    for _ in found:
                        pass

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=collect)
    thread.start()
    try:
        for _ in range(8):
            assert tok.encode_batch(texts, threads=3) == want
            assert len(tok.encode_batch_with_offsets(texts, threads=3)) == len(texts)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(before)


@pytest.mark.parametrize("threads", [1, 3])
def test_chats_are_tracked_when_all_are_encoded(tok: ggtok.Tokenizer, threads: int) -> None:
    plain = [{"role": "user", "content": "Hello, world"}]
    prepared = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    chats = [plain, prepared, plain] * 100
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    want = [tok.encode_chat(chat, template=template) for chat in chats[:3]] * 100
    lists = tok.encode_chat_batch(chats, template=template, threads=threads)
    assert lists == want
    assert all(gc.is_tracked(each) for each in (lists, *lists))


def test_c_splits_joined_texts(tok: ggtok.Tokenizer) -> None:
    """In a batch, the code that reads files can pass many texts as one item, which C splits.
    Callers of the public API can't."""
    chooser = random.Random(7)
    texts = [chooser.choice((b"", b"Hello", b"the kettle " * 9)) for _ in range(2000)]
    data, full = b"".join(text + b"|" for text in texts), [text for text in texts if text]
    native, args = tok._loaded, (True, False, False, 2)
    joined = data, b"|", len(texts), False
    batch: list[Any] = [b"first", joined, b"a|b", (b"", b"|", 0, False), (b"|", b"|", 1, False)]
    lists = native.encode_batch(batch, *args, True, True, None)
    assert lists == tok.encode_batch([b"first", *texts, b"a|b", b""])
    batch = [(data, b"|", len(full), True), (b"||", b"|", 0, True), b"a|b"]
    lists = native.encode_batch(batch, *args, True, True, None)
    assert lists == tok.encode_batch([*full, b"a|b"])
    assert len(full) < len(texts)
    for wrong in (
        (b"a|b", b"|", 2, False),
        (b"a||", b"|", 2, True),
        (b"a", b"|", -1, False),
        ("a|", b"|", 1, False),
        (b"a|", b"|", 1),
        7,
    ):
        with pytest.raises((ValueError, OverflowError, TypeError, IndexError)):
            native.encode_batch([b"first", wrong], *args, True, True, None)
    with pytest.raises(ggtok.InvalidTypeError, match=r"texts\[0\]"):
        tok.encode_batch([joined])  # type: ignore[list-item]
