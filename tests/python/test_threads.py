"""One tokenizer in the hands of many threads, processes and pickles."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok.parity.texts import texts
from tests.support.timers import call_with_timer
from tests.support.vocabularies import fixture, fixture_names

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
    """Threads change places often, so that what can go wrong does."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_sixteen_threads(name: str) -> None:
    """Each starts with another call, all on a tokenizer that nothing has used."""
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
    """Python code cuts the words, on each thread."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=PATTERNS)
    batch = _batch(tok, 30)
    want = [tok.encode(text) for text in batch]
    with ThreadPoolExecutor(THREADS) as pool:
        for ids in pool.map(lambda _: [tok.encode(text) for text in batch], range(THREADS)):
            assert ids == want


def test_threads_come_and_go() -> None:
    """What a thread used is there for the next; the tokenizer outlives them all."""
    tok = ggtok.load(fixture("bpe-llama3"))
    want = tok.encode("the kettle")
    for _ in range(200):
        thread = threading.Thread(target=tok.encode, args=("the kettle",))
        thread.start()
        thread.join()
    assert tok.encode("the kettle") == want


def test_freed_while_other_tokenizers_work() -> None:
    def work(_: int) -> list[int]:
        ids = []
        for _ in range(20):
            ids = ggtok.load(fixture("bpe-gpt2")).encode("the kettle")
        return ids

    with ThreadPoolExecutor(8) as pool:
        assert len(set(map(tuple, pool.map(work, range(8))))) == 1


def test_cores_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    tok = ggtok.load(fixture("bpe-gpt2"))
    batch = ["the kettle " * 2000] * 20
    assert tok.encode_batch(batch) == [tok.encode(text) for text in batch]


# ---- fork ----


def _in_fork(work: Callable[[], bool]) -> bool:
    """What `work` gives in a forked child; a child that hangs is ended."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        child = os.fork()
    if not child:
        try:
            os._exit(0 if work() else 1)
        except BaseException:
            os._exit(2)
    for _ in range(600):
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.05)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    raise TimeoutError("the forked child hangs")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("before", ["nothing", "encode", "encode_batch", "a busy thread"])
@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "ugm"])
def test_fork(name: str, before: str) -> None:
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


# ---- the end of the process ----

# The interpreter takes a while to go down, with a batch under way on a thread that nobody joins.
ABANDONED = """
import sys, threading, time, ggtok
tok = ggtok.load(sys.argv[1])
text = "".join(chr(97 + i * i % 23) + " " * (i % 5 == 0) for i in range(30_000))

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(0.5)

def deep(n):  # so far down the C stack that the system takes that part from an ended thread
    max([0, 1], key=lambda _: n and deep(n - 1) or tok.encode_batch(batch, threads=4))

sys.modules["slow"] = Slow()
batch = [f"{i}{text}" for i in range(300)] * 200
threading.Thread(target=deep, args=(60,), daemon=True).start()
time.sleep(0.2)
"""


def test_exit_while_a_daemon_thread_is_busy() -> None:
    command = [sys.executable, "-c", ABANDONED, str(fixture("bpe-llama3"))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
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
def test_pickle(row: str) -> None:
    tok = LOADED[row]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        copy = pickle.loads(pickle.dumps(tok))
    assert copy.encode(TEXT) == tok.encode(TEXT)
    assert copy.pre == tok.pre
    assert pickle.loads(pickle.dumps(copy)).encode(TEXT) == tok.encode(TEXT)


def test_the_rows_differ() -> None:
    assert len({tuple(load().encode(TEXT)) for load in LOADED.values()}) == 3


def test_weights_stay_out_of_pickles() -> None:
    assert len(pickle.dumps(LOADED["bytes with weights"]())) < 2 * len(BYTES)


def test_bytes_are_kept_not_copied() -> None:
    tok = ggtok.load(BYTES)
    assert tok.__reduce__()[1][0] is BYTES  # type: ignore[index]


@pytest.mark.parametrize("of", [bytearray, memoryview, np.frombuffer], ids=str)
def test_memory_that_may_change_is_not_pickled(of: Callable[[bytes], Any]) -> None:
    source = np.frombuffer(BYTES, np.uint8) if of is np.frombuffer else of(BYTES)
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


def test_a_pickle_whose_file_is_gone(tmp_path: Path) -> None:
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
def test_process_pools(method: str, row: str) -> None:
    tok = LOADED[row]()
    want = [tok.encode_batch([TEXT] * 50, threads=2)[0]] * 8
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of forking with threads
        context = multiprocessing.get_context(method)
        with ProcessPoolExecutor(2, mp_context=context) as pool:
            assert list(pool.map(_encode, [tok] * 8, [TEXT] * 8)) == want


# ---- Ctrl-C ----

# Batches of a minute or more, interrupted once they are under way.
INTERRUPTED = """
import itertools, sys, ggtok
tok = ggtok.load(sys.argv[1], pre_patterns=[r"\\w+|\\W"] if sys.argv[2] == "patterns" else None)
text = "".join(chr(97 + i * i % 23) + " " * (i % 5 == 0) for i in range(30_000))
batches = {
    "list": lambda: tok.encode_batch([f"{i}{text}" for i in range(300)] * 200, threads=2),
    "arrays": lambda: tok.encode_batch_arrays([f"{i}{text}" for i in range(300)] * 200, threads=2),
    "one thread": lambda: tok.encode_batch([f"{i}{text}" for i in range(300)] * 200, threads=1),
    "short": lambda: tok.encode_batch(["some words"] * 30_000_000, threads=2),
    "generator": lambda: tok.encode_batch((f"{i} words" for i in itertools.count()), threads=2),
    "patterns": lambda: tok.encode_batch([text] * 100_000, threads=2),
}
batch = batches[sys.argv[2]]
print("begins", flush=True)
try:
    batch()
except KeyboardInterrupt:
    assert tok.decode(tok.encode("still works", add_special=False)) == "still works"
    print("interrupted", flush=True)
"""


class Interrupted(Exception):
    pass


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
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
        "a cut",
    ],
)
def test_a_signal_stops_one_text(call: str) -> None:
    """tests/c/stops.c says how soon; here, that it is before the end, and on the main thread."""
    tok = ggtok.load(fixture("bpe-llama3"))
    text = b"".join(b"%d kettles, " % i for i in range(1_500_000))
    if call == "str":
        string = text.decode() + "\N{SNOWMAN}"
    elif call in ("ranges", "parts"):
        string = text.decode()
    elif call in ("a block", "a cut"):  # there is none, as in a text of one word
        block = bytearray(text if call == "a block" else b"a" * 8_000_000)
        blocks = tok._native.blocks()
    calls: dict[str, Callable[[], object]] = {
        "encode": lambda: tok.encode(text),
        "encode_array": lambda: tok.encode_array(text),
        "count": lambda: tok.count(text),
        "batch of two": lambda: tok.encode_batch([text, text], threads=2),
        "one is huge": lambda: tok.encode_batch([text, b"tiny"], threads=2),
        "str": lambda: tok.count(string),
        "ranges": lambda: tok._native.encode_ranges(string, 2, [(0, 5)]),
        "parts": lambda: tok._native.encode_parts(string, 2, [(0, 5)]),
        "a block": lambda: blocks.encode(block, len(block), 0),
        "a cut": lambda: blocks.safe_cut(block, 0),
    }
    handled = []

    def stop(number: int, frame: object) -> None:
        handled.append(tok.encode("the kettle"))  # which may use the tokenizer, too
        raise Interrupted

    def stops_early() -> bool:
        began = time.process_time()
        with pytest.raises(Interrupted):
            call_with_timer(calls[call], 0.02, of_processor=True)
        stopped = time.process_time() - began
        assert handled.pop() == want[0] and not handled
        assert (tok.encode("the kettle"), tok.encode(text[:100_000])) == want
        began = time.process_time()
        calls[call]()
        return stopped < (time.process_time() - began) / 2

    want = tok.encode("the kettle"), tok.encode(text[:100_000])
    before = signal.signal(signal.SIGPROF, stop)
    try:  # in processor time; a machine with other work to do may still bring the signal late
        assert any(stops_early() for _ in range(3))
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)
    if call == "count":
        with ThreadPoolExecutor(1) as pool:  # where no handler runs
            assert pool.submit(tok.count, text).result() == tok.count(text)


@pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals")
@pytest.mark.parametrize(
    "batch", ["list", "arrays", "one thread", "short", "generator", "patterns"]
)
def test_ctrl_c_stops_a_batch(batch: str) -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(fixture("bpe-llama3")), batch]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            assert child.stdout.readline() == "begins\n"
            time.sleep(1.5)
            assert child.poll() is None, "the batch is too short to be interrupted"
            child.send_signal(signal.SIGINT)
            # A second is promised; the rest is for a machine that has more to do.
            said, _ = child.communicate(timeout=8)
            assert (child.returncode, said) == (0, "interrupted\n")
        finally:
            child.kill()
