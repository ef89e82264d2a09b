"""Large non-ASCII str objects are converted to UTF-8 in parts. Claim python.1."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import ggtok

Load = Callable[[str], ggtok.Tokenizer]


@pytest.mark.full
@pytest.mark.parametrize("filler", ["\u00e9t\u00e9 ", "\u4f60\u597d\u3002", "a\U0001f600b "])
@pytest.mark.parametrize("size", [40_000, 700_000, 5 << 20])
def test_a_large_str_is_converted_in_parts(load_fixture: Load, filler: str, size: int) -> None:
    tok = load_fixture("bpe-gpt2")
    texts = ["x" + filler * (size // len(filler)) + end for end in ("end", "END", "at last")]
    for text in texts * 2:  # each text twice, with others in between
        ids = tok.encode_array(text)
        assert np.array_equal(ids, tok.encode_array(text.encode()))
        for _ in range(3):  # and then several times in a row
            assert tok.count(text) == len(ids)
    assert tok.count("x" * size) == tok.count(b"x" * size)
    at = len(texts[0]) - 10
    for _ in range(3):
        with pytest.raises(UnicodeEncodeError, match=rf"U\+D800.* {at}"):
            tok.count(texts[0][:at] + "\ud800" + texts[0][at:])
    assert tok.decode(tok.encode(texts[1])) == texts[1]


def test_threads_can_convert_large_strs(load_fixture: Load) -> None:
    """Threads share the buffers that are kept between calls."""
    tok = load_fixture("bpe-gpt2")
    texts = [f"{i}\u4f60 caf\u00e9 " * (20_000 + i) for i in range(4)]
    counts = [tok.count(text.encode()) for text in texts]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(8):
            assert list(pool.map(tok.count, texts)) == counts
