"""Variables given as JSON text, as the C program tests/c/jinja.c passes them."""

from __future__ import annotations

import json

import pytest

from tests.chat.jinja_program import Case, render
from tests.support.programs import Build

WELL_FORMED = [
    b"null",
    b"true",
    b" [ false , 1 ] ",
    b"[]",
    b'[[],{},""]',
    b"{}",
    b'{"a":{"b":[1,{"c":null}]},"d":"e"}',
    b'{"a":1,"a":2}',
    b"0",
    b"-0",
    b"12",
    b"-9223372036854775808",
    b"9223372036854775807",
    b"0.5",
    b"-1.25e-3",
    b"1E5",
    b"1e+2",
    b"123456789.125",
    b'"\\"\\\\\\/\\b\\f\\n\\r\\t"',
    b'"\\u0041\\u00e9\\u20ac\\uFFFD"',
    b'"\\ud83d\\ude00"',
    '"é€😀"'.encode(),
    b'\t\r\n "x" \n',
    b"[" * 60 + b"]" * 60,
]
# Malformed texts, and the offset that the error should name (None: any).
MALFORMED = {
    b"": 0,
    b"nul": 0,
    b"tru": 0,
    b"[1,]": 3,
    b"[1": 2,
    b"[1 2]": 3,
    b'{"a"}': 4,
    b'{"a":}': 5,
    b'{"a":1,}': 7,
    b"{1:2}": 1,
    b'{"a":1': 7,
    b"01": 1,
    b"-": 1,
    b"1.": 2,
    b".5": 0,
    b"1e": 2,
    b"+1": 0,
    b'"a': 3,
    b'"\\x"': 3,
    b'"\\u12g4"': 5,
    b'"\\ud83d"': 7,
    b'"\\ud83dx"': 7,
    b'"\\ud83d\\u0041"': 13,
    b'"\\ude00"': 7,
    b'"a\nb"': 2,
    b'"\x00"': 1,
    b'"\xff"': 3,
    b"1 2": 2,
    b"[" * 2000 + b"]" * 2000: None,
}


def test_well_formed_json(c_program: Build) -> None:
    program = c_program("jinja", "-O2")
    cases = [Case("transformers", "{{ x | tojson }}", b'{"x":%s}' % text) for text in WELL_FORMED]
    for text, rendering in zip(WELL_FORMED, render([program], cases), strict=True):
        value = json.loads(text)
        expected = json.dumps(value, ensure_ascii=False)
        assert (rendering.kind, rendering.text) == ("O", expected), text


@pytest.mark.parametrize("dialect", ["llama.cpp", "transformers"])
def test_malformed_json(c_program: Build, dialect: str) -> None:
    program = c_program("jinja", "-O2")
    cases = [Case(dialect, "", b'{"x":%s}' % text) for text in MALFORMED]  # type: ignore[arg-type]
    for (text, at), rendering in zip(MALFORMED.items(), render([program], cases), strict=True):
        assert rendering.kind == "J", (text, rendering)
        if at is not None:
            assert rendering.text.endswith(f"at byte {at + 5}"), (text, rendering)


def test_variables_must_be_an_object(c_program: Build) -> None:
    [rendering] = render([c_program("jinja", "-O2")], [Case("llama.cpp", "", b"[1]")])
    assert rendering.kind == "J" and "object" in rendering.text
