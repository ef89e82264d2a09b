"""Converts the Python values in a chat request to what llama-server would read from their JSON.

In the server's JSON, numbers are int64, uint64 or double. An integer of more than 64 bits becomes a
double, and templates see a uint64 outside the range of int64 as its two's complement
(18446744073709551615 is -1). NaN, infinities and lone surrogates can't be written as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from functools import cache
from math import frexp, isfinite, ldexp
from typing import Any, NoReturn

from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError

MAX_LEVEL = 90  # the deepest nesting of lists and mappings
# How to convert numbers and tuples: integers as templates see them, integers as JSON writes them,
# or everything as in Python.
_WRAPPED, _WRITTEN, _PYTHON = range(3)
_SHOWN = 60  # maximum number of characters of a key to quote in a message
_INT_END, _UINT_END = 1 << 63, 1 << 64
_MAX_BITS = 14_000  # maximum bits of a template's integer; Python prints at most 4,300 digits
_MAX_DIGITS = 310  # an integer with more digits than this exceeds every double


class _WrongError(Exception):
    """Raised for a value that can't be converted. Each nesting level adds its key or index to
    `path`."""

    def __init__(self, error: type[GGTokError], says: str) -> None:
        self.error, self.says = error, says
        self.path: list[str] = []


def from_python(value: Any, where: str, wrap: bool = True) -> Any:
    """Copies a value to plain data, as the server's JSON parser would read it.

    If `wrap`, integers from 2**63 on become what templates see; otherwise they stay as in JSON.
    """
    return _rebuilt(value, where, _WRAPPED if wrap else _WRITTEN)


def as_python(value: Any, where: str) -> Any:
    """Copies a value to plain data, with unchanged numbers and tuples."""
    return _rebuilt(value, where, _PYTHON)


def _rebuilt(value: Any, where: str, how: int) -> Any:
    try:
        return _plain(value, how, 0)
    except _WrongError as e:
        wrong = e
    # The path is built only for errors: building it for each value would take quadratic time.
    raise wrong.error(f"{where}{''.join(reversed(wrong.path))}: {wrong.says}")


def _plain(value: Any, how: int, level: int) -> Any:
    if value is None or value is True or value is False:
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int):
        if how != _PYTHON:
            return _integer(int(value), how == _WRAPPED)
        if value.bit_length() > _MAX_BITS:
            raise _WrongError(InvalidValueError, "an integer that is too long to be written")
        return int(value)
    if isinstance(value, float):
        if how != _PYTHON and not isfinite(value):
            raise _WrongError(InvalidValueError, f"{value!r} can't be written as JSON")
        return float(value)
    if level == MAX_LEVEL:
        raise _WrongError(InvalidValueError, f"nested more than {MAX_LEVEL} deep")
    step: object = None
    try:
        fields = mapping(value)
        if fields is not None:
            new = {}
            for key, item in fields.items():
                if not isinstance(key, str):
                    says = f"a key is {type(key).__name__}, not str"
                    raise _WrongError(InvalidTypeError, says)
                name = _text(key)
                step = name
                new[name] = _plain(item, how, level + 1)
                step = None
            return new
        if isinstance(value, (list, tuple)):
            items = []
            for step, item in enumerate(value):  # noqa: B007
                items.append(_plain(item, how, level + 1))
            return tuple(items) if how == _PYTHON and isinstance(value, tuple) else items
    except _WrongError as e:
        if step is not None:
            e.path.append(f"[{repr(step)[:_SHOWN]}]")
        raise
    raise _WrongError(
        InvalidTypeError,
        f"must be str, a number, bool, None, a list or a mapping, not {type(value).__name__}",
    )


def mapping(value: Any) -> Mapping[str, Any] | None:
    """Returns a mapping unchanged, the mapping from an object's model_dump(), or None for others.

    model_dump() returns all fields, so the fields that are None are dropped, except the content.
    """
    if isinstance(value, (dict, Mapping)):
        return value
    if isinstance(value, type) or not callable(getattr(value, "model_dump", None)):
        return None
    fields = value.model_dump()
    if not isinstance(fields, Mapping):
        return None
    return {k: v for k, v in fields.items() if v is not None or k == "content"}


def schema(tool: Any, where: str) -> Mapping[str, Any]:
    fields = mapping(tool)
    if fields is not None:
        return fields
    how = ""
    if callable(tool):
        how = " (transformers.utils.get_json_schema makes one of a Python function)"
    raise InvalidTypeError(
        f"{where} must be a mapping, a JSON schema, not {type(tool).__name__}{how}"
    )


def sequence(values: Any, what: str, of: str) -> list[Any]:
    if isinstance(values, (str, bytes, Mapping)) or not isinstance(values, Iterable):
        raise InvalidTypeError(f"{what} must be a list of {of}, not {type(values).__name__}")
    return list(values)


def text(value: str, where: str) -> str:
    """Converts an instance of str, or of a subclass, to exactly str. Raises InvalidValueError for
    lone surrogates."""
    try:
        return _text(value)
    except _WrongError as e:
        wrong = e
    raise wrong.error(f"{where}: {wrong.says}")


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as e:
            raise _WrongError(
                InvalidValueError,
                f"character {e.start} is a lone surrogate, which JSON can't contain",
            ) from None
    return value if type(value) is str else str.__str__(value)


def _integer(value: int, wrap: bool) -> int | float:
    if -_INT_END <= value < _INT_END:
        return value
    if 0 <= value < _UINT_END:
        return value - _UINT_END if wrap else value
    try:
        return float(value)
    except OverflowError:
        raise _WrongError(InvalidValueError, "an integer too large for a double") from None


# ---- JSON text ----


def parse(source: str, where: str) -> Any:
    """Parses JSON to a value as a template sees it. Raises InvalidValueError if it is invalid."""
    try:
        value = json.loads(
            source.removeprefix("\ufeff"),
            parse_int=_parsed_int,
            parse_float=_parsed_float,
            parse_constant=_no_constant,
        )
    except (ValueError, RecursionError) as e:
        what = "nested too deep" if isinstance(e, RecursionError) else str(e)
        raise InvalidValueError(f"{where}: not valid JSON: {what}") from None
    return from_python(value, where)


def _parsed_int(digits: str) -> int | float:
    if len(digits) > _MAX_DIGITS:
        raise ValueError("an integer too large for a double")
    return int(digits)


def _parsed_float(digits: str) -> float:
    value = float(digits)
    if not isfinite(value):
        raise ValueError(f"the number {digits[:40]} is too large for a double")
    return value


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not valid JSON")


def dump(value: Any) -> str:
    """Writes compact JSON as the server does: UTF-8 unescaped, doubles in the server's form."""
    if isinstance(value, float):
        return _double(value)
    if isinstance(value, dict):
        pairs = (f"{_quoted(key)}:{dump(item)}" for key, item in value.items())
        return "{" + ",".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(dump, value)) + "]"
    return _quoted(value) if isinstance(value, str) else json.dumps(value)


def _quoted(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


# The range of positions of the decimal point for which no exponent is written.
_LEAST_POINT, _MOST_POINT = -4, 15


def _double(value: float) -> str:
    """Formats a double like the server's JSON library, which writes 1e+15 and 1e-05."""
    if value == 0:
        return "-0.0" if str(value).startswith("-") else "0.0"
    sign = "-" if value < 0 else ""
    digits, power = shortest_digits(abs(value))
    # The value is 0.DIGITS * 10**point.
    n = len(digits)
    point = n + power
    if n <= point <= _MOST_POINT:
        return f"{sign}{digits}{'0' * power}.0"
    if 0 < point <= _MOST_POINT:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if _LEAST_POINT < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    tail = f".{digits[1:]}" if n > 1 else ""
    return f"{sign}{digits[0]}{tail}e{point - 1:+03d}"


# ---- digits of doubles ----

# Grisu2 (Loitsch, 2010), as in the server's JSON library. The digits always parse to the same
# double, but in about one of a thousand cases they aren't the shortest: 5.972269109151214e+16
# becomes 5.9722691091512144e+16. This matters to templates that get the arguments of tool calls as
# text.
_ALPHA, _GAMMA = -60, -32  # bounds for the exponent of a scaled number
_BITS = 64
_PRECISION = 53
_LEAST_EXPONENT = -1074
_LOG10_2 = 78913 / (1 << 18)
_STEP, _FIRST = 8, -300  # the library's table has every 8th power of ten from 10**-300 on

Scaled = tuple[int, int]  # (f, e): the number f * 2**e


def shortest_digits(value: float) -> tuple[str, int]:
    """Returns the decimal digits of a positive double, and the power of ten that scales them."""
    f, e, lower_is_closer = _parts(value)
    plus = _normalized(2 * f + 1, e - 1)
    minus = (4 * f - 1, e - 2) if lower_is_closer else (2 * f - 1, e - 1)
    low = minus[0] << (minus[1] - plus[1])
    power, power_e, k = _power(plus[1])
    w = _times(_normalized(f, e)[0], power)
    # Shrink the interval at both ends by one unit, the product's rounding error.
    high = _times(plus[0], power) - 1
    return _generated(_times(low, power) + 1, w, high, plus[1] + power_e + _BITS, k)


def _parts(value: float) -> tuple[int, int, bool]:
    """Returns f and e of the value f * 2**e, and whether the next smaller double is closer to the
    value than the next larger one."""
    fraction, exponent = frexp(value)
    e = max(exponent - _PRECISION, _LEAST_EXPONENT)
    f = int(ldexp(fraction, exponent - e))
    return f, e, f == 1 << (_PRECISION - 1) and e > _LEAST_EXPONENT


def _normalized(f: int, e: int) -> Scaled:
    shift = _BITS - f.bit_length()
    return f << shift, e - shift


def _times(x: int, y: int) -> int:
    """Returns the upper 64 bits of the product of two 64-bit numbers, rounded."""
    return (x * y + (1 << (_BITS - 1))) >> _BITS


@cache
def _power_of_ten(k: int) -> Scaled:
    """Returns the 64 leading bits of 10**k, rounded, and their exponent."""
    if k >= 0:
        numerator, denominator = 10**k, 1
    else:
        numerator, denominator = 1, 10**-k
    e = numerator.bit_length() - denominator.bit_length() - _BITS
    if e >= 0:
        denominator <<= e
    else:
        numerator <<= -e
    if numerator // denominator >= 1 << _BITS:
        denominator <<= 1
        e += 1
    f = (2 * numerator + denominator) // (2 * denominator)
    return f, e


def _power(e: int) -> tuple[int, int, int]:
    """Finds the power of ten in the table that scales a number with exponent `e` into range.

    Returns the power's f, its e, and its exponent of ten.
    """
    f = _ALPHA - e - 1
    k = int(f * _LOG10_2) + (f > 0)  # rounded up
    index = (-_FIRST + k + _STEP - 1) // _STEP
    kept = _FIRST + index * _STEP
    return *_power_of_ten(kept), kept


def _generated(low: int, w: int, high: int, e: int, k: int) -> tuple[str, int]:
    """Generates the shortest digits between low and high, adjusted towards w."""
    delta, distance, rest = high - low, high - w, high
    power = len(str(high >> -e)) - 1  # the power of ten of the next digit
    unit = 10**power << -e
    text = ""
    while True:
        digit, rest = divmod(rest, unit)
        text += str(digit)
        if rest <= delta:
            return _nearer(text, distance, delta, rest, unit), power - k
        power -= 1
        if power >= 0:
            unit //= 10
        else:
            rest, delta, distance = 10 * rest, 10 * delta, 10 * distance


def _nearer(text: str, distance: int, delta: int, rest: int, ten: int) -> str:
    """Decrements the last digit as long as that brings the number closer to w."""
    last = int(text[-1])
    while (
        rest < distance
        and delta - rest >= ten
        and (rest + ten < distance or distance - rest > rest + ten - distance)
    ):
        last -= 1
        rest += ten
    return text[:-1] + str(last)
