"""Chunks of many tokens take linear time."""

from __future__ import annotations

import pytest

from ggtok import load
from ggtok.text import chunks
from tests.support.vocabularies import fixture


@pytest.mark.parametrize("n_words", [20_000, 40_000, 80_000])
def test_ends_of_a_long_chunk_are_copied_a_few_times(
    monkeypatch: pytest.MonkeyPatch, n_words: int
) -> None:
    monkeypatch.setattr(chunks, "WINDOW", 1 << 10)
    copied: list[int] = []
    grow = chunks.TokenEnds._grow

    def counted(ends: chunks.TokenEnds) -> bool:
        copied.append(len(ends._ends))
        return grow(ends)

    monkeypatch.setattr(chunks.TokenEnds, "_grow", counted)
    tok = load(fixture("bpe-gpt2"))
    text = "word " * n_words
    n = tok.count(text)
    [chunk] = tok.chunks(text, n + 1)
    assert chunk == (0, len(text), n)
    assert sum(copied) <= 4 * n
