"""Encodes llama.cpp's own test texts and compares the ids with the ids that it expects."""

from __future__ import annotations

import pytest

from tests.parity import load
from tests.support.vocabularies import INP_OUT, inp_out, real


@pytest.mark.parametrize("name", INP_OUT)
def test_ids_are_as_expected(name: str) -> None:
    tok = load(real(name))
    for text, ids in zip(*inp_out(name), strict=True):
        assert tok.encode(text, add_special=False) == ids, text
