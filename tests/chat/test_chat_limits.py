"""Hostile templates: each results in an error or in little output."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.support.vocabularies import fixture

GROW = (
    "{%% set ns = namespace(x=%s) %%}{%% for i in range(100) %%}"
    "{%% set ns.x = %s %%}{%% endfor %%}%s"
)
BIG = "{% set x = 'a' * 5000000 %}"
LONG = "for i in range(100000)"

TOO_MUCH = {
    "times": "{{ 'a' * 10**10 }}",
    "times a list": "{{ [1] * 10**10 }}",
    "times a mixture": "{{ ('<' ~ messages[0].content) * 4000000 }}",
    "times safe text": "{{ ('<' | safe) * 10**10 }}",
    "power": "{{ 10 ** (10 ** 10) }}",
    "product": GROW % ("99", "ns.x * ns.x", ""),
    "doubling": GROW % ("'ab'", "ns.x + ns.x", "{{ ns.x }}"),
    "doubling with ~": GROW % ("'ab'", "ns.x ~ ns.x", "{{ ns.x }}"),
    "many parts": BIG + "{{ x" + " ~ x" * 5000 + " }}",
    "a list of itself": GROW % ("[1]", "[ns.x, ns.x]", "{{ ns.x }}"),
    "two such, compared": GROW
    % ("[1], y=[1]", "[ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y]", "{{ ns.x == ns.y }}"),
    "a tuple as a key": GROW % ("(1,)", "(ns.x, ns.x)", "{{ {ns.x: 1} }}"),
    "dicts": GROW % ("{}", "dict(a=ns.x, b=ns.x)", "{{ ns.x | tojson }}"),
    "a long list": GROW % ("[1]", "ns.x + ns.x", ""),
    "deep": "{% set ns = namespace(x=()) %}{% " + LONG + " %}{% set ns.x = (ns.x,) %}{% endfor %}",
    "deep, of plain lists": "{% set ns = namespace(x=[] * 1) %}{% "
    + LONG
    + " %}{% set ns.x = [ns.x] * 1 %}{% endfor %}",
    "varargs": "{% macro f(n) %}{% if n %}{{ f(n-1, varargs, varargs) }}{% else %}{{ varargs }}"
    "{% endif %}{% endmacro %}{{ f(60) }}",
    "kwargs": "{% macro f(n) %}{% if n %}{{ f(n-1, a=kwargs, b=kwargs) }}{% else %}{{ kwargs }}"
    "{% endif %}{% endmacro %}{{ f(60) }}",
    "deep varargs": "{% macro f(n) %}{% if n %}{{ f(n-1, varargs) }}{% endif %}{% endmacro %}"
    "{{ f(110) }}",
    "cycler": GROW % ("1", "cycler(ns.x, ns.x).items", "{{ ns.x }}"),
    "namespaces": "{% set ns = namespace(l=[]) %}{% "
    + LONG
    + " %}{% set ns.l = ns.l + [namespace(a='a' * 7000000)] %}{% endfor %}",
    "center": "{{ 'a' | center(10**10) }}",
    "center method": "{{ 'a'.center(10**10) }}",
    "zfill": "{{ '1'.zfill(10**10) }}",
    "expandtabs": "{{ '\t'.expandtabs(10**9) }}",
    "format width": "{{ '{:10000000000}'.format(1) }}",
    "format width inside": "{{ '{:{}}'.format(1, 10000000000) }}",
    "format precision": "{{ '{0:.1000000000f}'.format(1.5) }}",
    "format fields": BIG + "{{ ('{0}' * 1000000).format(x) }}",
    "format widths": "{{ ('{:9999}' * 900).format(*range(900)) }}",
    "format safe": "{{ ('{:10000000000}' | safe).format(1) }}",
    "format map": "{{ '{a:10000000000}'.format_map({'a': 1}) }}",
    "format by attr": "{{ ('{:10000000000}' | attr('format'))(1) }}",
    "format by map": "{{ (['{:10000000000}'] | map(attribute='format') | first)(1) }}",
    "% width": "{{ '%10000000000d' % 1 }}",
    "% star": "{{ '%*d' % (1000000000, 1) }}",
    "% name": BIG + "{{ ('%(a)s' * 1000000) % {'a': x} }}",
    "% widths": "{{ ('%9999d' * 90000) % ((1,) * 90000) }}",
    "% filter": "{{ '%10000000000d' | format(1) }}",
    "replace": BIG + "{{ x | replace('a', x) }}",
    "replace method": BIG + "{{ x.replace('', x) }}",
    "join": BIG + "{{ range(100000) | join(x) }}",
    "join method": BIG + "{{ x.join(range(100000) | map('string')) }}",
    "join safe": BIG + "{{ (x | safe).join(['a'] * 100000) }}",
    "split": "{{ ('a,' * 4000000).split(',') | length }}",
    "list": "{{ ('a' * 8000000) | list | length }}",
    "slices": "{% set x = 'a' * 7000000 %}{% " + LONG + " %}{% set y = x[1:] %}{% endfor %}",
    "range": "{{ range(10**10) | list }}",
    "batch": "{{ [1] | batch(10**10, 'a') | list }}",
    "slice": "{{ [1] | slice(10**10) | list }}",
    "batch of batches": "{% set ns = namespace(x=1) %}{% for i in range(60) %}"
    "{% for b in [1] | batch(3, ns.x) %}{% set ns.x = b %}{% endfor %}{% endfor %}{{ ns.x }}",
    "batch fill": BIG + "{{ [1] | batch(10000, x) | map('string') | list }}",
    "batches": "{{ (['a'] * 200000) | map('batch', 10000, 0) | map('list') | list }}",
    "slice fill": BIG + "{{ [1] | slice(10000, x) | map('string') | list }}",
    "map default": BIG + "{{ range(100000) | map(attribute='a', default=x) | sort }}",
    "map of maps": BIG + "{% for y in [range(100000)] | map('map', attribute='a', default=x) %}"
    "{{ y | sort }}{% endfor %}",
    "groupby default": BIG + "{{ range(100000) | groupby('a', default=x) }}",
    "sum": "{% set x = [1] * 400000 %}"
    "{{ range(100000) | map(attribute='a', default=x) | sum(start=[]) | length }}",
    "round": "{{ 1.5 | round(10**9, 'ceil') }}",
    "truncate": "{{ 'a' | truncate(10**10) }}",
    "indent": "{{ 'a\nb' | indent(10**10) }}",
    "indent widths": "{{ ('\n' * 1000) | indent(10000) }}",
    "indent lines": "{{ ('\n' * 1000000) | indent(10000, true, true) }}",
    "tojson indent": "{{ [1] | tojson(indent=10**9) }}",
    "tojson size": "{{ ([[[[1]]]] * 100000) | tojson(indent=64) }}",
    "tojson separators": "{{ [1] | tojson(separators=('x' * 1000000, 'y')) }}",
    "escape": "{{ ('<' * 4000000) | e | length }}",
    "output": "{% " + LONG + " %}{{ 'a' * 1000000 }}{% endfor %}",
    "captured": "{% set x %}{% " + LONG + " %}{{ 'a' * 1000000 }}{% endfor %}{% endset %}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "recursive loop": "{% for i in [1] recursive %}{{ loop([1]) }}{% endfor %}",
    "recursive block": "{% block a %}{{ self.a() }}{% endblock %}",
    "bytes of a number": "{{ (5).to_bytes(10**10, 'big') }}",
    "bytes": "{{ 'a'.encode() * 10**10 }}",
    "number of digits": "{{ ('f' * 7000000) | int(0, 16) }}",
    "lipsum": "{{ lipsum(n=10**9) }}",
    "include": "{% include 'x' %}",
    "autoescape": "{% autoescape true %}{{ 'a' }}{% endautoescape %}",
    "internals": "{{ ''.__class__.__mro__ }}",
    "internals by format": "{{ '{0.__class__.__mro__}'.format(1) }}",
    "namespace internals": "{{ namespace(__init__=1) }}",
    "parentheses": "{{ " + "(" * 30000 + "1" + ")" * 30000 + " }}",
    "signs": "{{ " + "-" * 50000 + "1 }}",
    "nested lists": "{{ " + "[" * 40000 + "]" * 40000 + " }}",
    "nested loops": "{% for i in [1] %}" * 2000 + "{% endfor %}" * 2000,
    "filters": "{{ 'a'" + "|upper" * 15000 + " }}",
    "branches": "{% if a %}" + "{% elif a %}" * 7000 + "{% endif %}",
    "open tags": "{%" * 45000,
    "open braces": "{" * 90000,
    "long source": "{{ a }}" + "a" * 200000,
}
TOO_LONG = {
    "loops": f"{{% {LONG} %}}{{% {LONG} %}}{{% endfor %}}{{% endfor %}}",
    "loops that filter": f"{{% {LONG} %}}{{% {LONG} if false %}}{{% endfor %}}{{% endfor %}}",
    "macros": "{% macro f(n) %}{% if n %}{{ f(n-1) }}{{ f(n-1) }}{% endif %}{% endmacro %}"
    "{{ f(60) }}",
    "sorting": f"{{% {LONG} %}}{{{{ range(100000) | map('string') | sort }}}}{{% endfor %}}",
    "sum": "{{ ([[1]] * 200000) | sum(start=[]) }}",
    "select": "{% set x = 'a' * 7000000 %}"
    "{{ range(100000) | map('string') | select('in', x) | list }}",
    "lists": f"{{% {LONG} %}}{{% set x = [1] * 400000 %}}{{% endfor %}}",
    "dicts": "{% set n = namespace(d={}) %}{% "
    + LONG
    + " %}{% set n.d = dict(n.d, **{'a' ~ i: 1}) %}{% endfor %}",
}


CHILD = """
import json, resource, sys
import ggtok
path, memory, likes, templates = json.load(sys.stdin)
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
tok = ggtok.load(path)
results = {}
for name, template in templates.items():
    for like in likes:
        try:
            messages = [{"role": "user", "content": "x"}]
            text = tok.apply_chat_template(messages, template=template, like=like)
            results[name + ", " + like] = len(text)
        except ggtok.TemplateError as e:
            results[name + ", " + like] = str(e)[:80]
json.dump(results, sys.stdout)
"""
MEMORY = 900 << 20
# Templates that render in both dialects; HARMLESS_TO has those that render in only one dialect. In
# llama.cpp's dialect, numbers have 64 bits, and missing attributes are undefined.
HARMLESS = {
    "branches",
    "deep varargs",
    "indent widths",
    "long source",
    "tojson separators",
}
HARMLESS_TO = {
    "llama.cpp": [
        "% filter",
        "internals",
        "kwargs",
        "namespace internals",
        "number of digits",
        "product",
        "two such, compared",
        "varargs",
    ],
    "transformers": ["cycler", "deep", "deep, of plain lists", "format widths", "truncate"],
}
MOST = 64 << 20  # the maximum number of characters in a rendered text


@pytest.mark.full
@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_hostile_templates_end_within_their_memory(like: str) -> None:
    """Each results in a template error, or in a text within the limit."""
    templates = {**TOO_MUCH, **TOO_LONG}
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        input=json.dumps([str(fixture("bpe-gpt2")), MEMORY, [like], templates]),
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    results = json.loads(completed.stdout)
    assert len(results) == len(templates)
    assert not [name for name, n in results.items() if isinstance(n, int) and n > MOST]
    assert not [name for name, n in results.items() if "out of memory" in str(n)]
    rendered = {name.rpartition(", ")[0] for name, n in results.items() if isinstance(n, int)}
    assert rendered == HARMLESS | set(HARMLESS_TO[like])
