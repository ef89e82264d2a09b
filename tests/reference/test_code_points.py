"""Tests every code point between letters, because random texts rarely contain the ends of
ranges."""

from __future__ import annotations

import pytest

import ggtok
from tests.support.llamacpp import LlamaCpp
from tests.support.samples import some
from tests.support.vocabularies import fixture

SURROGATES = range(0xD800, 0xE000)
ALL = [c for c in range(1, 0x110000) if c not in SURROGATES]
BLOCK = 256  # code points per text


# WPM's ranges of code points are part of its code, so its test tries all code points. The other
# types use tables, which other tests compare directly.
@pytest.mark.full
@pytest.mark.parametrize(
    ("name", "one_in"), [("wpm", 1), ("wpm-cased", 9), ("ugm", 9), ("spm", 9), ("bpe-llama3", 9)]
)
def test_every_code_point_between_letters(name: str, one_in: int, llama: LlamaCpp) -> None:
    vocab = llama.load(fixture(name))
    tok = ggtok.load(fixture(name))
    points = some(ALL, one_in)
    for at in range(0, len(points), BLOCK):
        block = points[at : at + BLOCK]
        text = " ".join(f"x{chr(c)}y" for c in block).encode()
        ids = tok.encode(text, add_special=False)
        if ids == vocab.tokenize(text, False, False):
            continue
        for c in block:
            one = f"x{chr(c)}y".encode()
            assert tok.encode(one, add_special=False) == vocab.tokenize(one, False, False), hex(c)
        pytest.fail(f"{name}: U+{block[0]:04X} to U+{block[-1]:04X} together")
