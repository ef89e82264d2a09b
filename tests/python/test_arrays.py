"""The arrays that encode_array gives: made in C by NumPy's own functions."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import ggtok
from tests.support.vocabularies import fixture


@pytest.mark.parametrize("text", ["", "a", "The quick brown fox. ", "x y " * 300_000])
def test_an_array_is_like_any_other(text: str) -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    array = tok.encode_array(text, add_special=False)
    assert type(array) is np.ndarray
    assert array.dtype == np.int32
    assert array.shape == (len(array),)
    assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    assert array.tolist() == tok.encode(text, add_special=False)
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)


def test_an_array_is_nobody_elses() -> None:
    """Neither what is encoded next nor the tokenizer's end changes it."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    array = tok.encode_array("one two three")
    ids = array.tolist()
    other = tok.encode_array("four five six seven")
    array += 1
    assert other.tolist() == tok.encode("four five six seven")
    assert tok.encode("one two three") == ids
    del tok, other
    assert array.tolist() == [id + 1 for id in ids]
