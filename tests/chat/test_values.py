"""How Python values in a request are converted, and how the server writes them."""

from __future__ import annotations

import json
import random
import struct
from math import inf, nan
from types import MappingProxyType
from typing import Any

import pytest

from ggtok.chat import values
from ggtok.errors import InvalidTypeError, InvalidValueError


class Name(str):
    """A subclass of str."""


@pytest.mark.parametrize(
    ("value", "means"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, -(2**63)),
        (2**64 - 1, -1),
        (2**64, float(2**64)),
        (-(2**63) - 1, -float(2**63)),
        (1.5, 1.5),
        (("a", [1]), ["a", [1]]),
        (MappingProxyType({"é": {}}), {"é": {}}),
    ],
)
def test_python_values_become_json_values(value: object, means: object) -> None:
    found = values.from_python(value, "x")
    assert found == means
    assert type(found) is type(means)


def test_integers_beyond_64_bits_become_floats() -> None:
    assert values.from_python([2**64 - 1, 2**64], "x", wrap=False) == [2**64 - 1, float(2**64)]


def test_strings_become_plain() -> None:
    found = values.from_python({Name("k"): Name("é")}, "x")
    assert [type(s) for pair in found.items() for s in pair] == [str, str]


def test_as_python_keeps_python_values() -> None:
    value = {Name("k"): (10**30, [nan, True], None, "é", 1.5)}
    found = values.as_python(MappingProxyType(value), "x")
    assert repr(found) == f"{{'k': ({10**30}, [nan, True], None, 'é', 1.5)}}"
    with pytest.raises(InvalidTypeError, match=r"^x\[0\]: must be str, a number, .* not set"):
        values.as_python([set()], "x")


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "error", "pattern"),
    [
        (nan, InvalidValueError, "x: nan can't be written as JSON"),
        ({"a": [inf]}, InvalidValueError, r"x\['a'\]\[0\]: inf can't be written as JSON"),
        (10**400, InvalidValueError, "x: an integer too large for a double"),
        ("a\ud800", InvalidValueError, "x: character 1 is a lone surrogate"),
        ({"\udfff": 1}, InvalidValueError, "x: character 0 is a lone surrogate"),
        ({1: 2}, InvalidTypeError, "x: a key is int, not str"),
        ({"a": b""}, InvalidTypeError, r"x\['a'\]: must be str, a number, .* not bytes"),
        (deep(91), InvalidValueError, r"nested more than 90 deep"),
    ],
)
def test_values_without_json(value: object, error: type[Exception], pattern: str) -> None:
    with pytest.raises(error, match=pattern):
        values.from_python(value, "x")


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ('\ufeff {"a": 1, "b": [], "a": 2} ', {"a": 2, "b": []}),
        ("18446744073709551615", -1),
        ("1e2", 100.0),
        ("-0", 0),
        ('"\\u00e9"', "é"),
        ("9" * 30, float("9" * 30)),
    ],
)
def test_json_texts_become_values(text: str, means: object) -> None:
    found = values.parse(text, "x")
    assert found == means
    assert type(found) is type(means)


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "NaN", "-Infinity", "1e999", "9" * 400, '"\\ud800"', '"\n"', "[" * 20000],
)
def test_texts_that_are_no_json(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"^x: "):
        values.parse(text, "x")


def test_dump_writes_compact_json() -> None:
    value = {"a\n\x01\x7f": [None, True, -1, 2**64 - 1, "é\u2028/\\"], "b": {}}
    assert values.dump(value) == (
        '{"a\\n\\u0001\x7f":[null,true,-1,18446744073709551615,"é\u2028/\\\\"],"b":{}}'
    )


# The reference build writes the expected spellings.
@pytest.mark.parametrize(
    ("number", "written"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (0.1, "0.1"),
        (-2.0, "-2.0"),
        (123456.789, "123456.789"),
        (0.0001, "0.0001"),
        (0.00001234, "1.234e-05"),
        (1e14, "100000000000000.0"),
        (1e15, "1e+15"),
        (1e22, "1e+22"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (2.0**-1022, "2.2250738585072014e-308"),
        (2.0**53, "9.007199254740992e+15"),
        # these aren't the shortest digits
        (5.972269109151214e16, "5.9722691091512144e+16"),
    ],
)
def test_doubles_are_written_as_by_the_server(number: float, written: str) -> None:
    assert values.dump(number) == written


def test_doubles_are_read_back_exactly() -> None:
    rng = random.Random(1)
    longer = 0
    for _ in range(5000):
        (number,) = struct.unpack("<d", rng.randbytes(8))
        if number == number and abs(number) != inf and number:
            written = values.dump(number)
            assert json.loads(written) == number
            digits, _ = values.shortest_digits(abs(number))
            shortest = repr(abs(number)).partition("e")[0].replace(".", "").strip("0")
            longer += len(digits) > len(shortest)
    assert 0 < longer < 150


def test_paths_take_linear_time() -> None:
    """If the conversion built a path for each value, it would take minutes."""
    values.from_python({"k" * 500_000: [0] * 100_000}, "x")
    with pytest.raises(InvalidTypeError, match=r"^x\['k{59}\]\[1\]: must be str, a number,"):
        values.from_python({"k" * 500_000: [0, b""]}, "x")
