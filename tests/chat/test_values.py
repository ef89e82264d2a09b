"""How Python values in a request are converted, and how the server writes them."""

from __future__ import annotations

import json
import random
import struct
from math import inf, nan
from types import MappingProxyType
from typing import Any

import pytest

from ggtok import InvalidTypeError, InvalidValueError, load
from tests.chat.calls import variables
from tests.chat.made import TEMPLATES
from tests.chat.requests import call, says, user
from tests.support.vocabularies import fixture

QWEN = load(fixture("bpe-qwen2"))


class Name(str):
    """A subclass of str."""


def from_python(value: object) -> Any:
    """Returns the value that llama-server's templates get."""
    body = {"messages": [user()], "chat_template_kwargs": {"x": value}}
    return variables(QWEN, body, template="{{ x }}")["x"]


def shown(value: object) -> str:
    """Returns what transformers' templates print for a value."""
    return QWEN.apply_chat_template(
        [user()], template="{{ x }}", like="transformers", chat_template_kwargs={"x": value}
    )


def arguments_of(template: str, arguments: object) -> Any:
    """Returns the arguments of a call that the template gets."""
    messages = [user(), says("assistant", "", tool_calls=[call("1", "f", arguments)]), user()]
    found = variables(QWEN, {"messages": messages}, template=TEMPLATES[template])["messages"]
    return found[1]["tool_calls"][0]["function"]["arguments"]


def parse(text: str) -> Any:
    """Returns the value of JSON text, as templates get it."""
    return arguments_of("object arguments", text)


def dump(value: object) -> str:
    """Returns the JSON text that templates get for a value."""
    text: str = arguments_of("string arguments", value)
    return text


@pytest.mark.parametrize(
    ("value", "means"),
    [
        (None, None),
        (True, True),
        (2**63 - 1, 2**63 - 1),
        (-(2**63), -(2**63)),
        (2**63, 2**63),
        (2**64 - 1, 2**64 - 1),
        (2**64, float(2**64)),
        (-(2**63) - 1, -float(2**63)),
        (1.5, 1.5),
        (("a", [1]), ["a", [1]]),
        (MappingProxyType({"é": {}}), {"é": {}}),
    ],
)
def test_python_values_become_json_values(value: object, means: object) -> None:
    found = from_python(value)
    assert found == means
    assert type(found) is type(means)


def test_templates_read_integers_from_2_to_63_on_as_negative_numbers() -> None:
    kwargs = {"x": [2**63, 2**64 - 1]}
    template = "{% if x %}{{ x[0] }} {{ x[1] + 1 }} {{ x | tojson }}{% endif %}"
    text = QWEN.apply_chat_template([user()], template=template, chat_template_kwargs=kwargs)
    assert text == f"{-(2**63)} 0 [{-(2**63)}, -1]"


def test_strings_are_read_as_plain_text() -> None:
    found = from_python({Name("k"): Name("é")})
    assert [type(s) for pair in found.items() for s in pair] == [str, str]


def test_transformers_templates_get_python_values() -> None:
    value = {Name("k"): (10**30, [nan, True], None, "é", 1.5)}
    assert shown(MappingProxyType(value)) == f"{{'k': ({10**30}, [nan, True], None, 'é', 1.5)}}"
    with pytest.raises(InvalidTypeError, match=r"\['x'\]\[0\]: must be str, a number, .* not set"):
        shown([set()])


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "error", "pattern"),
    [
        (nan, InvalidValueError, r"\['x'\]: nan can't be written as JSON"),
        ({"a": [inf]}, InvalidValueError, r"\['x'\]\['a'\]\[0\]: inf can't be written as JSON"),
        (10**400, InvalidValueError, r"\['x'\]: an integer too large for a double"),
        ("a\ud800", InvalidValueError, r"\['x'\]: character 1 is a lone surrogate"),
        ({"\udfff": 1}, InvalidValueError, r"\['x'\]: character 0 is a lone surrogate"),
        ({1: 2}, InvalidTypeError, r"\['x'\]: a key is int, not str"),
        ({"a": b""}, InvalidTypeError, r"\['x'\]\['a'\]: must be str, a number, .* not bytes"),
        (deep(92), InvalidValueError, r"nested more than 93 deep"),
    ],
)
def test_values_without_json(value: object, error: type[Exception], pattern: str) -> None:
    with pytest.raises(error, match=pattern):
        from_python(value)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ('\ufeff {"a": 1, "b": [], "a": 2} ', {"a": 2, "b": []}),
        ("18446744073709551615", 2**64 - 1),
        ("1e2", 100.0),
        ("-0", 0),
        ('"\\u00e9"', "é"),
        ("9" * 30, float("9" * 30)),
    ],
)
def test_json_texts_become_values(text: str, means: object) -> None:
    found = parse(text)
    assert found == means
    assert type(found) is type(means)


@pytest.mark.parametrize(
    "text",
    ["", "{", "{'a': 1}", "NaN", "-Infinity", "1e999", "9" * 400, '"\\ud800"', '"\n"', "[" * 20000],
)
def test_texts_that_are_no_json(text: str) -> None:
    with pytest.raises(InvalidValueError, match=r"not valid JSON|nested"):
        parse(text)


def test_dump_writes_compact_json() -> None:
    value = {"a\n\x01\x7f": [None, True, -1, 2**64 - 1, "é\u2028/\\"], "b": {}}
    assert dump(value) == (
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
    assert dump(number) == written


def test_doubles_are_read_back_exactly() -> None:
    rng = random.Random(1)
    doubles = (struct.unpack("<d", rng.randbytes(8))[0] for _ in range(5000))
    numbers = [number for number in doubles if number == number and abs(number) != inf]
    texts = dump(numbers)[1:-1].split(",")
    assert [json.loads(text) for text in texts] == numbers
    # As in the server, some are longer than necessary.
    longer = sum(
        len(text.partition("e")[0].replace(".", "").strip("-0"))
        > len(repr(number).partition("e")[0].replace(".", "").strip("-0"))
        for text, number in zip(texts, numbers, strict=True)
    )
    assert 0 < longer < 150


def test_paths_take_linear_time() -> None:
    """If the reader built a path for each value, it would take minutes."""
    from_python({"k" * 500_000: [0] * 100_000})
    with pytest.raises(InvalidTypeError, match=r"\['k{64}'\]\[1\]: must be str, a number,"):
        from_python({"k" * 500_000: [0, b""]})


@pytest.mark.parametrize("letter", ["é", "한", "\U0001f44d"])
def test_names_in_errors_are_cut_between_characters(letter: str) -> None:
    for n in range(15, 70):
        for value in ({"x" * (n % 4) + letter * n: b""}, type(letter * n, (), {})()):
            with pytest.raises(InvalidTypeError) as caught:
                from_python(value)
            assert "\ufffd" not in str(caught.value)
            assert caught.value.key is not None and "\ufffd" not in caught.value.key


def test_long_paths_are_shortened() -> None:
    value: Any = b""
    for i in range(80):
        value = {f"name {i}": value}
    with pytest.raises(InvalidTypeError, match=r"^chat_template_kwargs\['x'\].*\.\.\.: must be"):
        from_python(value)
