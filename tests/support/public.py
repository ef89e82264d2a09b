"""The package's public functions and methods."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator

import ggtok
from ggtok import errors


def functions_of(*classes: type) -> Iterator[Callable[..., object]]:
    for cls in classes:
        for name, member in vars(cls).items():
            if isinstance(member, property):
                assert member.fget is not None
                yield member.fget
            elif inspect.isfunction(member) and not name.startswith("_"):
                yield member


def public_functions() -> Iterator[Callable[..., object]]:
    yield from filter(inspect.isfunction, (getattr(ggtok, name) for name in ggtok.__all__))
    yield from functions_of(ggtok.Vocabulary, ggtok.WordCounts, *ggtok.Tokenizer.__mro__[:-1])
    for name in errors.__all__:
        yield getattr(errors, name).__init__
