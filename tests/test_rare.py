"""What rarely happens: memory runs out, signals arrive, modules are missing, types are odd."""

from __future__ import annotations

import copy
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ggtok
from ggtok import cli
from tests.patch import FORMATS, GGUF
from tests.vocabularies import fixture

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX signals and terminals")
linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as on Linux")


def run(code: str, *arguments: object, **environment: str) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


# ---- memory ----

NO_MEMORY = """
import mmap, resource, sys, ggtok
tok, first = ggtok.load(sys.argv[1]), ggtok.load(sys.argv[1])
text, ids = "the kettle " * 4_000_000, tok.encode_array("the kettle " * 3_000_000)
want = tok.encode("still works")

def limited(more, call):
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + more, resource.RLIM_INFINITY))
    try:
        call()
    except MemoryError as error:  # ggtok's, or Python's own when it makes the list
        print(isinstance(error, ggtok.GGTokError), end=" ")
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)
    assert tok.encode("still works") == want

limited(8 << 20, lambda: first.count(text))
limited(8 << 20, lambda: tok.encode(text))
limited(8 << 20, lambda: tok.encode_array(text))
limited(8 << 20, lambda: tok.decode_bytes(ids))
limited(8 << 20, lambda: tok.encode_batch_arrays([text], threads=1))
assert first.encode("still works") == want
"""


@linux
def test_memory_runs_out() -> None:
    """Every call says so, and works again when there is some."""
    # A fixed threshold: large blocks go back to the system and can't be had again.
    refused = run(NO_MEMORY, fixture("bpe-llama3"), MALLOC_MMAP_THRESHOLD_="65536").split()
    assert len(refused) == 5
    assert refused.count("True") >= 2


@pytest.mark.parametrize("by_python", [False, True])
def test_no_memory_to_encode(by_python: bool) -> None:
    """Allocations of some bytes, which no limit can make fail on their own: what becomes of
    the failures that the C functions raise."""
    from ggtok import _native

    err = _native.ffi.new("ggtok_error *")
    err.status = _native.lib.GGTOK_ERR_MEMORY
    failure = MemoryError() if by_python else _native._Failed(bytes(_native.ffi.buffer(err)), None)

    def failing(*args: object) -> Any:
        raise failure

    tok = ggtok.load(fixture("bpe-gpt2"))
    tok._encode = failing  # type: ignore[method-assign, assignment]
    for name in ("encode_bytes", "count", "encode_batch", "decode", "take"):
        setattr(tok._native, name, failing)
    calls: list[Callable[[], object]] = [
        lambda: tok.encode("a"),
        lambda: tok.encode_array("a"),
        lambda: tok.count("a"),
        lambda: tok.encode_batch(["a"]),
        lambda: tok.decode([1]),
        lambda: tok._native.encode_trusted("a", 0, []),
    ]
    for call in calls:
        with pytest.raises(ggtok.OutOfMemoryError):
            call()


def test_no_memory_to_load(monkeypatch: pytest.MonkeyPatch) -> None:
    """For the functions of a tokenizer: it is freed."""
    from ggtok import _native

    class Library:
        freed = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(library, name)

        def entry_bind(self, *args: object) -> bool:
            return False

        def ggtok_free(self, tokenizer: object) -> None:
            self.freed += 1
            library.ggtok_free(tokenizer)

    library, short = _native.lib, Library()
    monkeypatch.setattr(_native, "lib", short)
    with pytest.raises(ggtok.OutOfMemoryError):
        ggtok.load(fixture("bpe-gpt2"))
    assert short.freed == 1


AFTER_A_LARGE_TEXT = """
import resource, sys, ggtok
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
tok, text = ggtok.load(sys.argv[1]), b"the kettle" * 2_000_000
tok.count(b"small")
before = resident()
n = tok.count(text)
print(n, resident() - before)
ids = tok.encode_array(text)
before = resident()
tok.decode_bytes(ids)
print(len(text), resident() - before)
"""


@linux
def test_room_for_a_large_result_is_not_kept() -> None:
    for line in run(AFTER_A_LARGE_TEXT, fixture("bpe-gpt2")).splitlines():
        size, kept = map(int, line.split())
        assert size > 10_000_000 and kept < 4_000_000


# ---- signals ----


class Stop(BaseException):
    pass


@posix
def test_a_signal_while_patterns_cut_words() -> None:
    """What its handler raises comes out of the call, and the tokenizer still works."""
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\w+|\W"])
    want = tok.encode("the kettle")

    def stop(number: int, frame: object) -> None:
        raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (tok.encode, tok.encode_array, tok.count):
            signal.setitimer(signal.ITIMER_REAL, 0.1)
            with pytest.raises(Stop):
                call("the kettle " * 2_000_000)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert tok.encode("the kettle") == want


def test_what_failed_in_a_call_that_a_signal_ended_is_forgotten() -> None:
    """The failure of a pattern, which that call did not get to raise."""
    gguf = GGUF.read(fixture("bpe-gemma4"))
    gguf.remove("tokenizer.ggml.bos_token_id")
    tok = ggtok.load(gguf.dump(), pre_patterns=[r"\w+|\W"])
    assert tok._native._splitter is not None
    for call in (tok.encode, tok.count, lambda text: tok.encode_batch([text])):
        tok._native._splitter.failed[threading.get_ident()] = Stop()
        with pytest.raises(ggtok.VocabError, match="BOS"):
            call("the kettle")


@posix
@pytest.mark.parametrize(
    "error", [TypeError("stop"), UnicodeEncodeError("utf-8", "x", 0, 1, "stop")], ids=repr
)
def test_a_signal_whose_handler_raises_what_unreadable_texts_do(error: Exception) -> None:
    """It comes out all the same: the texts are fine."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    text = "the kettle " * 2_000_000  # made before the clock runs
    batch = [text[: len(text) // 20]] * 500

    def stop(number: int, frame: object) -> None:
        raise error from ZeroDivisionError()

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for call in (
            lambda: tok.encode(text),
            lambda: tok.encode_batch(batch, threads=1),
        ):
            signal.setitimer(signal.ITIMER_REAL, 0.01)
            with pytest.raises(type(error)) as caught:
                call()
            assert caught.value is error
            assert isinstance(error.__cause__, ZeroDivisionError)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_a_context_on_loan_comes_back_however_the_loan_ends() -> None:
    """A signal handler may raise before the caller has so much as a name for it."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    tok.encode("the kettle")
    at_rest = tok.cache_info()
    assert at_rest.currsize
    loan = tok._native.take()
    assert not tok.cache_info().currsize
    del loan
    assert tok.cache_info() == at_rest
    loan = tok._native.take()
    del tok
    del loan  # which kept the tokenizer alive


def test_ctrl_c_before_the_command_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    with pytest.raises(SystemExit) as caught:
        cli.entry_point()
    assert caught.value.code == 130


# ---- surroundings ----


def test_not_installed() -> None:
    code = "import sys; sys.modules['ggtok._ffi'] = None\ntry: import ggtok\n"
    assert "pip install" in run(code + "except ImportError as error: print(error)")


def test_cffi_is_missing() -> None:
    """It isn't blamed on the installation of ggtok."""
    code = "import sys; sys.modules['_cffi_backend'] = None\ntry: import ggtok\n"
    assert run(code + "except ImportError as error: print(error.name)") == "_cffi_backend\n"


@posix
@pytest.mark.parametrize(
    ("command", "arguments"), [("detokenize", ["64"]), ("chat", ["--template", "a.jinja"])]
)
def test_text_on_a_terminal_ends_with_a_newline(
    command: str, arguments: list[str], tmp_path: Path
) -> None:
    import pty

    (tmp_path / "a.jinja").write_text("{{ messages[0].content }}")
    master, slave = pty.openpty()
    argv = [sys.executable, "-m", "ggtok", command, str(fixture("bpe-gpt2")), *arguments]
    subprocess.run(argv, input=b'[{"content": "a"}]', stdout=slave, cwd=tmp_path, check=True)
    os.close(slave)
    shown = b""
    while not shown.endswith(b"\n"):
        shown += os.read(master, 100)
    os.close(master)
    assert shown == b"a\r\n"


def test_metadata_that_is_no_text_as_json(
    tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]
) -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set("general.name", b"\xff\xfe")
    path = gguf.write(tmp_path / "name.gguf")
    assert cli.main(["inspect", str(path), "--json"]) == 0
    assert rb"\udcff\udcfe" in capfdbinary.readouterr().out


def test_cores_where_the_system_does_not_tell(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    tok = ggtok.load(fixture("bpe-gpt2"))
    batch = ["the kettle " * 2000] * 20
    assert tok.encode_batch(batch) == [tok.encode(text) for text in batch]


# ---- values ----

NUMBERS = {"u8": 255, "i8": -128, "u16": 65535, "i16": -32768, "u32": 2**32 - 1, "i32": -(2**31)}
NUMBERS |= {"u64": 2**64 - 1, "i64": -(2**63)}
VALUES: dict[str, int | float | bool] = {**NUMBERS, "f32": 0.5, "f64": 1e-300, "bool": True}


def test_metadata_of_every_type() -> None:
    assert set(VALUES) == set(FORMATS)
    for name in ("version-2", "big-endian"):
        gguf = GGUF.read(fixture(name))
        for kind, value in VALUES.items():
            gguf.set(f"a.{kind}", value, kind)
        metadata = ggtok.load(gguf.dump()).metadata
        for kind, value in VALUES.items():
            assert metadata[f"a.{kind}"] == value
            assert type(metadata[f"a.{kind}"]) is type(value)


CALLS: dict[str, Callable[[ggtok.Tokenizer], object]] = {
    "encode": lambda tok: tok.encode("a"),
    "encode a view": lambda tok: tok.encode(memoryview(b"a")),
    "encode_array": lambda tok: tok.encode_array("a"),
    "encode_batch": lambda tok: tok.encode_batch(["a"]),
    "encode_batch of views": lambda tok: tok.encode_batch([memoryview(b"a")]),
    "encode_batch_arrays": lambda tok: tok.encode_batch_arrays(["a"]),
    "count": lambda tok: tok.count("a"),
    "token_text": lambda tok: tok.token_text(5),
    "token_score": lambda tok: tok.token_score(5),
    "token_attr": lambda tok: tok.token_attr(5),
    "token_to_piece": lambda tok: tok.token_to_piece(5),
}


@pytest.mark.parametrize("call", CALLS)
def test_a_file_that_has_ids_but_no_vocabulary(call: str) -> None:
    gguf = GGUF.read(fixture("none"))
    gguf.set("llama.vocab_size", 10)
    tok = ggtok.load(gguf.dump())
    with pytest.raises(ggtok.VocabError, match="no vocabulary"):
        CALLS[call](tok)


class Odd:
    """An integer that can't be had."""

    def __index__(self) -> int:
        raise TypeError("odd")


def test_ids_that_raise() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    with pytest.raises(ggtok.InvalidTypeError, match=r"ids\[1\] must be an integer, not Odd"):
        tok.decode([1, Odd()])


PATTERNS: dict[str, tuple[object, type[Exception], str]] = {
    "a number": ([r"\w+", 5], TypeError, r"pre_patterns\[1\].*int"),
    "no regular expression": (["a", "b", "("], ValueError, r"pre_patterns\[2\]"),
    "a str": (r"\w+", TypeError, "list of regular expressions"),
    "None in it": ([None], TypeError, r"pre_patterns\[0\].*NoneType"),
}


@pytest.mark.parametrize("row", PATTERNS)
def test_patterns_that_are_none(row: str) -> None:
    patterns, builtin, says = PATTERNS[row]
    with pytest.raises(builtin, match=says) as caught:
        ggtok.load(fixture("bpe-gpt2"), pre_patterns=patterns)  # type: ignore[arg-type]
    assert isinstance(caught.value, ggtok.ArgumentError)


def test_empty_matches_cut_nothing() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\d*", ""])
    plain = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\d+"])
    for text in ("kettle 12 and 3", "\u6f22\u5b57 7", "", "12"):
        assert tok.encode(text) == plain.encode(text)


def test_pre_with_a_nul() -> None:
    with pytest.raises(ggtok.InvalidValueError, match="NUL"):
        ggtok.load(fixture("bpe-gpt2"), pre="gpt-2\0")


def test_what_python_asks_of_an_object() -> None:
    tok, spm = ggtok.load(fixture("bpe-gpt2")), ggtok.load(fixture("spm"))
    assert len(tok) == tok.n_tokens == 757
    assert ggtok.load(fixture("none"))  # true, though it has no tokens
    assert repr(tok) == "<ggtok.Tokenizer BPE pre='gpt-2' n_tokens=757>"
    assert repr(spm) == f"<ggtok.Tokenizer SPM n_tokens={len(spm)}>"
    assert copy.copy(tok) is tok  # it never changes
    assert copy.deepcopy([tok])[0] is tok
    assert spm.add_space_prefix
    assert not tok.add_space_prefix


def test_scores_are_float32() -> None:
    tok = ggtok.load(fixture("spm"))
    scores = [tok.token_score(id) for id in range(tok.n_tokens)]
    assert scores == [float(np.float32(score)) for score in scores]
    assert len(set(scores)) > 100
