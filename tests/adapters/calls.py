"""Calls to transformers' tokenizers, and their results in a comparable form."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

TEXTS = [
    "Hello, world",
    "",
    "  it's déjà vu 日本語  12345\n\nin the middle of a longer text, twice as long as the others",
    "one",
    "two  three\tfour 👩‍👩‍👧 five",
]
OTHERS = ["What is it?", "a", "so it goes", "Zoë and the others went to the market, and", "b c"]
WORDS = [text.split() or ["x"] for text in TEXTS]

INPUTS: dict[str, tuple[Any, ...]] = {
    "text": (TEXTS[2],),
    "batch": (TEXTS,),
    "pair": (TEXTS[2], OTHERS[0]),
    "pairs": (TEXTS, OTHERS),
    "tuples": ([*zip(TEXTS, OTHERS, strict=True)],),
    "words": (WORDS[2],),
    "words, batch": (WORDS,),
    "words, pairs": (WORDS, [text.split() for text in OTHERS]),
}
PADDING: list[dict[str, Any]] = [
    {},
    {"padding": True},
    {"padding": "longest", "padding_side": "left", "pad_to_multiple_of": 8},
    {"padding": "max_length", "max_length": 40},
    {"padding": "max_length", "max_length": 16, "padding_side": "left"},
]
TRUNCATION: list[dict[str, Any]] = [
    {},
    {"truncation": True, "max_length": 8},
    {"truncation": "only_first", "max_length": 16},
    {"truncation": "only_second", "max_length": 24},
    {"truncation": "longest_first", "max_length": 16, "stride": 3, "side": "left"},
    {"truncation": "only_first", "max_length": 16, "stride": 2, "return_overflowing_tokens": True},
    {
        "truncation": "longest_first",
        "max_length": 16,
        "stride": 2,
        "return_overflowing_tokens": True,
        "side": "left",
    },
    {"truncation": True, "max_length": 2},
]
RESULTS: list[dict[str, Any]] = [
    {},
    {"return_tensors": "np"},
    {
        "return_special_tokens_mask": True,
        "return_token_type_ids": True,
        "return_length": True,
        "return_offsets_mapping": True,
    },
    {"add_special_tokens": False, "return_attention_mask": False},
    {"split_special_tokens": True, "return_token_type_ids": True, "return_length": True},
]


def calls() -> Iterator[tuple[str, tuple[Any, ...], dict[str, Any]]]:
    """Yields each call's name, positional and keyword arguments."""
    grid = itertools.product(INPUTS.items(), PADDING, TRUNCATION, RESULTS)
    for (name, args), padding, truncation, results in grid:
        if "max_length" in padding and "max_length" in truncation:
            continue
        words = {"is_split_into_words": True} if name.startswith("words") else {}
        yield name, args, {**words, **padding, **truncation, **results}


def outcome(tokenizer: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Returns the values that a call returns, as lists; "error" if it raises."""
    options = dict(options)
    tokenizer.truncation_side = options.pop("side", "right")
    try:
        data = tokenizer(*args, **options).data
    except Exception:  # the libraries' messages differ
        return "error"
    return {name: plain(value) for name, value in data.items()}


def plain(value: Any) -> Any:
    if hasattr(value, "tolist"):
        value = value.tolist()
    return [plain(each) for each in value] if isinstance(value, list) else value
