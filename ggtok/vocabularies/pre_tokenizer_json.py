"""Writes llama.cpp's pre-tokenizers in the form of tokenizer.json; checks Gemma 4's newlines.

llama.cpp uses Unicode 15.1. tokenizers 0.23 uses Unicode 16 in expressions and 17 in ``Digits``.
The two split words with newer letters or numbers differently. So each category is written without
the characters that were added to it after 15.1. To keep the lists of these characters short, their
ranges include characters of other categories, but no older characters of the same category.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import Any

from ggtok.vocabularies.merging import merges_of
from ggtok.vocabularies.patterns import CONTRACTION, CONTRACTION_I, Chain

# ---- categories limited to Unicode 15.1 ----

# Characters that were added to each category after Unicode 15.1, up to Unicode 18.
# `python -m tests.making.newer_characters` generates and checks this table.
NEWER = {
    "L": (
        r"\u0558\u058B-\u058C\u088F\u0C5C\u0CDC\u1C89-\u1C8A\u208F\u209D-\u209F\uA7CB-\uA7CF"
        r"\uA7D2\uA7D4\uA7DA-\uA7F1\uAB6C-\uAB6D\x{105C0}-\x{105F3}\x{107BB}-\x{107BF}"
        r"\x{10940}-\x{10959}\x{10D4A}-\x{10D85}\x{10EC2}-\x{10EEE}\x{11380}-\x{113D3}"
        r"\x{11B0A}-\x{11BE0}\x{11DB0}-\x{11DF1}\x{13460}-\x{143FA}\x{16100}-\x{1611D}"
        r"\x{16D40}-\x{16D6C}\x{16EA0}-\x{16ED3}\x{16FF2}-\x{16FF3}\x{187F8}-\x{187FF}"
        r"\x{18CD6}-\x{18CFF}\x{18D09}-\x{191D2}\x{1B123}-\x{1B128}\x{1B168}\x{1D6A6}"
        r"\x{1DF1F}-\x{1DF24}\x{1DF2B}-\x{1DFFF}\x{1E5D0}-\x{1E6FF}\x{2B73A}-\x{2B73F}"
        r"\x{2B81E}\x{2CEA2}-\x{2CEAD}\x{323B0}-\x{3FC3F}"
    ),
    "M": (
        r"\u05C8-\u05C9\u0897\u0B53-\u0B54\u1ACF-\u1AF0\x{10D69}-\x{10D6D}\x{10ECB}-\x{10EFC}"
        r"\x{113B8}-\x{113E2}\x{11B60}-\x{11B67}\x{11DF0}\x{11F5A}\x{1611E}-\x{1612F}"
        r"\x{1D127}-\x{1D128}\x{1D250}-\x{1D281}\x{1E5EE}-\x{1E6F5}"
    ),
    "N": (
        r"\x{10D40}-\x{10D49}\x{116D0}-\x{116E3}\x{11BF0}-\x{11BF9}\x{11DE0}-\x{11DE9}"
        r"\x{1246F}-\x{16139}\x{16D70}-\x{16D79}\x{16FF4}-\x{1CCF9}\x{1E5F1}-\x{1E5FA}"
    ),
    "P": (
        r"\u1B4E-\u1B4F\u1B7F\u2E60-\u2E63\x{10D6E}\x{10ED0}\x{113D4}-\x{113D8}\x{11BE1}"
        r"\x{16D6D}-\x{16D6F}\x{1E5FF}"
    ),
    "S": (
        r"\u20C1-\u20C4\u2427-\u2429\u2B96\u31E4-\u31E5\uFBC3-\uFBD2\uFD90-\uFDCE"
        r"\x{10D8E}-\x{10ED8}\x{1CC00}-\x{1CEFD}\x{1D1EB}-\x{1D1FF}\x{1D253}-\x{1D27F}"
        r"\x{1DB00}-\x{1DB1C}\x{1F1AE}\x{1F6D8}-\x{1F6D9}\x{1F777}-\x{1F77A}"
        r"\x{1F7DA}-\x{1F7DB}\x{1F7F1}-\x{1F7FF}\x{1F8B2}-\x{1F8D8}\x{1FA54}-\x{1FA57}"
        r"\x{1FA89}-\x{1FA8F}\x{1FABE}\x{1FAC6}-\x{1FACD}\x{1FADC}-\x{1FADF}"
        r"\x{1FAE9}-\x{1FAEF}\x{1FAF9}-\x{1FAFA}\x{1FBCB}-\x{1FBFA}"
    ),
}


def _limit_category(category: str) -> str:
    return rf"[\p{{{category}}}&&[^{NEWER[category]}]]"


# The replacement for each category. \P{N} must also match the newer numbers.
_WRITTEN = {
    **{rf"\p{{{category}}}": _limit_category(category) for category in NEWER},
    **{rf"\P{{{category}}}": rf"[\P{{{category}}}{newer}]" for category, newer in NEWER.items()},
}
_CATEGORY = re.compile(r"\\[pP]\{[LMNPS]\}")


def limit_to_unicode_15(expression: str) -> str:
    """Limits the categories in an expression to Unicode 15.1, with nested character classes."""
    return _CATEGORY.sub(lambda found: _WRITTEN[found[0]], expression)


def is_limited(expression: str) -> bool:
    """Whether all categories in the expression are limited as by :func:`limited`."""
    return limit_to_unicode_15(undo_unicode_limit(expression)) == expression


def undo_unicode_limit(expression: str) -> str:
    """Undoes :func:`limited`; other expressions are unchanged."""
    for category, written in _WRITTEN.items():
        expression = expression.replace(written, category)
    return expression


# ---- pre-tokenizers ----

# Gemma 4's pre-tokenizer, which isn't byte-level.
NEWLINES: dict[str, Any] = {
    "type": "Split",
    "pattern": {"Regex": "\\n+"},
    "behavior": "Isolated",
    "invert": False,
}
# tokenizers 1.0 supports only published expressions, and these two only as Digits.
_DIGITS: dict[str, dict[str, Any]] = {
    r"\p{N}": {"type": "Digits", "individual_digits": True},
    r"\p{N}+": {"type": "Digits", "individual_digits": False},
}


def _split_step(step: str) -> dict[str, Any]:
    return {"type": "Split", "pattern": {"Regex": step}, "behavior": "Isolated", "invert": False}


def pre_tokenizer_of(chain: Chain) -> dict[str, Any]:
    """Returns a pre_tokenizer that splits text exactly as llama.cpp does."""
    return _sequence([_split_step(limit_to_unicode_15(step)) for step in chain.steps])


def published_pre_tokenizer_of(chain: Chain) -> dict[str, Any]:
    """Returns a pre_tokenizer with the published expressions.

    It differs from llama.cpp's for characters newer than Unicode 15.1, and where llama.cpp's
    expressions differ from the published ones.
    """
    steps = chain.written or (chain.published or (chain.steps,))[0]
    return _sequence([_DIGITS.get(step) or _split_step(step) for step in steps])


def is_published_but_for_long_s(chain: Chain) -> bool:
    """Whether llama.cpp's expressions equal the published ones, except that an apostrophe before
    U+017F isn't a contraction."""
    return any(
        tuple(step.replace(CONTRACTION_I, CONTRACTION) for step in steps) == chain.steps
        for steps in chain.published
    )


def _sequence(steps: list[dict[str, Any]]) -> dict[str, Any]:
    steps.append(
        {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}
    )
    return {"type": "Sequence", "pretokenizers": steps}


# ---- runs of newlines, which llama.cpp's gemma4 looks up before it merges ----


def unmerged_run(texts: Collection[str], merges: Iterable[tuple[str, str]]) -> str | None:
    """Returns the shortest token of several newlines that merges don't produce, or None."""
    runs = sorted(text for text in texts if len(text) > 1 and not text.strip("\n"))
    ranks: dict[tuple[str, str], int] = {}
    for rank, pair in enumerate(merges):
        if not "".join(pair).strip("\n"):
            ranks.setdefault(pair, rank)
    return next((run for run in runs if len(merges_of(ranks, list(run))[1]) > 1), None)
