"""One tokenizer used by many threads, by processes, and through pickles."""

from __future__ import annotations

import itertools
import logging
import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.base.concurrency import cached_property
from ggtok.inspect.parity.texts import texts
from ggtok.native.contexts import Blocks
from ggtok.sources import hub
from ggtok.vocabularies.convert import folder
from tests.support.interrupts import interrupted, posix, stop_midway
from tests.support.programs import Build
from tests.support.vocabularies import fixture, fixture_names
from tests.support.waits import LIMIT, until

THREADS = 16
PATTERNS = [r"\p{L}+", r"\s+|\S"]

CALLS: dict[str, Callable[[ggtok.Tokenizer, list[bytes]], Any]] = {
    "encode": lambda tok, batch: [tok.encode(text, parse_special=True) for text in batch],
    "encode_array": lambda tok, batch: [tok.encode_array(text).tolist() for text in batch],
    "encode_batch": lambda tok, batch: tok.encode_batch(batch, threads=3),
    "encode_batch_arrays": lambda tok, batch: [
        part.tolist() for part in tok.encode_batch_arrays(batch, threads=2)
    ],
    "count": lambda tok, batch: [tok.count(text) for text in batch],
    "decode": lambda tok, batch: [tok.decode_bytes(ids) for ids in tok.encode_batch(batch)],
    "pieces": lambda tok, batch: [tok.token_to_piece(id) for id in range(0, tok.n_tokens, 5)],
    "metadata": lambda tok, batch: (dict(tok.metadata), tok.eot_id, tok.fim_pre_id),
}


def _batch(tok: ggtok.Tokenizer, n: int = 60) -> list[bytes]:
    words = [tok.token_text(id) for id in range(0, tok.n_tokens, 7)]
    return [text for text in texts(5, n, words, [b"<s>"]) if b"\xf5" not in text]


@pytest.fixture(scope="module", autouse=True)
def _frequent_switches() -> Any:
    """Switches threads often, to provoke races."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_sixteen_threads(name: str) -> None:
    """Each thread starts with a different call on an unused tokenizer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        alone, shared = ggtok.load(fixture(name)), ggtok.load(fixture(name))
    batch = _batch(alone)
    want = {what: call(alone, batch) for what, call in CALLS.items()}
    start = threading.Barrier(THREADS)

    def work(thread: int) -> list[str]:
        start.wait()
        order = [*CALLS][thread % len(CALLS) :] + [*CALLS][: thread % len(CALLS)]
        return [what for what in order if CALLS[what](shared, batch) != want[what]]

    with ThreadPoolExecutor(THREADS) as pool:
        assert list(pool.map(work, range(THREADS))) == [[]] * THREADS


def test_sixteen_threads_with_patterns() -> None:
    """Python code splits the words on each thread."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=PATTERNS)
    batch = _batch(tok, 30)
    want = [tok.encode(text) for text in batch]
    with ThreadPoolExecutor(THREADS) as pool:
        for ids in pool.map(lambda _: [tok.encode(text) for text in batch], range(THREADS)):
            assert ids == want


def test_threads_come_and_go() -> None:
    """A new thread reuses an earlier thread's context; the tokenizer outlives all threads."""
    tok = ggtok.load(fixture("bpe-llama3"))
    want = tok.encode("the kettle")
    for _ in range(200):
        thread = threading.Thread(target=tok.encode, args=("the kettle",))
        thread.start()
        thread.join()
    assert tok.encode("the kettle") == want


def test_tokenizers_are_freed_while_others_work() -> None:
    def work(_: int) -> list[int]:
        ids = []
        for _ in range(20):
            ids = ggtok.load(fixture("bpe-gpt2")).encode("the kettle")
        return ids

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(tuple, pool.map(work, range(8))))) == 1


def test_an_unknown_number_of_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    tok = ggtok.load(fixture("bpe-gpt2"))
    batch = ["the kettle " * 2000] * 20
    assert tok.encode_batch(batch) == [tok.encode(text) for text in batch]


# ---- fork ----


def _in_fork(work: Callable[[], bool]) -> bool:
    """Returns the result of `work` in a forked child, which is killed if it hangs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is deprecated
        child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    ended: list[int] = []

    def end() -> bool:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended.append(status)
        return bool(pid)

    try:
        until(end)
    finally:
        if not ended:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
    return ended == [0]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("before", ["nothing", "encode", "encode_batch", "a busy thread"])
@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm"])
def test_forked_children_encode(name: str, before: str) -> None:
    tok = ggtok.load(fixture(name))
    batch = _batch(tok) * 20
    reference = ggtok.load(fixture(name))
    want = [reference.encode(text) for text in batch]
    stop = threading.Event()
    busy = threading.Thread(
        target=lambda: [None for _ in iter(stop.is_set, True) if tok.encode_batch(batch, threads=2)]
    )
    if before == "encode":
        tok.encode(batch[0])
    elif before == "encode_batch":
        tok.encode_batch(batch, threads=4)
    elif before == "a busy thread":
        busy.start()
    try:
        for _ in range(3):
            assert _in_fork(
                lambda: (
                    [tok.encode(text) for text in batch] == want
                    and tok.encode_batch(batch, threads=4) == want
                    and tok.decode_bytes(want[3]) == reference.decode_bytes(want[3])
                )
            )
    finally:
        stop.set()
        if busy.ident:
            busy.join()
    assert tok.encode_batch(batch, threads=4) == want


def test_no_thread_of_a_batch_is_idle_while_there_is_work(c_program: Build) -> None:
    """The batches have texts of equal and of different sizes, with a huge text first, in the middle
    or last."""
    done = subprocess.run([c_program("batch", "-O1")], capture_output=True, text=True)
    assert (done.stdout, done.returncode) == ("ok\n", 0)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_threads_do_everything() -> None:
    """The threads use many of the C library's locks. (tests/c/contended.c forks while each single
    lock is held.)"""
    tok = ggtok.load(fixture("bpe-llama3"))
    batch = ["the kettle", "a text of some words"] * 20
    counts = ggtok.count_words(batch, pre="gpt-2")
    numbers = itertools.count()
    messages = [{"role": "user", "content": "Hi"}]

    def compile() -> object:
        return tok.apply_chat_template(messages, template=f"{{{{ messages }}}}{next(numbers)}")

    def render() -> object:
        return tok.encode_chat(messages * 20, template="{% for m in messages %}{{ m }}{% endfor %}")

    tasks: list[Callable[[], object]] = [
        compile,
        render,
        lambda: tok.encode_batch(batch, threads=2),
        lambda: counts.merge(ggtok.count_words(batch, pre="gpt-2", threads=2)),
        lambda: ggtok.train(batch, 300),
    ]
    for work in tasks:
        work()  # import modules now: Python itself can't always fork during imports
    stop = threading.Event()

    def repeat(work: Callable[[], object]) -> None:
        while not stop.is_set():
            work()

    threads = [threading.Thread(target=repeat, args=(work,)) for work in tasks]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            assert _in_fork(lambda: all(work() is not stop for work in tasks))
    finally:
        stop.set()
        for thread in threads:
            thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_a_property_is_computed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before Python 3.12, functools.cached_property had one lock for all instances."""
    entered, leave = threading.Event(), threading.Event()

    def read(path: object) -> dict[str, object]:
        if threading.current_thread() is not threading.main_thread():
            entered.set()
            leave.wait()
        return {}

    for name in ("config.json", "tokenizer_config.json"):
        (tmp_path / name).write_text("{}")
    monkeypatch.setattr(folder, "read_object", read)
    thread = threading.Thread(target=lambda: folder.SourceFolder(str(tmp_path)).config)
    thread.start()
    try:
        assert entered.wait(60)
        assert _in_fork(lambda: folder.SourceFolder(str(tmp_path)).config == {})
        assert isinstance(folder.SourceFolder.config, cached_property)
    finally:
        leave.set()
        thread.join()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_while_the_hub_is_asked() -> None:
    """A thread that queries the Hub silences huggingface_hub's logger. A forked child, in which
    this thread doesn't exist, must restore the logger's level."""
    logger = logging.getLogger("huggingface_hub")
    before = logger.level
    entered, leave = threading.Event(), threading.Event()

    def ask() -> None:
        with hub._quiet:
            entered.set()
            leave.wait()

    def is_as_before() -> bool:
        levels = [logger.level]
        with hub._quiet:
            levels.append(logger.level)
        return [*levels, logger.level] == [before, logging.CRITICAL, before]

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        assert entered.wait(60)
        assert _in_fork(is_as_before)
    finally:
        leave.set()
        thread.join()
    assert is_as_before()
    with hub._quiet._lock:  # simulate a forked child
        hub._quiet._lock.acquire()
        hub._quiet._inside, hub._quiet._level = 1, before
        hub._quiet._in_child()
    assert is_as_before()


# ---- exit of the process ----

# The interpreter takes a while to exit while a batch runs on a thread that is never joined.
ABANDONED = """
import sys, threading, time, ggtok
tok = ggtok.load(sys.argv[1])
text = "".join(chr(97 + i * i % 23) + " " * (i % 5 == 0) for i in range(30_000))

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

def deep(n):  # recursion, so that the system frees this part of an ended thread's C stack
    max([0, 1], key=lambda _: deep(n - 1) if n else encode())

def encode():
    busy.set()
    tok.encode_batch(batch, threads=4)

busy = threading.Event()
sys.modules["slow"] = Slow()
batch = [f"{i}{text}" for i in range(300)] * 200
threading.Thread(target=deep, args=(60,), daemon=True).start()
busy.wait()
"""


def test_exit_while_a_daemon_thread_is_busy() -> None:
    command = [sys.executable, "-c", ABANDONED, str(fixture("bpe-llama3"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT)
    assert (done.returncode, done.stderr) == (0, "")


# ---- pickles ----

BYTES = fixture("bpe-gpt2").read_bytes()
LOADED: dict[str, Callable[[], ggtok.Tokenizer]] = {
    "path": lambda: ggtok.load(fixture("bpe-gpt2")),
    "path and pre": lambda: ggtok.load(fixture("bpe-gpt2"), pre="deepseek-llm"),
    "path and patterns": lambda: ggtok.load(fixture("bpe-gpt2"), pre_patterns=PATTERNS),
    "bytes": lambda: ggtok.load(BYTES),
    "bytes and pre": lambda: ggtok.load(BYTES, pre="deepseek-llm"),
    "bytes and patterns": lambda: ggtok.load(BYTES, pre_patterns=PATTERNS),
    "bytes with weights": lambda: ggtok.load(BYTES + bytes(10 * len(BYTES))),
}
TEXT = "don't  stop, 12345 kettles\n\n of \u6f22\u5b57 <|endoftext|>"


@pytest.mark.parametrize("row", LOADED)
def test_pickles_keep_the_ids(row: str) -> None:
    tok = LOADED[row]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickle.dumps(tok))
    assert copy.encode(TEXT) == tok.encode(TEXT)
    assert copy.pre == tok.pre
    assert pickle.loads(pickle.dumps(copy)).encode(TEXT) == tok.encode(TEXT)


def test_three_rows_have_different_ids() -> None:
    assert len({tuple(load().encode(TEXT)) for load in LOADED.values()}) == 3


def test_weights_stay_out_of_pickles() -> None:
    assert len(pickle.dumps(LOADED["bytes with weights"]())) < 2 * len(BYTES)


def test_bytes_are_kept_not_copied() -> None:
    tok = ggtok.load(BYTES)
    assert tok.__reduce__()[1][0] is BYTES  # type: ignore[index]


@pytest.mark.parametrize("convert", [bytearray, memoryview, np.frombuffer], ids=str)
def test_memory_that_may_change_is_not_pickled(convert: Callable[[bytes], Any]) -> None:
    source = np.frombuffer(BYTES, np.uint8) if convert is np.frombuffer else convert(BYTES)
    tok = ggtok.load(source)
    with pytest.raises(TypeError, match="from a path or from bytes") as caught:
        pickle.dumps(tok)
    assert isinstance(caught.value, ggtok.GGTokError)
    assert tok.encode(TEXT) == LOADED["bytes"]().encode(TEXT)


def test_a_relative_path_is_pickled_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "here.gguf").write_bytes(BYTES)
    monkeypatch.chdir(tmp_path)
    pickled = pickle.dumps(ggtok.load("here.gguf"))
    monkeypatch.chdir("/")
    assert pickle.loads(pickled).encode(TEXT) == ggtok.load(BYTES).encode(TEXT)


def test_a_pickle_whose_file_is_gone_raises(tmp_path: Path) -> None:
    path = tmp_path / "gone.gguf"
    path.write_bytes(BYTES)
    pickled = pickle.dumps(ggtok.load(path))
    path.unlink()
    with pytest.raises(FileNotFoundError, match=r"gone\.gguf"):
        pickle.loads(pickled)


def _encode(tok: ggtok.Tokenizer, text: str) -> list[int]:
    return tok.encode(text)


@pytest.mark.full
@pytest.mark.parametrize("row", ["path", "bytes and pre", "path and patterns"])
@pytest.mark.parametrize("method", multiprocessing.get_all_start_methods())
def test_process_pools_share_a_tokenizer(method: str, row: str) -> None:
    tok = LOADED[row]()
    want = [tok.encode_batch([TEXT] * 50, threads=2)[0]] * 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads is deprecated
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(_encode, [tok] * 8, [TEXT] * 8)) == want


# ---- signals ----

# tests/c/stops.c tests how soon calls stop. The tests below check that a call stops before its end,
# and only on the main thread.


@posix
@pytest.mark.parametrize(
    "call",
    [
        "encode",
        "encode_array",
        "count",
        "batch of two",
        "one is huge",
        "str",
        "ranges",
        "parts",
        "a block",
    ],
)
def test_a_signal_stops_one_text(call: str) -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    want = tok.encode("the kettle"), tok.encode("123 kettles, " * 9000)
    some = b"".join(b"%d kettles, " % i for i in range(200_000))

    def prepare(n: int) -> Callable[[], object]:
        text = some * n
        string = text.decode() + "\N{SNOWMAN}" * (call == "str")

        def block() -> None:
            memory = bytearray(text)
            Blocks(tok._loaded).encode(memory, len(memory), 0)

        calls: dict[str, Callable[[], object]] = {
            "encode": lambda: tok.encode(text),
            "encode_array": lambda: tok.encode_array(text),
            "count": lambda: tok.count(text),
            "batch of two": lambda: tok.encode_batch([text, text], threads=2),
            "one is huge": lambda: tok.encode_batch([text, b"tiny"], threads=2),
            "str": lambda: tok.count(string),
            "ranges": lambda: tok._loaded.encode_ranges(string, 2, [(0, 5)]),
            "parts": lambda: tok._loaded.encode_parts(string, 2, [(0, 5)]),
            "a block": block,
        }
        return calls[call]

    stop_midway(tok, prepare)
    assert (tok.encode("the kettle"), tok.encode("123 kettles, " * 9000)) == want
    if call == "count":
        with ThreadPoolExecutor(1) as pool:  # a thread on which signal handlers don't run
            assert pool.submit(tok.count, some).result() == tok.count(some)


@posix
def test_a_signal_stops_the_search_for_a_cut() -> None:
    """A text of one word has no cut, so the search continues to the end of the text."""
    own = ggtok.load(fixture("bpe-llama3"))._loaded
    blocks, native, found = Blocks(own), own.safe_cut, list[int]()

    def search(*args: Any) -> int:
        # Python handles no signal between the end of the search and the change of the list.
        found.extend(itertools.starmap(native, [args]))
        return found[0]

    own.safe_cut = search
    for n in (8_000_000 << i for i in range(7)):
        text = bytearray(b"a" * n)
        if interrupted(lambda: blocks.safe_cut(text, 0), 0.02) and not found:  # noqa: B023
            return
        found.clear()
    raise AssertionError("no signal stopped the search")


@posix
@pytest.mark.parametrize("batch", ["list", "arrays", "one thread", "short", "patterns"])
def test_a_signal_stops_a_batch(batch: str) -> None:
    patterns = PATTERNS if batch == "patterns" else None
    tok = ggtok.load(fixture("bpe-llama3"), pre_patterns=patterns)
    text = "".join(chr(97 + i * i % 23) + " " * (i % 5 == 0) for i in range(30_000))

    def prepare(n: int) -> Callable[[], object]:
        texts = [f"{i}{text}" for i in range(20)] * n
        calls: dict[str, Callable[[], object]] = {
            "list": lambda: tok.encode_batch(texts * 10, threads=2),
            "arrays": lambda: tok.encode_batch_arrays(texts * 10, threads=2),
            "one thread": lambda: tok.encode_batch(texts * 10, threads=1),
            "short": lambda: tok.encode_batch(["some words"] * (200_000 * n), threads=2),
            "patterns": lambda: tok.encode_batch(texts, threads=2),
        }
        return calls[batch]

    stop_midway(tok, prepare)
    assert tok.decode(tok.encode("still works", add_special=False)) == "still works"


@posix
def test_a_signal_stops_a_batch_that_a_generator_makes() -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    assert interrupted(
        lambda: tok.encode_batch((f"{i} words" for i in itertools.count()), threads=2), 0.02
    )
