"""One text on several threads has the ids of one thread."""

from __future__ import annotations

import random
import signal
import warnings
from collections.abc import Callable

import numpy as np
import pytest

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE
from tests.properties.given import HELD_WHOLE, NAMES, hostile_texts
from tests.support.samples import sampled
from tests.support.vocabularies import OTHERS, REAL, fixture, real

Load = Callable[[str], ggtok.Tokenizer]
PART = 8192  # the smallest part, in bytes: CHUNK_MIN in cext/api/batch.c


def texts(tok: ggtok.Tokenizer, seed: int, n: int) -> list[bytes]:
    """Returns texts of several parts: hostile ones, joined in random order."""
    rng = random.Random(seed)
    pieces = [text[:600] for text in hostile_texts(tok, seed, 40)]
    pieces += [line.encode() + b"\n" for line in [*PROSE, *CODE]]
    made = []
    for _ in range(n):
        text = bytearray()
        size = rng.randrange(2 * PART, 12 * PART)
        while len(text) < size:
            text += rng.choice(pieces)
        made.append(bytes(text))
    return made


def check(tok: ggtok.Tokenizer, text: bytes | str, **flags: bool) -> None:
    ids = tok.encode_array(text, **flags)
    for threads in (0, 2, 5):
        assert np.array_equal(tok.encode_array(text, threads=threads, **flags), ids)
        assert tok.count(text, threads=threads, **flags) == len(ids)


def check_texts(tok: ggtok.Tokenizer, seed: int, n: int) -> None:
    for i, text in enumerate(texts(tok, seed, n)):
        check(tok, text, add_special=i % 2 == 0, parse_special=i % 3 > 0)


@pytest.mark.parametrize("name", sampled([*NAMES[1:], NAMES[0]], 4))
def test_hostile_texts(load_fixture: Load, name: str) -> None:
    tok = load_fixture(name)
    check_texts(tok, 51, 3)
    check(tok, "")
    check(tok, "a" * (4 * PART))


@pytest.mark.full
@pytest.mark.parametrize("name", [*REAL, *OTHERS])
def test_real_vocabularies(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        tok = ggtok.load(real(name))
    check_texts(tok, 52, 12)


@pytest.mark.parametrize("name", ["bpe-llama3", "spm", "bpe-hybriddna", "ugm"])
def test_a_text_is_encoded_in_parts(name: str) -> None:
    """Each thread has a context with caches of the same size."""
    text = "the kettle\n" * (4 * PART)
    sizes = []
    for threads in 1, 4:
        tok = ggtok.load(fixture(name))
        tok.encode_array(text, threads=threads)
        sizes.append(tok.cache_info().currsize)
    n = 1 if name in HELD_WHOLE else 4
    assert sizes[0] > 0 and sizes[1] == n * sizes[0]


def test_options_and_types() -> None:
    tok = ggtok.load(fixture("bpe-llama3"))
    text = "One two<|eot_id|> three\n" * PART
    ids = tok.encode_array(text, parse_special=["<|eot_id|>"])
    for given in text, text.encode(), bytearray(text.encode()), memoryview(text.encode()):
        found = tok.encode_array(given, parse_special=["<|eot_id|>"], threads=2)
        assert np.array_equal(found, ids)
    more = tok.encode_array(text, continuation=True, threads=2)
    assert np.array_equal(more, tok.encode_array(text, continuation=True))
    for threads, error in (-1, ggtok.InvalidValueError), ("2", ggtok.InvalidTypeError):
        with pytest.raises(error, match="threads"):
            tok.encode_array(text, threads=threads)
        with pytest.raises(error, match="threads"):
            tok.count(text, threads=threads)
    for wrong in (None, 3, ["a"]):
        with pytest.raises(ggtok.InvalidTypeError, match="text must be"):
            tok.encode_array(wrong, threads=2)  # type: ignore[arg-type]
    with pytest.raises(ggtok.TextEncodeError):
        tok.count("a\ud800" * PART, threads=2)


def test_a_vocabulary_that_takes_no_continuation() -> None:
    tok = ggtok.load(fixture("wpm"))
    with pytest.raises(ggtok.InvalidValueError, match="continuation"):
        tok.encode_array("a b " * PART, continuation=True, threads=2)


def test_expressions_of_the_caller() -> None:
    check(ggtok.load(fixture("bpe-llama3"), pre_patterns=[r"\s+|\S+"]), "ab " * (2 * PART))


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a timer of the system")
def test_a_signal_stops_the_call() -> None:
    class Stop(Exception):
        pass

    def stop(*args: object) -> None:
        raise Stop

    tok = ggtok.load(fixture("spm"))
    text = b"no two words here are the same " * (1 << 19)

    def encode_forever() -> None:
        while True:
            tok.encode_array(text, threads=2)

    old = signal.signal(signal.SIGALRM, stop)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(Stop):
            encode_forever()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)
    check(tok, text[: 4 * PART])
