"""llama.cpp's ``--override-kv KEY=TYPE:VALUE[,...]``, as ``ggtok.load``'s overrides."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable

from ggtok.errors import InvalidValueError

_INT = re.compile(r"[+-]?[0-9]+")
_SYNTAX = "KEY=TYPE:VALUE[,KEY=TYPE:VALUE...], where TYPE is int, float, bool or str"


def parse(arguments: Iterable[str]) -> dict[str, int | float | bool | str]:
    """The values by key. Of two with the same key the first counts, as in llama.cpp.

    ``parse_csv_row`` and ``string_parse_kv_override`` there: a part that begins with
    ``"`` goes on to the next one and may hold commas. Numbers must be numbers here;
    there, ``int:x`` is 0.

    Raises:
        InvalidValueError: it isn't of that form.
    """
    values: dict[str, int | float | bool | str] = {}
    for argument in arguments:
        try:
            parts = next(csv.reader([argument])) or [""]
        except csv.Error as e:
            raise InvalidValueError(f"override {argument!r}: {e}") from None
        for part in parts:
            key, equals, typed = part.partition("=")
            type, colon, value = typed.partition(":")
            if not equals or not key or not colon:
                raise InvalidValueError(f"override {part!r} must be {_SYNTAX}")
            values.setdefault(key, _value(part, type, value))
    return values


def _value(part: str, type: str, value: str) -> int | float | bool | str:
    if type == "str":
        return value
    if type == "bool":
        if value in ("true", "false"):
            return value == "true"
        raise InvalidValueError(f"override {part!r}: a bool is true or false")
    if type == "int":
        if _INT.fullmatch(value):
            return int(value)
        raise InvalidValueError(f"override {part!r}: {value!r} is no integer")
    if type == "float":
        try:
            return float(value.replace("_", "?"))
        except ValueError:
            raise InvalidValueError(f"override {part!r}: {value!r} is no number") from None
    raise InvalidValueError(f"override {part!r}: no type {type!r} ({_SYNTAX})")
