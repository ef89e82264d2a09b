"""Memory that other threads change during a call: only ``bytes`` objects are read in place."""

from __future__ import annotations

import contextlib
import ctypes
import mmap
import subprocess
import sys
import threading
from array import array
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import ggtok
from tests.support.vocabularies import fixture

LIMIT = "GGTOK_METADATA_LIMIT"


@contextmanager
def changing(change: Callable[[], None]) -> Iterator[None]:
    """Calls `change` repeatedly on another thread."""
    stop = threading.Event()

    def run() -> None:
        while not stop.is_set():
            change()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


# Functions that return read-only views of writable memory.
def read_only(data: bytearray) -> memoryview:
    return memoryview(data).toreadonly()


def in_numpy(data: bytearray) -> np.ndarray[tuple[int], np.dtype[np.uint8]]:
    view = np.frombuffer(data, np.uint8)
    view.flags.writeable = False
    return view


@pytest.mark.parametrize("view", [read_only, in_numpy])
@pytest.mark.parametrize("batch", [False, True])
def test_a_text_is_one_state_of_the_memory(
    view: Callable[[bytearray], object], batch: bool
) -> None:
    """Each change swaps the whole text at once, atomically for Python code."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    states = [b"the kettle " * 20_000, b"of a table." * 20_000]
    ids = [tok.encode(state) for state in states]
    memory = bytearray(states[0])
    turn = 0

    def change() -> None:
        nonlocal turn
        turn ^= 1
        memory[:] = states[turn]

    text: object = view(memory)
    with changing(change):
        for _ in range(40):
            found = tok.encode_batch([text])[0] if batch else tok.encode(text)  # type: ignore
            assert found in ids


def test_ids_are_one_state_of_the_memory() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    states = [array("i", [1, 2, 3, 4] * 200_000), array("i", [4, 3, 2, 1] * 200_000)]
    texts = [tok.decode_bytes(state.tolist()) for state in states]
    memory = array("i", states[0])
    writable = memoryview(memory)
    turn = 0

    def change() -> None:
        nonlocal turn
        turn ^= 1
        writable[:] = memoryview(states[turn])

    view = np.frombuffer(memory, np.int32)
    view.flags.writeable = False
    with changing(change):
        for _ in range(40):
            assert tok.decode_bytes(view) in texts
            assert tok.decode_bytes(writable.toreadonly()) in texts


# Loads a vocabulary 300 times from memory in which lengths alternate between the right values and
# nonsense. Each load succeeds or raises an error. This runs in a child process, because a fault
# would crash it.
ATTACK = """
import mmap, os, sys, threading, warnings
import numpy as np
import ggtok
warnings.simplefilter("ignore")
path, kind = sys.argv[1:]
good = open(path, "rb").read()
at = good.index(b"tokenizer.ggml.tokens") + len("tokenizer.ggml.tokens") + 16
bad = good[:at] + b"".join(b"\\xff\\xff\\xff\\x7f" for _ in range(64)) + good[at + 256:]
if kind == "bytearray":
    memory = bytearray(good)
    source = memoryview(memory).toreadonly()
    def write(state): memory[:] = state
else:
    file = open(path, "r+b")
    source = (mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if kind == "mmap"
              else np.memmap(path, np.uint8, "r"))
    def write(state): os.pwrite(file.fileno(), state[at:at + 256], at)
stop = threading.Event()
def change():
    while not stop.is_set():
        write(bad)
        write(good)
thread = threading.Thread(target=change)
sys.setswitchinterval(1e-5)
thread.start()
for _ in range(300):
    try:
        ggtok.load(source)
    except ggtok.GGTokError:
        pass
stop.set()
thread.join()
print("done")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="os.pwrite")
@pytest.mark.parametrize("kind", ["bytearray", "mmap", "memmap"])
def test_loading_from_changing_memory_never_crashes(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(fixture("bpe-llama3").read_bytes())
    done = subprocess.run(
        [sys.executable, "-c", ATTACK, str(path), kind], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "done\n"


def test_only_the_metadata_of_a_mapped_file_is_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    metadata = fixture("bpe-gpt2").read_bytes()
    path = tmp_path / "model.gguf"
    with path.open("wb") as file:
        file.write(metadata)
        file.truncate(3 << 30)  # a hole in place of the weights
    monkeypatch.setenv(LIMIT, str(len(metadata) + 1000))
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
        assert ggtok.load(mapped).encode("kettle") == ggtok.load(path).encode("kettle")
        monkeypatch.setenv(LIMIT, "1000")
        with pytest.raises(ggtok.FileError, match=f"metadata takes more than 1000 bytes.*{LIMIT}"):
            ggtok.load(mapped)


class ChangingMapping(Mapping[str, bool]):
    """A mapping whose length and keys change with each call."""

    def __init__(self) -> None:
        self.calls = 0

    def __len__(self) -> int:
        self.calls += 1
        return self.calls**5

    def __iter__(self) -> Iterator[str]:
        self.calls += 1
        return iter(f"key{i}" for i in range(self.calls))

    def __getitem__(self, key: str) -> bool:
        return True


def test_overrides_may_change_during_a_load() -> None:
    assert ggtok.load(fixture("bpe-gpt2"), overrides=ChangingMapping()).encode("kettle")
    overrides = {"tokenizer.ggml.add_bos_token": False}

    def change() -> None:
        overrides["another"] = True
        overrides.pop("another")

    with changing(change):
        for _ in range(200):
            ggtok.load(fixture("bpe-gpt2"), overrides=overrides)

    class Changing(dict[str, bool]):
        def keys(self) -> Iterator[str]:  # type: ignore[override]
            raise RuntimeError("dictionary changed size during iteration")

        __iter__ = keys

    with pytest.raises(ggtok.InvalidValueError, match="overrides: dictionary changed size"):
        ggtok.load(fixture("bpe-gpt2"), overrides=Changing(a=True))


def test_later_changes_of_patterns_have_no_effect() -> None:
    patterns = [r"\w+|\W", r"."]
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=patterns)
    ids = tok.encode("the kettle")
    patterns.clear()
    assert tok.encode("the kettle") == ids


def test_the_true_length_of_a_bytes_object_counts() -> None:
    class Liar(bytes):
        def __len__(self) -> int:
            return 1 << 40

    tok = ggtok.load(fixture("bpe-gpt2"))
    assert tok.encode(Liar(b"kettle")) == tok.encode(b"kettle")
    token = tok.token_text(300)
    assert tok.text_to_token(Liar(token)) == 300
    assert ggtok.load(Liar(fixture("bpe-gpt2").read_bytes())).n_tokens == tok.n_tokens


def test_texts_are_bytes() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    want = tok.encode(b"kettle")
    for text in (
        bytearray(b"kettle"),
        array("b", b"kettle"),
        memoryview(b"kettle").cast("c"),
        np.frombuffer(b"kettle", np.uint8),
        np.frombuffer(b"kettle", np.uint8).reshape(2, 3),
        (ctypes.c_char * 6)(*b"kettle"),
    ):
        assert tok.encode(text) == want
    assert tok.encode(np.zeros((2, 0), np.uint8)) == tok.encode(b"")
    for wrong, what in (
        (np.array([15496, 995]), r"ndarray whose items aren't bytes \(buffer format 'l'\)"),
        (np.array([1.5], np.float32), "format 'f'"),
        (np.array([True]), r"format '\?'"),
        (np.array(["abc"]), "format '3w'"),
        (np.array([b"a"]), "format '1?s'"),
        (array("i", [1]), "array whose items aren't bytes"),
    ):
        for call in (tok.encode, tok.count, tok.encode_array, tok.text_to_token):
            with pytest.raises(ggtok.InvalidTypeError, match=what):
                call(wrong)
        with pytest.raises(ggtok.InvalidTypeError, match=r"texts\[1\] must be str or bytes-like"):
            tok.encode_batch(["kettle", wrong])  # type: ignore[list-item]
    with pytest.raises(ggtok.InvalidTypeError, match="source must be a path or a bytes-like"):
        ggtok.load(np.zeros(100, np.int64))


def test_changing_memory_is_encoded_and_decoded() -> None:
    """Writable memory is copied, so changes by another thread are harmless."""
    tok = ggtok.load(fixture("bpe-llama3"))
    text = bytearray(b"some words, " * 20_000)
    ids = array("i", [5]) * 200_000

    def flip() -> None:
        text[-1], ids[-1] = 0xF0, 2_000_000_000
        text[-1], ids[-1] = 0x20, 5

    with changing(flip):
        for _ in range(20):
            assert tok.count(text) > 10_000
            with contextlib.suppress(ggtok.TokenIdError):
                tok.decode_bytes(ids)
