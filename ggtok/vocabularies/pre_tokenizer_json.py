"""llama.cpp's pre-tokenizers in the form of tokenizer.json; Gemma 4's runs of newlines."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

from ggtok.vocabularies.newer_characters import limited
from ggtok.vocabularies.patterns import Chain

# Gemma 4's, which isn't byte-level.
NEWLINES: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": "\\n+"},
    "behavior": "Isolated",
    "invert": False,
}
# tokenizers 1.0 supports only published expressions, and these two under another name.
_DIGITS: dict[str, dict[str, Any]] = {
    r"\p{N}": {"type": "Digits", "individual_digits": True},
    r"\p{N}+": {"type": "Digits", "individual_digits": False},
}


def _split(step: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}


def pre_tokenizer_of(chain: Chain) -> dict[str, Any]:
    """A pre_tokenizer that splits text exactly as llama.cpp does."""
    return _sequence([_split(limited(step)) for step in chain.steps])


def published_pre_tokenizer_of(chain: Chain) -> dict[str, Any]:
    """A pre_tokenizer with the published expressions.

    It differs from llama.cpp's for characters newer than Unicode 15.1.
    """
    return _sequence([_DIGITS.get(step) or _split(step) for step in chain.written or chain.steps])


def _sequence(steps: list[dict[str, Any]]) -> dict[str, Any]:
    steps.append(
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    )
    return {"type": "Sequence", "pretokenizers": steps}


# ---- runs of newlines, which llama.cpp's gemma4 looks up before it merges ----


def unmerged_run(texts: Collection[str], merges: Iterable[tuple[str, str]]) -> str | None:
    """The shortest token of newlines that merges don't produce, or None."""
    runs = sorted(len(text) for text in texts if len(text) > 1 and not text.strip("\n"))
    ranks: dict[tuple[int, int], int] = {}
    for rank, (left, right) in enumerate(merges):
        if not (left + right).strip("\n"):
            ranks.setdefault((len(left), len(right)), rank)
    return next(("\n" * n for n in runs if _merged(n, ranks) != [n]), None)


def _merged(n: int, ranks: dict[tuple[int, int], int]) -> list[int]:
    """The lengths of the symbols to which n newlines are merged."""
    parts = [1] * n
    while True:
        joint = [
            (ranks[pair], i)
            for i in range(len(parts) - 1)
            if (pair := (parts[i], parts[i + 1])) in ranks
        ]
        if not joint:
            return parts
        _, i = min(joint)
        parts[i : i + 2] = [parts[i] + parts[i + 1]]
