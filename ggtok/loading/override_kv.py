"""Parses llama.cpp's ``--override-kv KEY=TYPE:VALUE[,...]`` to overrides of ``ggtok.load``."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from ggtok.base.escape import shown
from ggtok.errors import InvalidValueError

_INT = re.compile(r"[+-]?[0-9]{1,40}")
_SYNTAX = "KEY=TYPE:VALUE[,KEY=TYPE:VALUE...], where TYPE is int, float, bool or str"

_MOST = 200  # characters of an argument that a message quotes


def parse(arguments: Iterable[str]) -> dict[str, int | float | bool | str]:
    """The values by key. If a key occurs twice, the first value counts, as in llama.cpp.

    Equals llama.cpp's ``parse_csv_row`` and ``string_parse_kv_override``: a part that begins
    with ``"`` ends at the next ``"`` and may contain commas. Unlike llama.cpp, where ``int:x``
    is 0, malformed numbers are errors.

    Raises:
        InvalidValueError: an argument is malformed.
    """
    values: dict[str, int | float | bool | str] = {}
    for argument in arguments:
        try:
            parts = next(csv.reader([argument])) or [""]
        except csv.Error as e:
            raise InvalidValueError(f"override '{shown(argument, _MOST)}': {e}") from None
        for part in parts:
            _check_text(part)
            key, equals, typed = part.partition("=")
            type, colon, value = typed.partition(":")
            if not equals or not key or not colon:
                raise InvalidValueError(f"override '{shown(part, _MOST)}' must be {_SYNTAX}")
            values.setdefault(key, _value(part, type, value))
    return values


def _check_text(part: str) -> None:
    """Raises InvalidValueError for lone surrogates, except those that stand for bytes of the
    command line that aren't UTF-8."""
    try:
        part.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as e:
        raise InvalidValueError(
            f"override '{shown(part, _MOST)}': a lone surrogate at character {e.start}, which has "
            "no UTF-8 form"
        ) from None


def _value(part: str, type: str, value: str) -> int | float | bool | str:
    if type == "str":
        return value
    if type == "bool":
        if value in ("true", "false"):
            return value == "true"
        raise InvalidValueError(f"override '{shown(part, _MOST)}': a bool is true or false")
    if type == "int":
        if _INT.fullmatch(value):
            return int(value)
        raise InvalidValueError(
            f"override '{shown(part, _MOST)}': '{shown(value, _MOST)}' is not an integer of 64 bits"
        )
    if type == "float":
        try:
            return float(value.replace("_", "?"))
        except ValueError:
            raise InvalidValueError(
                f"override '{shown(part, _MOST)}': '{shown(value, _MOST)}' is not a number"
            ) from None
    raise InvalidValueError(
        f"override '{shown(part, _MOST)}': there is no type '{shown(type, _MOST)}' ({_SYNTAX})"
    )
