# ruff: noqa: E501
"""The template engine: both dialects compared with their references; origins, notes, errors and
threads.

Claim jinja.1, Claim jinja.2, Claim jinja.5.
"""

from __future__ import annotations

import platform
import shutil
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import pytest

from fixtures import fetch
from ggtok.errors import OutOfMemoryError, TemplateError
from ggtok.native import jinja
from ggtok.native.chat_calls import FailedError, error_of
from tests.chat import jinja_references
from tests.chat.fuzz_jinja import differs, template
from tests.chat.jinja_grammar import VALUES, Grammar
from tests.chat.jinja_references import NOW, ggtok_answer
from tests.support import samples
from tests.support.samples import times

LLAMA: jinja.Dialect = "llama.cpp"
PYTHON: jinja.Dialect = "transformers"


def render(source: str, dialect: jinja.Dialect = LLAMA, /, **values: Any) -> str | bytes:
    return jinja.compile(source, dialect).render(values, NOW).text


# Each row has a template and its result in both dialects (llama.cpp, transformers); None: an error.
ROWS = [
    ("{{ -7 % 3 }}", "-1", "2"),
    ("{{ 7 / 2 }} {{ 6 / 2 }}", "3.5 3.0", "3.5 3.0"),
    ("{{ 7 // 2 }}", None, "3"),
    ("{{ 2 ** 10 }}", None, "1024"),
    ("{{ 'ä' | upper }}", "ä", "Ä"),
    ("{{ 'ß'.upper() }}", "ß", "SS"),
    ("{{ 'ä' | length }}", "2", "1"),
    ("{{ [1, 2.5, 'x', none, [true]] }}", "12.5xTrue", "[1, 2.5, 'x', None, [True]]"),
    ("{{ {'a': 1} }}", "", "{'a': 1}"),
    ("{{ none }}|{{ x }}", "|", "None|"),
    ("{% macro m(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(1, b=3) }}", "13", "13"),
    ("{% macro m(a=1, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ m(b=3) }}", "2", "13"),
    ("{% macro m() %}{{ q }}{% endmacro %}{% for q in [1] %}{{ m() }}{% endfor %}", "1", ""),
    ("{% with a = 1 %}{{ a }}{% endwith %}", None, "1"),
    ("{% raw %}{{ x }}{% endraw %}", None, "{{ x }}"),
    ("{{ [1, 2] | sum }}", None, "3"),
    ("a  {% if true %}b{% endif %}", "b", "a  b"),
    ("{% for i in [1, 2] %}{% if i == 2 %}x{% break %}{% endif %}{{ i }}{% endfor %}", "1", "1x"),
    ("{{ '%05.1f|%s' % (2.25, none) }}", None, "002.2|None"),
    ("{{ '{:>4}|{!r}'.format('a', 'b') }}", None, "   a|'b'"),
    ("{{ '{}-{}'.format(1, 'b') }}", "1-b", "1-b"),
    ("{{ [3, 1, 2] | sort | join(',') }}", "1,2,3", "1,2,3"),
    (
        "{{ {'b': 1, 'a': 2} | tojson(indent=1) }}",
        '{\n "b": 1,\n "a": 2\n}',
        '{\n "b": 1,\n "a": 2\n}',
    ),
    ("{{ 1e3 if false else 0.1 }}", None, "0.1"),
    ("{{ 3 is divisibleby(0) }}", None, None),
    ("{{ x.y.z }}", "", None),
    ("{{ namespace(a=1).a }}", "1", "1"),
    ("{{ namespace(_a=1) }}", "", None),
    ("{% set ns = namespace() %}{% set ns._a = 1 %}{{ ns._a }}", "1", None),
    ("{% set x %}a{{ 'b' }}{% endset %}{{ x | capitalize }}", "AB", "Ab"),
    ("{{ 'a' in 'abc' }}{{ 'k' not in {'k': 1} }}", "TrueFalse", "TrueFalse"),
    (
        "{{ strftime_now('%Y-%m-%d %H:%M:%S %j %a %B %-d %%') }}",
        *["2026-03-07 15:04:05 066 Sat March 7 %"] * 2,
    ),
    ("a\r\nb\rc\r\n", "a\nb\nc", "a\nb\nc"),
    ("{{ raise_exception('no') }}", None, None),
    ("{% set l = [1, 2] %}{{ l.pop() }}{{ l.pop(0) }}{{ l | length }}", "210", None),
    ("{% call m() %}c{% endcall %}{% macro m() %}{{ caller() }}{% endmacro %}", None, None),
    ("{% macro m() %}<{{ caller() }}>{% endmacro %}{% call m() %}c{% endcall %}", "<c>", "<c>"),
    ("{% filter upper %}a{{ 'b' }}{% endfilter %}", "AB", "AB"),
    ("{{ -5|abs }}{{ - 5|abs }}", "55", "55"),
    ("{{ none | selectattr('a', 'no') | list }}{{ x | map() | list }}", "", "[][]"),
    ("{% set a, b = [1, 2] %}{{ b }}{% set a, b = 1 %}", None, None),
    ("{{ 'x' * 3 }}{{ 9007199254740993 + 1 }}", "xxx-9223372036854775808", "xxx9007199254740994"),
    ("{{ 9223372036854775807 + 1 }}", "-9223372036854775808", None),
    ("{{ loop }}{% for i in 'ab' %}{{ loop.index }}{{ i }}{% endfor %}", None, "1a2b"),
    ("{{ cycler('a', 'b').next() }}{% set j = joiner() %}{{ j() }}{{ j() }}", None, "a, "),
    (
        "{% for x in [[1, [2]]] recursive %}{{ x if x is number else loop(x) }}{% endfor %}",
        None,
        "12",
    ),
    (
        "{% for x in [[1]] recursive %}{{ loop.depth }}{{ loop.depth0 }}"
        "{{ loop(x) if x is iterable }}{% endfor %}",
        None,
        "1021",
    ),
]


@pytest.mark.parametrize(("source", "llama", "python"), ROWS)
def test_each_dialect_gives_the_listed_result(
    source: str, llama: str | None, python: str | None
) -> None:
    for dialect, expected in ((LLAMA, llama), (PYTHON, python)):
        kind, text = ggtok_answer(source, {}, dialect)
        if expected is None:
            assert kind != "O", (dialect, text)
        else:
            assert (kind, text) == ("O", expected), dialect


@pytest.mark.parametrize("dialect", [LLAMA, PYTHON])
def test_most_random_templates_render(dialect: jinja.Dialect) -> None:
    """Random templates that fail would test little."""
    sources = [Grammar(seed, dialect == PYTHON).template() for seed in range(300)]
    rendered = sum(ggtok_answer(source, VALUES, dialect)[0] == "O" for source in sources)
    assert rendered > 0.8 * len(sources)


@pytest.mark.parametrize(
    "method", "isalnum isalpha isascii isdigit islower isspace istitle isupper".split()
)
def test_character_methods_equal_pythons(method: str) -> None:
    """Methods that classify characters return the same as Python's, except for which numbers are
    digits (docs/design/jinja.md)."""
    for text in ("", *"aA1_² \t\u2028éªǅ文٣", "aB", "Aa Bb", "a1", "1a", "a ", "\u0345"):
        shown = str(getattr(text, method)())
        assert ggtok_answer(f"{{{{ x.{method}() }}}}", {"x": text}, PYTHON) == ("O", shown), text


def test_random_templates_equal_transformers() -> None:
    """To try more templates: python -m tests.chat.fuzz_jinja --dialect transformers."""
    for seed in range(1, times(500, of=1500)):
        source = template(seed, PYTHON)
        theirs = jinja_references.transformers(source, VALUES)
        mine = ggtok_answer(source, VALUES, PYTHON)
        assert not differs(source, theirs, mine, PYTHON), (seed, source, theirs, mine)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("g++") is None, reason="the reference is compiled with g++")
def test_random_templates_equal_llama_cpps_engine() -> None:
    reference = jinja_references.LlamaCpp()
    try:
        for seed in range(1, 1500):
            source = template(seed, LLAMA)
            theirs, mine = reference(source, VALUES), ggtok_answer(source, VALUES, LLAMA)
            assert not differs(source, theirs, mine, LLAMA), (seed, source, theirs, mine)
    finally:
        reference.close()


def conversation() -> dict[str, Any]:
    messages = [
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye <|im_end|>"},
    ]
    tokens = {"bos_token": "<s>", "eos_token": "</s>"}
    return {"messages": messages, "add_generation_prompt": True, "tools": None, **tokens}


def template_files() -> list[Path]:
    return sorted(fetch.fetch("templates").glob("*.jinja")) if samples.FULL else []


@pytest.mark.full
@pytest.mark.parametrize("path", template_files(), ids=lambda p: p.stem)
def test_llama_cpps_template_files_render(path: Any) -> None:
    source, values = path.read_text(encoding="utf-8"), conversation()
    kind, text = ggtok_answer(source, {k: v for k, v in values.items() if k != "tools"}, LLAMA)
    assert kind == "O" and "Bye <|im_end|>" in text  # type: ignore[operator]
    assert "messages" in jinja.compile(source, LLAMA).variables
    theirs, mine = (
        jinja_references.transformers(source, values),
        ggtok_answer(source, values, PYTHON),
    )
    if "strftime_now" not in source:
        assert not differs(source, theirs, mine, PYTHON), (theirs, mine)


# ---- origins of text ----


class Text(str):
    ranges: tuple[tuple[int, int], ...]


def of_template(source: str, dialect: jinja.Dialect, **values: Any) -> str:
    """Returns the output, with dots for characters that don't have the template's origin."""
    text, ranges, _ = jinja.compile(source, dialect).render(values, NOW)
    assert isinstance(text, str)
    return "".join(
        c if any(b <= len(text[:i].encode()) < e for b, e in ranges) else "."
        for i, c in enumerate(text)
    )


def test_formatted_characters_keep_the_messages_origin() -> None:
    """If a fill character, or the number of a character, comes from a message, so do the resulting
    characters."""
    for source, shown in (
        ("{{ '{:{}>3}|'.format('a', '<') }}", "<<a|"),
        ("{{ '{:{}>3}|'.format('a', s) }}", "..a|"),
        ("{{ '{:{}>3}|'.format(5, s) }}", "...|"),
        ("{{ '{:{}}|'.format('a', 3) }}", "a  |"),
        ("{{ '{:c}{:c}|'.format(60, n) }}", "..|"),
        ("{{ '%c|' % n }}", ".|"),
    ):
        assert of_template(source, PYTHON, s="<", n=60) == shown, source
    for wrong in ("'{:5\0}'.format(1)", "'{:x\0}'.format(1)", "'{!\0}'.format(1)"):
        with pytest.raises(TemplateError):
            of_template("{{ " + wrong + " }}", PYTHON)


@pytest.mark.parametrize("dialect", [LLAMA, PYTHON])
def test_operations_preserve_origins(dialect: jinja.Dialect) -> None:
    rows = [
        ("<{{ s }}>", "<...>"),
        ("{{ '<' ~ s + '>' }}", "<...>"),
        ("{{ ('<' ~ s ~ '>') | upper }}", "<...>"),
        ("{{ ('  <' ~ s ~ '> ') | trim }}", "<...>"),
        ("{{ ('a,b' ~ s).split(',')[1] }}", "b..."),
        ("{{ (s ~ '|').replace('x', '[]') }}", "[]..|"),
        ("{{ ['a', s, 'b'] | join('-') }}", "a-...-b"),
        ("{{ ('ab' ~ s)[1:] }}", "b..."),
        ("{{ s | tojson }}", "....."),
        ("{{ 'a' | tojson }}{{ 5 }}", "...."),
        ("{% set x %}<{{ s }}>{% endset %}{{ x }}", "<...>"),
        ("{% macro m(a) %}<{{ a }}>{% endmacro %}{{ m(s) }}", "<...>"),
        ("{{ '{}!'.format(s) }}", "...!"),
        ("{{ ('<\\n' ~ s) | indent(2, true) }}", "  <\n  ..."),
        ("{{ 'é' ~ s }}", "é..."),
        ("{% filter upper %}<{{ s }}{% endfilter %}", "<..."),
    ]
    for source, expected in rows:
        assert of_template(source, dialect, s="xyz") == expected, source
    mixed = Text("ab<eot>c")
    mixed.ranges = ((2, 7),)
    assert of_template("{{ s }}", dialect, s=mixed) == "..<eot>."
    mixed.ranges = ((5, 2),)
    with pytest.raises(ValueError, match="ranges"):
        of_template("{{ s }}", dialect, s=mixed)
    plain = Text("ab")
    assert of_template("{{ s }}", dialect, s=plain) == ".."


@pytest.mark.parametrize("dialect", [LLAMA, PYTHON])
def test_generated_text_is_marked(dialect: jinja.Dialect) -> None:
    source = "aa{% generation %}b{{ s }}{% endgeneration %}c{% generation %}d{% endgeneration %}"
    text, ranges, generated = jinja.compile(source, dialect).render({"s": "x"}, NOW)
    assert (text, ranges, generated) == ("aabxcd", ((0, 3), (4, 6)), ((2, 4), (5, 6)))


def test_text_accumulated_in_a_loop_keeps_its_parts() -> None:
    source = (
        "{% set ns = namespace(t='') %}{% for m in l %}{% set ns.t = ns.t ~ '<' ~ m ~ '>' %}"
        "{% set old = ns.t ~ '!' %}{% endfor %}{{ ns.t }}"
    )
    for dialect in (LLAMA, PYTHON):
        assert of_template(source, dialect, l=["ab"] * 3) == "<..><..><..>"


# ---- the rest of the interface ----


def test_variables_are_those_that_are_read() -> None:
    found = jinja.compile(
        "{{ a }}{% if b is defined %}{% set c = d.e %}{% endif %}{{ range(f) }}", LLAMA
    )
    assert found.variables == {"a", "b", "d", "f"}


def test_probes_report_what_was_used() -> None:
    source = "{% if m[0].c is string %}{{ m[0].c }}{% endif %}{% for x in t %}{{ x.n }}{% endfor %}"
    values = {"m": [{"c": "x"}, {"c": "y"}], "t": [{"n": 1, "o": 2}]}
    paths: list[jinja.Path] = [
        ("m", 0, "c"),
        ("m", 1, "c"),
        ("t",),
        ("t", 0, "n"),
        ("t", 0, "o"),
        ("t", 9),
        ("q",),
        ("t", "n"),
    ]
    text, uses = jinja.compile(source, LLAMA).probe(values, paths, NOW)
    assert text == "x1"
    assert [use.used for use in uses] == [True, False, True, True, False, False, False, False]
    assert uses[0].operations == {"test_is_string"}
    assert uses[2].operations == {"array_access"}
    text, _ = jinja.compile("{{ raise_exception('x') }}", LLAMA).probe({}, [])
    assert text is None
    with pytest.raises(TypeError, match="path"):
        jinja.compile("", LLAMA).probe({}, [3])  # type: ignore[list-item]


def test_errors_name_line_and_source() -> None:
    with pytest.raises(TemplateError) as caught:
        render("a\n  {{ x | nosuch }}\n")
    assert caught.value.line == 2 and "'nosuch'" in str(caught.value)
    assert "{{ x | nosuch }}" in str(caught.value)
    for dialect in (LLAMA, PYTHON):
        for source in (
            "{{",
            "{% if %}",
            "{{ 'a }}",
            "{# x",
            "{% nosuch %}",
            "{{ 1 2 }}",
            "{% for %}",
        ):
            with pytest.raises(TemplateError):
                jinja.compile(source, dialect)


def test_values_that_are_no_plain_data_are_refused() -> None:
    for value, error in (
        (object(), TypeError),
        ({1: 2}, TypeError),
        (float("nan"), ValueError),
        ("\ud800", UnicodeEncodeError),
        ({"\ud800": 1}, UnicodeEncodeError),
    ):
        with pytest.raises(error):
            render("{{ x }}", x=value)
    with pytest.raises(TypeError):
        jinja.compile("", LLAMA).render({1: 2})  # type: ignore[dict-item]
    assert render("{{ x }}", PYTHON, x={1: (2.5, float("inf"))}) == "{1: (2.5, inf)}"
    assert render("{{ x }} {{ y }}", x=2**64 - 1, y=2**70) == "-1 1180591620717411303424.0"
    assert render("{{ x }}", x=-(2**63) - 1) == "-9223372036854775808.0"
    assert render("{{ x }}", PYTHON, x=2**64) == str(2**64)
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(TemplateError, match="deeply"):
        render("{{ x }}", x=deep)


def test_a_split_character_gives_bytes() -> None:
    assert render("{{ 'é'[0] }}") == b"\xc3"


def test_local_time_is_shown_unless_given() -> None:
    template = jinja.compile("{{ strftime_now('%Y') }}", LLAMA)
    assert template.render({}).text in (str(datetime.now().year), str(datetime.now().year - 1))
    naive = datetime(2024, 2, 29, 1, 2, 3)
    assert jinja.compile("{{ strftime_now('%z%Z|%H') }}", PYTHON).render({}, naive).text == "|01"
    aware = NOW.astimezone(timezone.utc)
    assert (
        jinja.compile("{{ strftime_now('%z %Z') }}", PYTHON).render({}, aware).text == "+0000 UTC"
    )


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the reference is glibc's strftime")
@pytest.mark.parametrize("letter", "aAbBcCdDeFgGhHIjklmMnpPrRStTuUVwWxXyY")
def test_dates_equal_glibcs(letter: str) -> None:
    """Some dates are around New Year, when the week may belong to either year, or in leap years."""
    for day in (
        datetime(2026, 3, 7, 15, 4, 5),
        datetime(2027, 1, 1, 0, 0, 0),
        datetime(2024, 12, 30, 12, 59, 9),
        datetime(2000, 2, 29, 9, 0, 59),
        datetime(2023, 1, 1, 23, 1, 1),
    ):
        for flag in ("", "-", "_", "0", "^", "#", "^#", "7", "^_7"):
            format = f"%{flag}{letter}"
            for dialect in (LLAMA, PYTHON):
                template = jinja.compile(f"{{{{ strftime_now('{format}') }}}}", dialect)
                assert template.render({}, day).text == day.strftime(format), (format, day)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="the reference is glibc's strftime")
@pytest.mark.parametrize("zone", ["UTC", "Europe/Berlin", "America/St_Johns", "<-03>3:00:30"])
def test_zones_and_modifiers_equal_glibcs(zone: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", zone)
    time.tzset()
    day = datetime(2026, 7, 3, 5, 6, 7)
    local = time.localtime(day.timestamp())
    for letter in "aAbBcCdDeFgGhHIjklmMnpPrRsStTuUVwWxXyYzZ%":
        for flag in ("", "-", "_", "0", "#", "+", ":", "1", "7", "-7", "_7", "07", "E", "O", "#7E"):
            format = f"%{flag}{letter}"
            template = jinja.compile(f"{{{{ strftime_now('|{format}') }}}}", LLAMA)
            expected = time.strftime(f"|{format}", local)
            assert template.render({}, day.astimezone()).text == expected, format
    monkeypatch.undo()
    time.tzset()


def test_memory_errors_are_ggtoks() -> None:
    failed = FailedError(1, "out of memory", None, "", 0, "")
    assert isinstance(error_of(failed), OutOfMemoryError)
    assert str(error_of(FailedError(9, "message", None, "", 0, ""))) == "message"


def test_threads_share_a_template() -> None:
    source = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
    template, values = jinja.compile(source, LLAMA), conversation()
    expected, found = template.render(values, NOW), []

    def work() -> None:
        for i in range(200):
            jinja.compile(f"{source}{i % 90}", LLAMA)  # compile more templates than the cache holds
            found.append(template.render(values, NOW))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 800 and set(found) == {expected}


# The rows in docs/chat.md, "What each dialect lacks": a template, and the dialects that reject it.
IN_BOTH, IN_LLAMA, IN_PYTHON = ("llama.cpp", "transformers"), ("llama.cpp",), ("transformers",)
LACKS = {
    "{% block a %}x{% endblock %}": IN_BOTH,
    "{% extends 'x' %}": IN_BOTH,
    "{% include 'x' %}": IN_BOTH,
    "{% import 'x' as y %}": IN_BOTH,
    "{% autoescape true %}x{% endautoescape %}": IN_BOTH,
    "{% do [].copy() %}": IN_BOTH,
    "{% with a=1 %}{{ a }}{% endwith %}": IN_LLAMA,
    "{% raw %}{{{% endraw %}": IN_LLAMA,
    "{{ 7 // 2 }}{{ 2 ** 3 }}": IN_LLAMA,
    "{{ '%s' % 1 }}": IN_LLAMA,
    "{{ [1] | sum }}": IN_LLAMA,
    "{{ [{'a': 1}] | groupby('a') }}": IN_LLAMA,
    "{{ [1] | batch(1) | list }}": IN_LLAMA,
    "{{ [1] | unique | list }}": IN_LLAMA,
    "{{ 'a b' | wordcount }}": IN_LLAMA,
    "{{ 'a' | center }}": IN_LLAMA,
    "{{ 'a' | truncate }}": IN_LLAMA,
    "{{ 1.5 | round }}": IN_LLAMA,
    "{{ 'a' | e }}": IN_LLAMA,
    "{{ 1 | filesizeformat }}": IN_LLAMA,
    "{{ cycler(1).next() }}": IN_LLAMA,
    "{{ joiner()() }}": IN_LLAMA,
    "{{ 'a'.center(3) }}": IN_LLAMA,
    "{{ 'a b'.partition(' ') }}": IN_LLAMA,
    "{% set l = [1] %}{{ l.append(2) }}{{ l.pop() }}": IN_PYTHON,
    "{% set l = [1] %}{{ l.insert(0, 2) }}": IN_BOTH,
    **{
        "{{ 'a' | " + name + " }}": IN_BOTH
        for name in ("pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr")
    },
    "{{ lipsum() }}": IN_BOTH,
    "{{ 'a'.encode() }}": IN_BOTH,
    "{{ 'a'.expandtabs() }}": IN_BOTH,
    "{{ 'a'.translate({}) }}": IN_BOTH,
    "{{ '{a}'.format_map({'a': 1}) }}": IN_BOTH,
    "{{ dict.fromkeys('ab') }}": IN_BOTH,
    "{{ range(3).count(1) }}": IN_BOTH,
    "{{ ('a' | safe) % 1 }}": IN_BOTH,
    "{{ {}.keys() <= {}.items() }}": IN_BOTH,
}


@pytest.mark.parametrize("source", LACKS)
def test_each_dialect_rejects_what_it_lacks(source: str) -> None:
    for dialect in IN_BOTH:
        if dialect in LACKS[source]:
            with pytest.raises(TemplateError) as caught:
                jinja.compile(source, dialect).render({})  # type: ignore[arg-type]
            assert caught.value.line == 1
        else:
            jinja.compile(source, dialect).render({})  # type: ignore[arg-type]


# Filters that are generators, which process each item on demand.
LAZY = {
    "{% set g = [1, 'a'] | map('abs') %}{{ g is defined }}": "True",
    "{{ [1, 'a'] | map('abs') | first }}": "1",
    "{{ 1 in ([1, 'a'] | map('abs')) }}": "True",
    "{% for x in [1, 2, 'a'] | map('abs') %}{{ x }}{% if x == 2 %}{% break %}{% endif %}{% endfor %}": "12",
    "{% for x in [3, 'a'] | map('abs') if x %}{{ x }}{% break %}{% endfor %}": "3",
    "{% set g = [1] | map('nosuch') %}x": "x",
    "{% set g = [1] | select('nosuch') %}{{ [] | select('nosuch') | list }}": "[]",
    "{% set g = [1, 2, 3] | select %}{{ g | first }}{{ g | list }}{{ g | list }}": "1[2, 3][]",
    "{% set g = 'aab' | unique %}{{ g | first }}{{ g | join }}": "ab",
    "{% set g = 5 | batch('x') %}{{ [1, 2, 3] | batch(2) | first }}": "[1, 2]",
    "{% for x in [1, 2] | map('string') %}{{ x }}{{ loop.last }}{{ loop.length }}{% endfor %}": "1False22True2",
    "{% set g = [[1, 2]] | map('list') %}{% for a, b in g %}{{ a }}{{ b }}{% endfor %}": "12",
    "{% for k, v in [['a', 1], ['b', 2]] if v %}{{ loop.previtem }}{% endfor %}": "('a', 1)",
    "{{ [1] | map('string') }}": "<generator object sync_do_map at 0x7f0000000000>",
}


@pytest.mark.parametrize("source", LAZY)
def test_generators_are_lazy(source: str) -> None:
    assert jinja.compile(source, "transformers").render({}).text == LAZY[source]
    theirs = jinja_references.transformers(source, {})
    if "object" not in LAZY[source]:
        assert theirs == ("O", LAZY[source])


# Integers beyond 64 bits can be passed on, but computing with them is an error.
BIG = {
    "{{ 99999999999999999999 }}": "99999999999999999999",
    "{{ -99999999999999999999 }}": "-99999999999999999999",
    "{{ [1_000_000_000_000_000_000_000] }}": "[1000000000000000000000]",
    "{{ -9223372036854775808 }}": "-9223372036854775808",
    "{{ -(-9223372036854775808) }}": "9223372036854775808",
    "{{ big }}{{ [big, -big] | tojson }}": f"{10**30}[{10**30}, {-(10**30)}]",
    "{{ big ~ '' }}{{ big | string | length }}": f"{10**30}31",
    "{{ big is integer }}{{ big is number }}{{ big is string }}{{ big is float }}": "TrueTrueFalseFalse",
    "{{ big == big }}{{ big == 1 }}{{ big != -big }}{{ big in [1, big] }}": "TrueFalseTrueTrue",
    "{{ {big: 1}[big] }}{{ {big: 1} | tojson }}": f'1{{"{10**30}": 1}}',
    "{{ 'x' if big }}{{ big | int }}{{ +big == big }}": f"x{10**30}True",
    "{{ [big, big, 1] | unique | list }}": f"[{10**30}, 1]",
    "{{ '%s' % big }}{{ '{}'.format(big) }}": f"{10**30}{10**30}",
}
TOO_BIG = (
    *("big + 1", "big * 2", "1 // big", "big > 1", "big == 1.5", "big is odd", "big | float"),
    *("range(big)", "0xffffffffffffffffff", "2 ** 64", "9223372036854775807 + 1"),
)


@pytest.mark.parametrize("source", BIG)
def test_integers_beyond_64_bits(source: str) -> None:
    values = {"big": 10**30}
    assert ggtok_answer(source, values, "transformers") == ("O", BIG[source])
    assert jinja_references.transformers(source, values) == ("O", BIG[source])


@pytest.mark.parametrize("expression", TOO_BIG)
def test_computing_with_large_integers_is_an_error(expression: str) -> None:
    kind, text = ggtok_answer(f"{{{{ {expression} }}}}", {"big": 10**30}, "transformers")
    assert kind in "CE" and "beyond 64 bits" in str(text)


def test_nested_generators_have_a_limit() -> None:
    source = (
        "{% set n = namespace(g=[1]) %}{% for i in range(COUNT) %}"
        "{% set n.g = n.g | map('string') %}{% endfor %}{{ n.g | first }}"
    )
    assert jinja.compile(source.replace("COUNT", "300"), "transformers").render({}).text == "1"
    with pytest.raises(TemplateError, match="too deeply"):
        jinja.compile(source.replace("COUNT", "5000"), "transformers").render({})


LOOPS = {
    "{% for x in l %}{% set _ = l.append(x) %}{% endfor %}{{ l }}": "123123",
    "{% for x in l %}{% set _ = l.append(x) %}{{ x }}{% endfor %}": "123",
    "{% for x in l %}{% set _ = l.pop(0) %}{{ x }}{% endfor %}|{{ l }}": "123|",
    "{% for x in l %}{% set _ = l.pop() %}{% set _ = l.append(9) %}{{ x }}{% endfor %}|{{ l }}": (
        "123|129"
    ),
    "{% for x in l %}{% for y in l %}{% set _ = l.pop() if l|length > 2 %}{{ x }}{{ y }} "
    "{% endfor %}{% endfor %}|{{ l }}": "11 12 13 21 22 31 32 |12",
    "{{ l }}{% set _ = l.append(4) %}": "1234",
}


@pytest.mark.parametrize(("template", "expected"), LOOPS.items())
def test_loops_over_lists_that_change(template: str, expected: str) -> None:
    """llama.cpp's loops run over a copy, and it prints a list at the end, however the template
    names the method."""
    for spelling in (
        lambda name: f".{name}",
        lambda name: f"['{name}']",
        lambda name: f"['{name[:2]}' ~ '{name[2:]}']",
    ):
        source = template
        for name in ("append", "pop"):
            source = source.replace(f".{name}", spelling(name))
        source = "{% set l = [1, 2, 3] %}" + source
        assert jinja.compile(source, "llama.cpp").render({}).text == expected, source


METHODS = {
    "'aXb c'": "capitalize endswith('c') indent length lower lstrip replace('a','b') rsplit rstrip "
    "safe split startswith('a') string strip title tojson trim upper",
    "[3, 1, 2]": "append(4) first join last length list max min pop reverse sort string tojson "
    "unique",
    "{'b': 1, 'a': 2}": "dictsort get('a') items keys length tojson values",
    "5": "abs float int safe string tojson",
    "none": "items length string tojson",
}


@pytest.mark.parametrize("value", METHODS)
def test_methods_by_dot_and_by_item(value: str) -> None:
    """Each method of llama.cpp's dialect gives the same through ``.`` and ``[]``."""

    def rendered(source: str) -> str:
        try:
            return jinja.compile(source, "llama.cpp").render({}).text
        except TemplateError:
            return "error"

    for method in METHODS[value].split():
        name, parenthesis, arguments = method.partition("(")
        arguments = parenthesis + arguments or "()"
        for use in ("{{ (%s)|tojson }}", "{%% for x in %s %%}{{ x }},{%% endfor %%}"):
            head = f"{{% set v = {value} %}}"
            by_dot = rendered(head + use % f"v.{name}{arguments}")
            by_item = rendered(head + use % f"v['{name}']{arguments}")
            assert by_dot == by_item, (value, method)
