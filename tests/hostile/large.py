"""Texts of 1 GB, and of around 2^31 bytes: ggtok returns correct ids, or raises an error before it
starts to work."""

from __future__ import annotations

import mmap
import time
from collections.abc import Callable

import numpy as np

import ggtok
from tests.support.memory import peak
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

PIECE = 1 << 16  # length in bytes of a long token: texts made of this token have few ids


def cheap() -> ggtok.Tokenizer:
    """Loads a vocabulary to which a token of 64 kB is added."""
    gguf = GGUF.read(fixture("spm"))
    for key, value in (
        ("tokens", b"x" * PIECE),
        ("scores", 0.0),
        ("token_type", 4),
    ):
        gguf.set(f"tokenizer.ggml.{key}", [*gguf.array(f"tokenizer.ggml.{key}"), value])
    return ggtok.load(gguf.dump())


def check(what: str, n: int, run: Callable[[], str]) -> bool:
    began = time.monotonic()
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # resets the peak of resident memory
    try:
        outcome, good = run(), True
    except ggtok.GGTokError as error:
        outcome, good = f"{type(error).__name__}: {error}", time.monotonic() - began < 1
    except AssertionError as error:
        outcome, good = f"WRONG: {error}", False
    seconds = time.monotonic() - began
    memory = f"{1024 * peak() / 1e9:>7.2f} GB at the peak"
    print(f"{what:<44}{n:>14,} bytes {seconds:>8.1f} s {memory}  {outcome}")
    return good


def main() -> int:
    tok = cheap()
    long = tok.n_tokens - 1
    good = True

    def tail(text: object, n: int) -> str:
        """Checks that the ids are the long token's, repeated, followed by those of the remaining
        bytes. Returns the number of ids, as text."""
        ids = tok.encode_array(text, add_special=False)  # type: ignore[arg-type]
        whole, rest = divmod(n, PIECE)
        assert (ids[:whole] == long).all(), "the long tokens"
        after = tok.encode("x" * (PIECE + rest), add_special=False)[1:]
        assert ids[whole:].tolist() == after, f"the end: {ids[whole:]}"
        assert tok.count(text, add_special=False) == len(ids), "count"  # type: ignore[arg-type]
        return f"{len(ids):,} ids"

    for n in (10**9, 2**31 - 1, 2**31, 2**31 + 5, 2**32 + 3):
        memory = mmap.mmap(-1, n)
        for at in range(0, n, 1 << 24):
            memory[at : min(at + (1 << 24), n)] = b"x" * (min(at + (1 << 24), n) - at)
        with memoryview(memory).toreadonly() as text:
            good &= check("one long token again and again", n, lambda t=text, n=n: tail(t, n))
        memory.close()

    good &= many_words(tok)
    # More text than llama.cpp can return, because its sizes are int32.
    ids = np.full(2**31 // PIECE + 1, long, np.int32)
    good &= check("decode to 2^31 bytes", ids.nbytes, lambda: f"{decoded_size(tok, ids):,} bytes")
    return 0 if good else 1


def decoded_size(tok: ggtok.Tokenizer, ids: np.ndarray) -> int:
    n = len(tok.decode_bytes(ids))
    assert n == len(ids) * PIECE, n
    return n


def many_words(tok: ggtok.Tokenizer) -> bool:
    """Encodes 1 GB of ordinary words, as bytes and as str."""
    n_words = 10**9 // 11
    texts: list[bytes | str] = [b"the kettle " * n_words]
    ten, twenty = (tok.encode(b"the kettle " * n, add_special=False) for n in (10, 20))
    period = (len(twenty) - len(ten)) // 10
    expected = len(ten) + period * (n_words - 10)

    def encoded() -> str:
        ids = tok.encode_array(texts[0], add_special=False)
        assert len(ids) == expected, len(ids)
        assert ids[: len(ten) - period].tolist() == ten[:-period], "the first ids"
        for at in range(period, len(ids) - 2 * period, 1 << 24):  # the ids are periodic
            part = ids[at : min(at + (1 << 24), len(ids) - 2 * period)]
            assert (part == ids[at + period : at + period + len(part)]).all(), at
        return f"{len(ids):,} ids"

    def counted() -> str:
        n = tok.count(texts[0], add_special=False)
        assert n == expected, n
        return f"{n:,} ids"

    good = check("words", len(texts[0]), encoded)
    good &= check("count of words", len(texts[0]), counted)
    texts[0] = bytes(texts[0]).decode()
    return good & check("count of a str", len(texts[0]), counted)
