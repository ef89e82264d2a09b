# ruff: noqa: E501
"""Renderings stay within bounds for stack and steps, as measured by tests/c/jinja.c, and don't
modify templates.

Claim jinja.3, Claim jinja.4, Claim jinja.5.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.chat import charges, jinja_references, loops, stack
from tests.chat.jinja_grammar import VALUES
from tests.chat.jinja_program import DIALECTS, Case, render
from tests.chat.jinja_references import ggtok_answer
from tests.support.programs import Build

TEMPLATES = Path(__file__).with_name("templates.txt").read_text(encoding="utf-8").splitlines()
STACK = 384 << 10  # bytes; docs/design/jinja.md documents this limit

# Regression tests: reading missing values, and integers beyond 64 bits.
FOUND = {
    "{{ {('nan'|float): 1, ('inf'|float): [2]} | tojson }}": '{"NaN": 1, "Infinity": [2]}',
    "{{ {2: 1, ('nan'|float): 3} | tojson(sort_keys=true) }}": '{"2": 1, "NaN": 3}',
    "{% for a, (b, c) in [(1, [1, 2] | map('string'))] if true %}{{ a ~ b ~ c }}{% endfor %}": "112",
    "{% for a, b in [[1, 2] | map('string')] if a != b %}{{ a ~ b }}{% endfor %}": "12",
    "{{ range(-9223372036854775807, 9223372036854775807, 9223372036854775807) | list }}": "[-9223372036854775807, 0]",
    "{{ range(10)[::1000000] }}{{ range(10)[8:2:-3] }}": "range(0, 10, 1000000)range(8, 2, -3)",
    "{{ 'abc' | truncate(9223372036854775807) }}": "abc",
    "{{ {(1, 2): 3}[1, 2] }}": "3",
}
FAILING = (
    "{{ cycler(a=1).current }}",
    "{% for i in [1] %}{{ loop.cycle(a=1) }}{% endfor %}",
    "{% for i in [1] %}{{ loop.reset() }}{% endfor %}",
    "{{ cycler(1).changed(1) }}",
    "{{ 'a'.startswith((('a',),)) }}",
    "{{ range(0, 9223372036854775807, 4611686018427387904)[2:] }}",
    "{% set l = [1, 2] %}{{ l[1, :] }}",
    "{% set l = {} %}{{ l[:, 1:2, 1] }}",
)


@pytest.mark.parametrize("source", FOUND)
def test_past_faults_stay_fixed(source: str) -> None:
    assert ggtok_answer(source, {}, "transformers") == ("O", FOUND[source])
    assert jinja_references.transformers(source, {}) == ("O", FOUND[source])


@pytest.mark.parametrize("source", FAILING)
def test_wrong_calls_raise_errors(source: str) -> None:
    assert ggtok_answer(source, {}, "transformers")[0] in "CE"


@pytest.fixture(scope="module")
def program(c_program: Build) -> Path:
    return c_program("jinja", "-O2")


def test_no_rendering_writes_to_its_template(program: Path) -> None:
    """Threads can share a template: the program fails if a rendering changes the template."""
    names = "{{ dict(abc=1) | first | length }}{% macro m() %}{{ kwargs | list }}{% endmacro %}"
    sources = [*TEMPLATES, f"{names}{{{{ m(é=1)[2:] }}}}", "{{ '日本'[1] ~ x.日 }}"]
    renderings = render(
        [program], [Case(d, source, VALUES) for source in sources for d in DIALECTS]
    )
    assert len(renderings) == 2 * len(sources)


def nested(build: str, show: str) -> str:
    return (
        "{% set n = namespace(g=['a']) %}{% for i in range(20000) %}{% set n.g = "
        f"{build} %}}{{% endfor %}}{{{{ {show} }}}}"
    )


DEEP = [
    *(
        nested(f"[n.g] | map({f})", "n.g | list")
        for f in "'join' 'list' 'first' 'sum' 'sort' 'max' 'reverse' 'unique' 'dictsort' 'batch',1 'map','join' 'select','in',[[1]]".split()
    ),
    nested("n.g | map('string')", "n.g | first"),
    nested("n.g | select('in', n.g)", "n.g | list"),
    nested("[n.g]", "n.g"),
    nested("{'k': n.g}", "n.g"),
    nested("{'k': n.g}", "n.g | tojson"),
    nested("(n.g,)", "{n.g: 1}"),
    nested("(n.g,)", "'a'.startswith(n.g)"),
    nested("[n.g]", "n.g == [n.g]"),
    nested("{'k': n.g}", "n.g == {'k': n.g}"),
    nested("{'k': n.g}", "n.g.items()"),
    nested("[n.g]", "n.g.append"),
    nested("[n.g]", "[n.g].index(n.g)"),
    *(
        nested(build, f"n.g | {name}")
        for build in ("[n.g]", "{'k': n.g}")
        for name in "string tojson list length join sort unique max sum first items upper trim int abs reverse dictsort escape indent title".split()
    ),
    *(nested("[n.g]", f"n.g {op} [n.g]") for op in ("~", "+", "in", "!=", "<=")),
    nested("[n.g]", "n.g < [n.g]"),
    "{% macro m(a) %}{{ m(a) }}{% endmacro %}{{ m(1) }}",
    "{% macro m(a) %}{% for i in [1] %}{% set x = m(a) | upper %}{% endfor %}{% endmacro %}{{ m(1) }}",
    "{% macro m() %}{% call m() %}{{ m() }}{% endcall %}{% endmacro %}{{ m() }}",
    "{% macro m() %}{{ caller() }}{% endmacro %}{% macro k() %}{% call m() %}{% for i in [1] %}{% break %}{{ k() }}{% endfor %}{{ k() }}{% endcall %}{% endmacro %}{{ k() }}",
    "{% for i in [[1]] if loop recursive %}{{ loop([i]) }}{% endfor %}",
    "{% for i in [[1]] recursive %}{{ loop([i]) }}{% endfor %}",
    "{% macro m() %}{% for i in [1] if loop.length %}{% endfor %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(a) %}{% filter upper %}{% set x %}{{ m(a) }}{% endset %}{% endfilter %}{% endmacro %}{{ m(1) }}",
    "{{ " + "x(" * 99 + ")" * 99 + " }}",
    "{{ " + "-(" * 49 + "1" + ")" * 49 + " }}",
    "{{ " + "[" * 99 + "1" + "]" * 99 + " }}",
    "{{ " + "{1:" * 99 + "1" + "}" * 99 + " }}",
    "{{ x" + "[x" * 99 + "]" * 99 + " }}",
    "{% for a in b %}" * 99 + "{% endfor %}" * 99,
    "{% macro a() %}{% if x %}" * 49 + "{% endif %}{% endmacro %}" * 49,
]


# Constructs nested 5,000 deep, which the parsers reject.
ENDLESS = [
    *(
        "{{ " + 5000 * begin + "x" + 5000 * end + " }}"
        for begin, end in (
            *(("[", "]"), ("(", ")"), ("{1:", "}"), ("x[", "]"), ("x(", ")"), ("x(a=", ")")),
            *(("-", ""), ("not ", ""), ("x if ", " else x"), ("x | f(", ")"), ("x is eq(", ")")),
            *(
                ("x ** ", ""),
                ("x if x else ", ""),
                ("x and (", ")"),
                ("x.y(", ")[0]"),
                ("x[1:", "]"),
            ),
        )
    ),
    *(
        5000 * f"{{% {begin} %}}" + "x" + 5000 * f"{{% end{begin.split()[0]} %}}"
        for begin in ("if x", "for x in y", "macro m()", "call m()", "filter upper", "set x")
    ),
    5000 * "{% if x %}{% else %}" + 5000 * "{% endif %}",
    "{% if x %}" + 5000 * "{% elif x %}" + "{% endif %}",
    5000 * "{% generation %}" + 5000 * "{% endgeneration %}",
]


def test_rejected_nesting_takes_little_stack(program: Path) -> None:
    cases = [Case(dialect, source) for source in ENDLESS for dialect in DIALECTS]
    for case, rendering in zip(cases, render([program], cases, 4096), strict=True):
        assert rendering.stack < STACK, (case, rendering)


def test_deep_nesting_takes_little_stack(program: Path) -> None:
    cases = [Case(dialect, source) for source in DEEP for dialect in DIALECTS]
    for case, rendering in zip(cases, render([program], cases, 4096), strict=True):
        assert rendering.stack < STACK, (case, rendering)


@pytest.mark.full
@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc's call graph")
def test_stack_per_level_is_bounded(tmp_path: Path) -> None:
    """Checks all of the engine's recursion, not only the cases above. 800 levels of 480 bytes need
    384 kB."""
    each, cycle = stack.worst(stack.read(tmp_path))
    assert each <= 480, cycle


def test_every_loop_charges_steps() -> None:
    """Loops charge steps, or are short for a reason that tests/chat/loops.py gives."""
    found = [(where, line) for where, line in loops.unpaid() if where not in loops.BOUNDED]
    assert not found


@pytest.mark.full
@pytest.mark.skipif(shutil.which("valgrind") is None, reason="callgrind counts the instructions")
def test_instructions_per_step_are_bounded(program: Path) -> None:
    """Tries a sample of builtins with large operands; python -m tests.chat.charges tries all and
    lists them."""
    for one in charges.measure(program, charges.cases()[::20]):
        assert one.each <= charges.EACH, one


@pytest.mark.full
def test_charges_equal_the_record(program: Path) -> None:
    """Each builtin is charged the recorded number of steps. (python -m tests.chat.charges --save
    updates the record.)"""
    assert charges.steps_by_builtin(program, charges.cases()) == charges.STEPS.read_text()
