"""``pre_patterns``: the caller's regular expressions instead of a pre-tokenizer."""

from __future__ import annotations

import pytest

import ggtok
from tests.support.vocabularies import fixture

PATTERNS: dict[str, tuple[object, type[Exception], str]] = {
    "a number": ([r"\w+", 5], TypeError, r"pre_patterns\[1\].*int"),
    "no regular expression": (["a", "b", "("], ValueError, r"pre_patterns\[2\]"),
    "a str": (r"\w+", TypeError, "list of regular expressions"),
    "None in it": ([None], TypeError, r"pre_patterns\[0\].*NoneType"),
}


@pytest.mark.parametrize("row", PATTERNS)
def test_invalid_patterns(row: str) -> None:
    patterns, builtin, message = PATTERNS[row]
    with pytest.raises(builtin, match=message) as caught:
        ggtok.load(fixture("bpe-gpt2"), pre_patterns=patterns)  # type: ignore[arg-type]
    assert isinstance(caught.value, ggtok.ArgumentError)


def test_empty_matches_split_nothing() -> None:
    tok = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\d*", ""])
    plain = ggtok.load(fixture("bpe-gpt2"), pre_patterns=[r"\d+"])
    for text in ("kettle 12 and 3", "\u6f22\u5b57 7", "", "12"):
        assert tok.encode(text) == plain.encode(text)
