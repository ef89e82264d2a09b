"""Random segmentations of a text: :meth:`ggtok.Tokenizer.sample`, and the best ones."""

from __future__ import annotations

import os
from collections.abc import Callable

from ggtok import _types as types
from ggtok.base.escape import quoted
from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native import Native, text_bytes
from ggtok.native.arguments import index, truth

TYPE_CHECKING = False  # avoids importing typing: see native/library.py
if TYPE_CHECKING:
    from typing import SupportsIndex, TypeVar

    from ggtok.text.batch_encoding import Flags, SamplingRule

    T = TypeVar("T")

_RULES = ("dropout", "alpha")  # in the order of ggtok_sample.h's enum ggtok_sampling_rule


def checked_settings(
    dropout: float | None,
    alpha: float | None,
    nbest: SupportsIndex = -1,
    seed: SupportsIndex | None = None,
    first: int = 0,
) -> SamplingRule:
    """Returns the checked settings of sampling; `first` is the index of the first text."""
    values = dropout, alpha
    if (dropout is None) == (alpha is None):
        both = "" if dropout is None else ", not both"
        raise InvalidValueError(f"pass dropout or alpha{both}")
    rule = int(dropout is None)
    value = values[rule]
    number = value if type(value) is float else _number(value, _RULES[rule])
    most = index(nbest, "nbest")
    # In C, 0 means all segmentations; 1, like SentencePiece's 0, means only the best one.
    most = 0 if most < 0 else min(most or 1, 2**32 - 1)
    return rule, number, most, checked_seed(seed), first


def _number(value: object, name: str) -> float:
    """Returns an argument that must be an int or float of Python, NumPy or others."""
    from numbers import Real

    if not isinstance(value, Real) or isinstance(value, bool):
        raise InvalidTypeError(f"{name} must be a number, not {quoted(value)}")
    try:
        return float(value)
    except OverflowError:
        raise InvalidValueError(f"{name} is too large: {quoted(value)}") from None


def checked_seed(seed: SupportsIndex | None) -> int:
    """Returns the seed; a random one for None."""
    if seed is None:
        return int.from_bytes(os.urandom(8), "little")
    number = index(seed, "seed")
    if not 0 <= number < 2**64:
        raise InvalidValueError(f"seed must be from 0 to 2**64 - 1, but is {number}")
    return number


def settings_of(sampling: SamplingRule | None) -> dict[str, float | None]:
    """Returns the settings under their names, for a record of a run's options."""
    if sampling is None:
        return dict.fromkeys((*_RULES, "seed"))
    rule, value, _, seed, _ = sampling
    return {**dict.fromkeys(_RULES), _RULES[rule]: value, "seed": seed}


def sample(native: Native, text: types.Text, flags: Flags, rule: SamplingRule) -> list[int]:
    """Returns the ids of a random segmentation (ggtok_sample)."""
    return _call_native(native, native.sample, text, flags, rule)


def best_segmentations(
    native: Native, text: types.Text, n: SupportsIndex, flags: Flags
) -> list[tuple[list[int], float]]:
    """Returns the `n` best segmentations with their scores (ggtok_nbest)."""
    most = index(n, "n")
    if not 1 <= most <= 1024:
        raise InvalidValueError(f"n must be from 1 to 1024, but is {most}")
    return _call_native(native, native.nbest, text_bytes(text), flags, most)


def _call_native(
    native: Native, function: Callable[..., T], text: types.Text, flags: Flags, more: object
) -> T:
    add_special, parse_special, continuation = flags
    parse = native.parsed(parse_special)
    try:
        return function(text, truth(add_special, "add_special"), parse, continuation, more)
    except Exception as e:
        return native.retry(function, e, text, add_special, parse, continuation, more)
