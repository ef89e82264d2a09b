"""Memory: every call reports when memory runs out, and large buffers aren't kept."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.native.contexts import Blocks
from tests.support.vocabularies import fixture

ROOT = Path(__file__).parents[2]

linux = pytest.mark.skipif(sys.platform != "linux", reason="memory is limited as on Linux")


def run(code: str, *arguments: object, **environment: str) -> str:
    command = [sys.executable, "-c", code, *map(str, arguments)]
    environment = {**os.environ, **environment}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    except MemoryError as error:  # raised by ggtok, or by Python when it creates the list
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
def test_calls_without_memory_raise() -> None:
    """Every call raises MemoryError, and works again once memory is available."""
    # With this threshold, malloc returns freed blocks of 64 kB and more to the system, so that each
    # call must request memory again.
    refused = run(NO_MEMORY, fixture("bpe-llama3"), MALLOC_MMAP_THRESHOLD_="65536").split()
    assert len(refused) == 5
    assert refused.count("True") >= 2


@pytest.mark.parametrize("by_python", [False, True])
def test_failed_allocations_raise_in_every_call(by_python: bool) -> None:
    """A memory limit can't make only small allocations fail. Instead, the test replaces C functions
    by functions that raise the error for lack of memory."""
    from ggtok.native.library import ffi, lib
    from ggtok.native.native_tokenizer import _Failed

    err = ffi.new("ggtok_error *")
    err.status = lib.GGTOK_ERR_MEMORY
    failure = MemoryError() if by_python else _Failed(bytes(ffi.buffer(err)), None)

    def failing(*args: object) -> Any:
        raise failure

    tok = ggtok.load(fixture("bpe-gpt2"))
    tok._encode = failing  # type: ignore[method-assign, assignment]
    for name in ("encode_array", "count", "encode_batch", "encode_trusted", "decode", "take"):
        setattr(tok._loaded, name, failing)
    calls: list[Callable[[], object]] = [
        lambda: tok.encode("a"),
        lambda: tok.encode_array("a"),
        lambda: tok.count("a"),
        lambda: tok.encode_batch(["a"]),
        lambda: tok.decode([1]),
        lambda: tok._loaded.encode_parts("a", 0, []),
        lambda: Blocks(tok._loaded),
    ]
    for call in calls:
        with pytest.raises(ggtok.OutOfMemoryError):
            call()


def test_a_tokenizer_that_cannot_be_bound_is_freed(monkeypatch: pytest.MonkeyPatch) -> None:
    """If a tokenizer's functions can't be bound, the tokenizer is freed."""
    from ggtok.native import native_tokenizer

    class Library:
        freed = 0

        def __getattr__(self, name: str) -> Any:
            return getattr(library, name)

        def ggtok_python_bind_tokenizer(self, *args: object) -> bool:
            return False

        def ggtok_free(self, tokenizer: object) -> None:
            self.freed += 1
            library.ggtok_free(tokenizer)

    library, short = native_tokenizer.lib, Library()
    monkeypatch.setattr(native_tokenizer, "lib", short)
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
def test_memory_of_a_large_result_is_not_kept() -> None:
    for line in run(AFTER_A_LARGE_TEXT, fixture("bpe-gpt2")).splitlines():
        size, kept = map(int, line.split())
        assert size > 10_000_000 and kept < 4_000_000


PEAK = """
import sys
import ggtok
from tests.support.memory import peak, resident
tok = ggtok.load(sys.argv[1])
texts = [b"the kettle sang of %d copper pans " % i * 200 for i in range(8000)]
tok.encode_batch_arrays(texts[:400], threads=2)
before = resident()
ids, _ = tok.encode_batch_arrays(texts, threads=int(sys.argv[2]))
print(peak() - before, ids.nbytes // 1024)
"""


@linux
@pytest.mark.parametrize("threads", [1, 2])
def test_a_batch_takes_little_more_than_its_result(threads: int) -> None:
    """A batch uses little more memory than its result. Claim python.2."""
    more, result = map(int, run(PEAK, fixture("bpe-llama3"), threads).split())
    assert result > 80_000  # size of the result in kB
    assert result < more < 1.3 * result
