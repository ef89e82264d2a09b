"""Files with hash collisions load and encode with about as much work as other files of their size.

The files have keys, tokens and merges whose hashes are equal until the table gets another seed, and
a special token that a rolling hash would find at every position of a text.

Claim hash.1.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import ggtok
from tests.c.build import STEPS
from tests.support.patch import GGUF
from tests.support.programs import Build
from tests.support.vocabularies import fixture, fixture_names
from tests.support.work import LINEAR, Measure

TOKENS, TYPES = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
MERGES = "tokenizer.ggml.merges"

REACH = 256  # the greatest allowed reach of a table, from cext/base/hash.h
N = 20_000  # colliding entries in a file

# A prefix of texts of 9 to 16 bytes that collide, because cext/base/hash.h multiplies them by 0 as
# long as the seed is 0.
SWALLOW = (0xD1B54A32D192ED03).to_bytes(8, "little")
OTHERS = SWALLOW[::-1]  # a prefix of equal length, which causes no collisions
FACTOR = np.uint64(0x9E3779B97F4A7C15)  # the multiplier in cext/models/bpe/table.h


def texts(prefix: bytes, n: int = N) -> list[bytes]:
    return [prefix + b"%07x" % i for i in range(n)]


def keys_of(prefix: bytes) -> GGUF:
    gguf = GGUF.read(fixture("spm"))
    for text in texts(prefix):
        gguf.raw[text] = b"\0\0\0\0\1"  # the value 1 of type u8
    return gguf


def tokens_of(prefix: bytes) -> GGUF:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    gguf.set(TOKENS, [*gguf.strings(TOKENS), *texts(prefix)])
    gguf.set(TYPES, [*gguf.array(TYPES), *[1] * N])
    return gguf


def extras_of(prefix: bytes) -> GGUF:
    """Builds a file with merges of strings that aren't tokens."""
    gguf = GGUF.read(fixture("bpe-gpt2"))
    left = texts(prefix)
    gguf.set(MERGES, [a + b" " + b for a, b in zip(left[::2], left[1::2], strict=True)])
    return gguf


def pairs_of(collide: bool) -> GGUF:
    """Builds a file with merges of tokens: the pairs with the lowest hashes of four million if
    `collide`, otherwise random pairs."""
    n_tokens, n = 2000, 31_000
    words = [b"%03x" % i for i in range(n_tokens)]
    gguf = GGUF.read(fixture("bpe-gpt2"))
    old = gguf.strings(TOKENS)
    gguf.set(TOKENS, [*old, *words])
    gguf.set(TYPES, [*gguf.array(TYPES), *[1] * n_tokens])
    bits = np.uint64(16)  # bits of a symbol's number: tokens and merged texts are symbols
    assert 1 << 15 < len(old) + n_tokens + n < 1 << 16
    left, right = np.divmod(np.arange(n_tokens * n_tokens, dtype=np.uint64), np.uint64(n_tokens))
    first = np.uint64(len(old))
    key = (left + first) << bits | (right + first)
    place = (key ^ key >> np.uint64(15)) * FACTOR
    any_pairs = np.random.default_rng(1).choice(len(place), n, replace=False)
    chosen = np.argpartition(place, n)[:n] if collide else any_pairs
    merges = [words[int(left[i])] + b" " + words[int(right[i])] for i in chosen]
    gguf.set(MERGES, merges)
    return gguf


MAKERS: dict[str, Callable[[bool], GGUF]] = {
    "keys": lambda collide: keys_of(SWALLOW if collide else OTHERS),
    "texts": lambda collide: tokens_of(SWALLOW if collide else OTHERS),
    "extras": lambda collide: extras_of(SWALLOW if collide else OTHERS),
    "pairs": pairs_of,
}


@cache
def file_of(table: str, collide: bool) -> bytes:
    return MAKERS[table](collide).dump()


@pytest.fixture(scope="module")
def reach(c_program: Build) -> Callable[[Path], dict[str, tuple[int, int]]]:
    """Returns a function that loads a file and returns the reach of each table, and whether the
    table was rebuilt."""
    program = c_program("reach", *STEPS)  # shares its object files with `work`

    def run(path: Path) -> dict[str, tuple[int, int]]:
        done = subprocess.run([program, path], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout
        rows = (line.split() for line in done.stdout.splitlines())
        return {name: (int(steps), int(rebuilt)) for name, steps, rebuilt in rows}

    return run


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in fixture_names() if name != "none"])
def test_no_table_of_a_fixture_is_rebuilt(
    name: str, reach: Callable[[Path], dict[str, tuple[int, int]]]
) -> None:
    assert all(steps < 32 and not rebuilt for steps, rebuilt in reach(fixture(name)).values())


@pytest.mark.parametrize("table", MAKERS)
def test_a_table_with_collisions_is_rebuilt(
    table: str, reach: Callable[[Path], dict[str, tuple[int, int]]], tmp_path: Path
) -> None:
    for collide in (False, True):
        (tmp_path / "file.gguf").write_bytes(file_of(table, collide))
        steps, rebuilt = reach(tmp_path / "file.gguf")[table]
        assert steps <= REACH and bool(rebuilt) == collide


@pytest.mark.parametrize("table", MAKERS)
def test_a_file_with_collisions_loads_like_others(table: str, work: Measure) -> None:
    hostile, ordinary = (work(file_of(table, collide)).load for collide in (True, False))
    assert hostile < 2 * ordinary, (hostile, ordinary)  # collisions would cost 100 times as much


LETTERS = [bytes([c]) for c in b"abcdefghijklmnopqrstuvwxyz"]


def run_of_slots(hostile: bool) -> GGUF:
    """Builds a file with merges of letters and 75,000 merges of tokens.

    If `hostile`, the latter fill all slots of a long range, starting just before the home slot of
    the key ~0, which no pair has; otherwise they are random. All entries are near their home slots,
    so the table isn't rebuilt."""
    n_tokens, n = 1500, 75_000
    words = [b"Z%03x" % i for i in range(n_tokens)]
    gguf = GGUF.read(fixture("bpe-gpt2"))
    old = gguf.strings(TOKENS)
    gguf.set(TOKENS, [*old, *words])
    gguf.set(TYPES, [*gguf.array(TYPES), *[1] * n_tokens])
    symbol_bits, slot_bits = 17, 17
    assert 1 << 16 < len(old) + n_tokens + n < 1 << symbol_bits and n > 0.5 * (1 << slot_bits)

    def slot(key: np.ndarray) -> np.ndarray:
        return (key ^ key >> np.uint64(15)) * FACTOR >> np.uint64(64 - slot_bits)

    pair = np.arange(n_tokens * n_tokens, dtype=np.uint64)
    left, right = np.divmod(pair, np.uint64(n_tokens))
    first = np.uint64(len(old))
    place = slot((left + first) << np.uint64(symbol_bits) | (right + first))
    if hostile:
        id_of = {text: np.uint64(i) for i, text in enumerate(old)}
        heads = np.array(
            [id_of[a] << np.uint64(symbol_bits) | id_of[b] for a in LETTERS for b in LETTERS]
        )
        end = int(slot(np.array([2**64 - 1], dtype=np.uint64))[0])
        wanted = (np.arange(n, dtype=np.uint64) + np.uint64(end - 10)) % np.uint64(1 << slot_bits)
        wanted = np.setdiff1d(wanted, slot(heads))
        pair_of = np.zeros(1 << slot_bits, dtype=np.int64)
        pair_of[place] = pair
        chosen = pair_of[wanted]
        assert np.array_equal(place[chosen], wanted)
    else:
        chosen = np.random.default_rng(1).choice(len(pair), n, replace=False)
    merges = [a + b" " + b for a in LETTERS for b in LETTERS if a + b not in old]
    merges += [words[int(left[i])] + b" " + words[int(right[i])] for i in chosen]
    gguf.set(MERGES, merges)
    return gguf


def test_searches_stop_early_in_a_run_of_full_slots(work: Measure) -> None:
    rng = np.random.default_rng(2)
    text = b" ".join(bytes(rng.integers(97, 123, 10).tolist()) for _ in range(3000))
    hostile, ordinary = (
        work(run_of_slots(hostile).dump(), text).encode[0] for hostile in (True, False)
    )
    assert hostile < 2 * ordinary, (hostile, ordinary)


def test_ids_do_not_depend_on_the_seed() -> None:
    """A file whose tables are rebuilt with a random seed has the same ids and texts each time it is
    loaded."""
    data = file_of("texts", True)
    one, two = ggtok.load(data), ggtok.load(data)
    text = b"Hello " + b" ".join(texts(SWALLOW, 50))
    assert one.encode(text) == two.encode(text)
    assert [one.text_to_token(text) for text in texts(SWALLOW, 50)] == [
        one.n_tokens - N + i for i in range(50)
    ]


def test_a_special_token_that_a_rolling_hash_would_find_everywhere(work: Measure) -> None:
    """The word ends with a Thue-Morse sequence, so any polynomial hash of the word modulo 2**64
    equals the hash of equally many b's. A search by such a hash would compare the whole word at
    each position."""
    tail = bytes(b"ac"[bin(i).count("1") & 1] for i in range(2048))
    steps = []
    for n in (20_000, 80_000):
        word = b"b" * (n - len(tail)) + tail
        gguf = GGUF.read(fixture("bpe-gpt2"))
        gguf.set(TOKENS, [*gguf.strings(TOKENS), word])
        gguf.set(TYPES, [*gguf.array(TYPES), 3])
        data, text = gguf.dump(), b"b" * (2 * n) + word
        steps.append(work(data, text, options="-p").encode[0])
        tok = ggtok.load(data)
        ids = tok.encode(text, parse_special=True, add_special=False)
        assert ids[-1] == tok.n_tokens - 1 and tok.n_tokens - 1 not in ids[:-1]
    assert steps[1] < LINEAR * steps[0], steps


def test_special_tokens_with_many_continuations(work: Measure) -> None:
    """The first and the second byte of a token can each be followed by 128 bytes. The next byte is
    looked up in a table, not compared with each possible byte."""
    rng = np.random.default_rng(1)
    high = range(128, 256)
    words = [bytes((a, b, c)) for a in range(1, 6) for b in high for c in high]
    gguf = GGUF.read(fixture("bpe-gpt2"))
    tokens = gguf.strings(TOKENS)
    gguf.set(TOKENS, [*tokens, *(words[i] for i in rng.permutation(len(words)))])
    types = [*gguf.array(TYPES), *[3] * len(words)]
    gguf.set(TYPES, types)
    special = gguf.dump()
    gguf.set(TYPES, [*types[: len(tokens)], *[1] * len(words)])
    plain = gguf.dump()
    steps = [work(data).load for data in (special, plain)]
    assert steps[0] < 2 * steps[1], steps
    tok = ggtok.load(special)
    id = tok.text_to_token(words[777])
    assert tok.encode(words[777], parse_special=True, add_special=False) == [id]
