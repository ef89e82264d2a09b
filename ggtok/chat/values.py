"""Checks of the Python values in a chat request. C reads them (cext/python/values.c)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.native.arguments import iterate
from ggtok.native.chat_calls import mapping as mapping


def sequence(values: Any, what: str, of: str) -> list[Any]:
    must = f"{what} must be a list of {of}"
    if isinstance(values, (str, bytes, Mapping)):
        raise InvalidTypeError(f"{must}, not {type(values).__name__}")
    return list(iterate(values, must))


def exact_text(value: str, where: str) -> str:
    """Converts an instance of str, or of a subclass, to exactly str. Raises InvalidValueError for
    lone surrogates."""
    try:
        value.encode()
    except UnicodeEncodeError as e:
        raise InvalidValueError(
            f"{where}: character {e.start} is a lone surrogate, which JSON can't contain"
        ) from None
    return str.__str__(value)
