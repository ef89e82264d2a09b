"""Properties that exist and that don't, through `.` and through `[]`, of every kind of object, used
in every way: llama.cpp's dialect gives the result of llama.cpp's engine."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest

from tests.chat import jinja_references
from tests.chat.fuzz_jinja import differs
from tests.chat.jinja_references import ggtok_answer

BEFORE = (
    "{% set ns = namespace(a=2) %}{% set d = {'a': {'q': 3}, 'length': 7} %}{% set l = [1] %}"
    "{% macro m(a) %}M{{ a }}{% endmacro %}"
)
OBJECTS = (
    *("x", "x.y", "none", "'ab'", "1", "1.5", "true", "[1, 2]", "{}", "{'a': 1}", "range", "m"),
    *("namespace(a=1)", "ns", "loop", "d", "d.b", "l[5]", "d|items", "messages", "messages[0]"),
)
NAMES = (
    *("a", "b", "nothing", "length", "items", "keys", "values", "get", "pop", "append", "upper"),
    *("split", "join", "strip", "replace", "startswith", "first", "default", "safe", "tojson"),
)
INDICES = ("0", "9", "-1", "none", "x", "1.5", "''", "[]", "true")
USES = (
    *("{{ E }}", "{{ E is defined }}", "{{ E is none }}", "{{ E is callable }}", "{{ E.q }}"),
    *("{{ E['q'] }}", "{{ E[0] }}", "{{ E[1:] }}", "{{ [E] }}", "{{ {'k': E} }}", "{{ not E }}"),
    *("{{ E|default('d') }}", "{{ E|length }}", "{{ E|tojson }}", "{{ E|string }}", "{{ E|list }}"),
    *("{{ E|join }}", "{{ E|upper }}", "{{ E ~ 'x' }}", "{{ E + 'x' }}", "{{ E == none }}"),
    *("{{ E == x }}", "{{ 'a' in E }}", "{% for y in E %}({{ y }}){% endfor %}", "{{ m(E) }}"),
    *("{% set z = E %}{{ z }}{{ z is defined }}", "{% set ns.a = E %}{{ ns.a }}", "{{ E() }}"),
    *("{{ E(x) }}", "{{ E(1) }}", "{{ E('a') }}", "{{ E('a', x) }}", "{{ E('a')('b') }}"),
    *("{{ E(a=1) }}", "{{ E().q }}", "{% for y in E() %}({{ y }}){% endfor %}", "{{ E.get('a') }}"),
)
VALUES = {"messages": [{"role": "user", "content": "Hi", "a": None}]}


def templates() -> Iterator[str]:
    for owner in OBJECTS:
        properties = [f".{name}" for name in NAMES] + [f"['{name}']" for name in NAMES]
        properties += [f"[{index}]" for index in INDICES]
        for member in properties:
            for use in USES:
                source = use.replace("E", f"({owner}){member}")
                looped = f"{{% for i in [1] %}}{source}{{% endfor %}}"
                yield BEFORE + (looped if owner == "loop" else source)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("g++") is None, reason="the reference is compiled with g++")
def test_properties_equal_llama_cpps_engine() -> None:
    reference = jinja_references.LlamaCpp()
    try:
        for source in templates():
            theirs, mine = reference(source, VALUES), ggtok_answer(source, VALUES, "llama.cpp")
            assert not differs(source, theirs, mine, "llama.cpp"), (source, theirs, mine)
    finally:
        reference.close()
