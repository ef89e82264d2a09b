"""Fixtures: a small vocabulary, and small size limits, so that small files have many batches, parts
and checkpoints."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import ggtok
from ggtok.corpora import documents, run, streams, text

SIZES = {
    (run, "CHECKPOINT"): 3000,
    (run, "BYTES"): 1000,
    (run, "_LARGE"): 1400,
    (documents, "GROUP"): 500,
    (documents, "GROUP_DOCUMENTS"): 7,
    (documents, "GROUP_JOINED"): 90,
    (streams, "BLOCK"): 300,
    (text, "LONG"): 700,
    (text, "PART"): 200,
}


@pytest.fixture(scope="session")
def tok(load_fixture: Callable[[str], ggtok.Tokenizer]) -> ggtok.Tokenizer:
    return load_fixture("bpe-llama3")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reduces all size limits."""
    for (module, name), value in SIZES.items():
        monkeypatch.setattr(module, name, value)
