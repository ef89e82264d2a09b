"""The peak memory for loading a file, as a multiple of its size: the numbers in SECURITY.md."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from fixtures.build import charsmap
from tests.hostile.peaks import BYTE, LOADED, NORMAL, REFUSED, USER_DEFINED
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="peaks are read from /proc")

# Loads each file in a separate process, forked from a process that has already imported ggtok.
CHILD = """
import os, sys, warnings
import ggtok
warnings.simplefilter("ignore")
def kilobytes(field):
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith(field))
def measure(path):
    with open(path, "rb") as file:
        data = file.read()
    with open("/proc/self/clear_refs", "w") as refs:
        refs.write("5")  # forget the peak so far
    before = kilobytes("VmRSS")
    try:
        ggtok.load(data)
        outcome = "loaded"
    except ggtok.GGTokError as e:
        outcome = str(e)
    print((kilobytes("VmHWM") - before) * 1024 / len(data), outcome, flush=True)
try:
    ggtok.load(b"GGUF")
except ggtok.GGTokError:
    pass
for path in sys.argv[1:]:
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0
        continue
    measure(path)
    os._exit(0)
"""


def letters(n: int, size: int) -> list[bytes]:
    rng = random.Random(n)
    return [bytes(rng.choices(range(97, 123), k=size)) for _ in range(n)]


def han(n: int, size: int) -> list[bytes]:
    rng = random.Random(n)
    return [
        "".join(map(chr, rng.choices(range(0x4E00, 0x9FFF), k=size))).encode() for _ in range(n)
    ]


TOKENS: dict[str, Callable[[], list[bytes]]] = {
    "short": lambda: letters(50_000, 12),
    "long": lambda: letters(50, 20_000),
    "one": lambda: letters(1, 1_000_000),
    "Han": lambda: han(1000, 300),
    "one of Han": lambda: han(1, 300_000),
    # The pieces of these tokens are slightly smaller in total than the limit, or slightly larger.
    "many of Han": lambda: han(7_000, 58),
    "too many of Han": lambda: han(7_000, 60),
    "broken": lambda: [b"\x80%09d\xff" % i for i in range(20_000)],
}
FAULTS: dict[str, tuple[str, Callable[[GGUF], None]]] = {
    "an id": ("bos_token_id", lambda g: g.set("tokenizer.ggml.bos_token_id", b"x", "str")),
    "a flag": ("add_eos_token", lambda g: g.set("tokenizer.ggml.add_eos_token", 1, "u32")),
    "a list": ("suppress_tokens", lambda g: g.set("tokenizer.ggml.suppress_tokens", [b"x"], "str")),
    "a name": ("general.name", lambda g: g.set("general.name", 1, "u32")),
    "phi-3": ("names a phi-3 model", lambda g: g.set("general.name", b"phi-3", "str")),
}


def peaks(files: list[GGUF], folder: Path) -> list[tuple[float, str]]:
    paths = [gguf.write(folder / f"{i}.gguf") for i, gguf in enumerate(files)]
    done = subprocess.run(
        [sys.executable, "-c", CHILD, *paths], capture_output=True, text=True, check=True
    )
    rows = [line.split(" ", 1) for line in done.stdout.splitlines()]
    assert len(rows) == len(files)
    return [(float(times), outcome) for times, outcome in rows]


def peak(gguf: GGUF, tmp_path: Path) -> tuple[float, str]:
    return peaks([gguf], tmp_path)[0]


def file_with(name: str, tokens: str, kind: int) -> GGUF:
    gguf = GGUF.read(fixture(name))
    add_tokens(gguf, TOKENS[tokens](), kind)
    return gguf


@pytest.mark.full
@pytest.mark.parametrize("name", ["ugm", "bpe-gpt2", "plamo2", "rwkv", "wpm"])
@pytest.mark.parametrize("tokens", ["long", "one of Han"])
def test_a_faulty_key_is_found_before_tables_are_built(
    name: str, tokens: str, tmp_path: Path
) -> None:
    faults = [f for f in FAULTS if f != "phi-3" or name in ("ugm", "wpm")]
    files = []
    for fault in faults:
        gguf = file_with(name, tokens, USER_DEFINED)
        FAULTS[fault][1](gguf)
        files.append(gguf)
    for fault, (times, outcome) in zip(faults, peaks(files, tmp_path), strict=True):
        assert FAULTS[fault][0] in outcome, (fault, outcome)
        assert times < REFUSED, (fault, times)


def short_byte(gguf: GGUF) -> None:
    add_tokens(gguf, [b"<0"], BYTE)


def faulty_newline(gguf: GGUF) -> None:
    rules = list(charsmap({"\n": "x" * 100}))
    gguf.set("tokenizer.ggml.precompiled_charsmap", rules, "u8")


def no_byte_tokens(gguf: GGUF) -> None:
    types = gguf.array("tokenizer.ggml.token_type")
    gguf.set("tokenizer.ggml.token_type", [NORMAL if t == BYTE else t for t in types], "i32")


def beyond_unicode(gguf: GGUF) -> None:
    add_tokens(gguf, [b"\xf5\x90\x80\x80"], NORMAL)


@pytest.mark.parametrize(
    ("name", "tokens", "kind", "damage", "message"),
    [
        ("ugm", "one", USER_DEFINED, short_byte, "is a byte token"),
        ("wpm", "long", NORMAL, short_byte, "is a byte token"),
        ("ugm", "long", NORMAL, faulty_newline, "32 times as long"),
        ("bpe-gpt2", "one of Han", NORMAL, lambda _: None, "prints as far too many bytes"),
        ("bpe-gpt2", "Han", NORMAL, lambda _: None, "prints as far too many bytes"),
        ("bpe-gpt2", "too many of Han", NORMAL, lambda _: None, "prints as far too many bytes"),
        ("plamo2", "one", USER_DEFINED, no_byte_tokens, "must have a byte token"),
        ("plamo2", "broken", USER_DEFINED, beyond_unicode, "a character above U+10FFFF"),
    ],
)
def test_other_faults_are_found_early(
    name: str, tokens: str, kind: int, damage: Callable[[GGUF], None], message: str, tmp_path: Path
) -> None:
    gguf = file_with(name, tokens, kind)
    damage(gguf)
    times, outcome = peak(gguf, tmp_path)
    assert message in outcome
    assert times < REFUSED


ROWS = [(*row, tokens) for row in LOADED for tokens in ("short", "long", "one")]
ROWS += [("plamo2", NORMAL, "broken")]


@pytest.mark.full
@pytest.mark.parametrize(("name", "kind"), LOADED)
def test_loading_stays_within_the_documented_peak(name: str, kind: int, tmp_path: Path) -> None:
    tokens = [row[2] for row in ROWS if row[:2] == (name, kind)]
    found = peaks([file_with(name, size, kind) for size in tokens], tmp_path)
    for size, (times, outcome) in zip(tokens, found, strict=True):
        assert outcome == "loaded", size
        assert times < LOADED[name, kind], (size, times)


def test_tokens_of_other_characters_stay_within_the_peak(tmp_path: Path) -> None:
    gguf = file_with("bpe-gpt2", "many of Han", NORMAL)
    times, outcome = peak(gguf, tmp_path)
    assert outcome == "loaded"
    assert 50 < times < LOADED["bpe-gpt2", NORMAL] + 64 + 2**20 / len(gguf.dump()), times
