"""The arrays of encode_array and encode_with_offsets, which C creates with NumPy's functions."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np
import pytest

import ggtok
from tests.support.vocabularies import fixture


@pytest.mark.parametrize("text", ["", "a", "The quick brown fox. ", "x y " * 300_000])
def test_arrays_are_ordinary_numpy_arrays(text: str) -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    array = tok.encode_array(text, add_special=False)
    assert type(array) is np.ndarray
    assert array.dtype == np.int32
    assert array.shape == (len(array),)
    assert array.flags.owndata and array.flags.writeable and array.flags.c_contiguous
    assert array.tolist() == tok.encode(text, add_special=False)
    assert np.array_equal(pickle.loads(pickle.dumps(array)), array)


def test_an_array_owns_its_memory() -> None:
    """Neither later calls nor freeing the tokenizer changes an array."""
    tok = ggtok.load(fixture("bpe-gpt2"))
    array = tok.encode_array("one two three")
    ids = array.tolist()
    other = tok.encode_array("four five six seven")
    array += 1
    assert other.tolist() == tok.encode("four five six seven")
    assert tok.encode("one two three") == ids
    del tok, other
    assert array.tolist() == [id + 1 for id in ids]


@pytest.mark.parametrize("text", ["", "a", "The quick brown fox. ", "x y " * 30_000])
def test_arrays_of_spans_are_ordinary_numpy_arrays(text: str) -> None:
    tok = ggtok.load(fixture("bpe-gpt2"))
    ids, spans = tok.encode_with_offsets(text, add_special=False)
    assert type(spans) is np.ndarray and spans.dtype == np.int64 and spans.shape == (len(ids), 2)
    assert spans.flags.owndata and spans.flags.writeable and spans.flags.c_contiguous
    assert b"".join(text.encode()[a:b] for a, b in spans) == text.encode()
    other = tok.encode_with_offsets("four five six seven")[1]
    spans += 1
    assert other.tolist() == tok.encode_with_offsets("four five six seven")[1].tolist()


@pytest.mark.parametrize("named", ["as before NumPy 2", "as since NumPy 2", "nowhere"])
def test_numpys_functions_are_found(named: str) -> None:
    """NumPy 2 moved its C functions to another module. ggtok finds them in either module; if both
    are missing, every call fails."""
    program = """
import sys, ggtok, numpy
path, named = sys.argv[1:]
names = {"since": "numpy._core._multiarray_umath", "before": "numpy.core._multiarray_umath"}
module = sys.modules.get(names["since"]) or sys.modules[names["before"]]
sys.modules.update({name: module if when in named else None for when, name in names.items()})
tok = ggtok.load(path)
for _ in range(2):
    try:
        print(tok.encode_array("one two").tolist() == tok.encode("one two"))
    except ModuleNotFoundError as error:
        print("missing", error.name)
"""
    command = [sys.executable, "-c", program, str(fixture("bpe-gpt2")), named]
    done = subprocess.run(command, capture_output=True, text=True)
    expected = "missing numpy.core._multiarray_umath\n" if named == "nowhere" else "True\n"
    assert (done.stdout, done.returncode) == (2 * expected, 0), done.stderr
