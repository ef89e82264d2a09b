# ruff: noqa: E501
"""Templates can't exceed their budget: each attack runs in a process with little memory.

Claim jinja.3, Claim jinja.4.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.support.full import full
from tests.support.waits import LIMIT

MEMORY = 900 << 20  # bytes; a rendering may use 256 MB, and Python needs the rest

ATTACKS = [
    "{{ ('a' * 7900000).rfind('ab' + 'a' * 3900000) }}",
    "{{ ('ab' * 1000000).strip('ba' * 100000) }}",
    "{{ ('a' * 7900000).split('a' * 100 + 'b') | length }}",
    "{{ ('\t' * 7900000).expandtabs(1000) }}",
    "{{ dict.fromkeys(range(100000)) }}",
    "{{ [{'a': 1}] * 10000 | map(attribute='a.' * 2000) | list }}",
    "{{ [''.join] * 10000000 }}",
    "{{ range(99999) | sort(attribute='x' * 1000) | list }}",
    "{{ range(99999) | list | sort(attribute='real') }}",
    "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x }}",
    "{% set ns = namespace(x=[1]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}",
    "{% set ns = namespace(x='a') %}{% for i in range(60) %}{% set ns.x = ns.x ~ ns.x %}{% endfor %}",
    "{% set ns = namespace(x=[]) %}{% for i in range(60) %}{% set ns.x = [ns.x, ns.x] %}{% endfor %}{{ ns.x == [ns.x] }}",
    "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{{ m(n - 1) }}{% endif %}{% endmacro %}{{ m(60) }}",
    "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "{% for a in range(9999) %}{{ 'x' * 99999 }}{% endfor %}",
    "{{ 'x' | indent(999999999) }}",
    "{{ '{:>999999999}'.format('x') }}{{ '%999999999d' % 1 }}",
    "{{ 'x'.center(2000000000) }}{{ 'x' | center(2000000000) }}",
    "{{ 9 ** 9 ** 9 ** 9 }}",
    "{{ range(9223372036854775807) | list }}",
    "{{ ('a' * 1000000).replace('', 'b' * 1000) }}",
    "{{ [1] | tojson(indent=2147483647) }}",
    "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}{{ l | tojson }}{{ l == l }}",
    "{% set l = [1] %}{% for i in range(99999) %}{% set _ = l.insert(0, i) %}{% set _ = l.pop(0) %}{% endfor %}",
    "{{ ('a,' * 3000000).split(',') | join('-') | upper | length }}",
    "{% for i in range(9999999) %}{% set x %}{{ i }}{% endset %}{% endfor %}",
    "{{ 'a' in ('b' * 9000000) and ('ab' * 4000000) in ('a' * 9000000) }}",
    "{% set ns = namespace(t='') %}{% for i in range(99999) %}{% set ns.t = 'x' ~ ns.t %}{% endfor %}",
    "{{ " + "(" * 5000 + ")" * 5000 + " }}",
    "{{ " + "[" * 90 + "1" + "]" * 90 + " }}",
    "{{ " + "not " * 50000 + "1 }}",
    "{{ 1" + " + 1" * 25000 + " }}",
    "{{ x" + ".y" * 45000 + " }}",
    "{{ x" + "|d" * 45000 + " }}",
    "{{ x" + "()" * 45000 + " }}",
    "{% if x %}" * 9000 + "{% endif %}" * 9000,
    "{% if a %}{% elif b %}" + "{% elif c %}" * 8000 + "{% endif %}",
    "{% set a = 1 %}{% if x %}{% set b = a %}{% endif %}" * 2000,
    "".join(f"{{% set v{i} = v{i // 2} %}}" for i in range(5000)),
    "".join(f"{{% if v{i} %}}{{% set w{i} = 1 %}}{{% endif %}}" for i in range(3000)),
    "{{ " + "-" * 99000 + "1 }}",
    "{{ a " + "if b else c " * 8000 + "}}",
    "{% set s = 'a.' * 100000 %}{{ range(20000) | map(attribute=s, default={}) | list }}",
    "{% set s = 'a' * 1000000 %}{% for i in range(99999) %}{% for j in range(999) %}{{ [1] | map(attribute=s) | first }}{% endfor %}{% endfor %}",
    "{% set s = '0' * 4000000 %}{% for i in range(99999) %}{% for j in range(999) %}{{ s | int }}{% endfor %}{% endfor %}",
    "{% set s = 'a,' * 4000 %}{{ range(9999) | sort(attribute=s) }}",
    "{% set s = '{}' * 90000 %}{% set l = [1] * 90000 %}{{ s.format(*l) }}",
    "{% for i in range(99999) %}{% for j in range(999) %}{% if 1.1e308 ~ '' == '' %}{% endif %}{% endfor %}{% endfor %}",
    "{% set s = 'a' * 8000000 %}{% for i in range(3000000) %}{{ s[s] }}{% endfor %}",
    "{% set s = '0' * 4000000 %}{% for i in range(3000000) %}{{ [[1]] | map(attribute=s) }}{% endfor %}",
    "{% set s %}{% for i in range(300000) %}a{{ i }}{% endfor %}{% endset %}{% for i in range(2000000) %}{{ s[0:2:2] }}{% endfor %}",
    "{% set s = 'a' * 4000000 %}{% set t = 'a' * 4000000 %}{% for i in range(3000000) %}{{ 'x' if s.replace(s, t) }}{% endfor %}",
    "{% macro m("
    + ", ".join(f"p{i}=0" for i in range(4000))
    + ") %}{% endmacro %}{% for i in range(9999) %}{{ m("
    + ", ".join(f"q{i}=0" for i in range(4000))
    + ") }}{% endfor %}",
    "".join(f"{{{{ a{i * 7919 % 40009} }}}}" for i in range(40000)),
    "{# " + "x" * 99000,
    "{" * 99000,
]

RUN = """
import resource, sys
from ggtok.native import jinja
from ggtok.errors import GGTokError
resource.setrlimit(resource.RLIMIT_AS, ({memory}, {memory}))
source = sys.stdin.read()
for dialect in ("llama.cpp", "transformers"):
    try:
        print(dialect, len(jinja.compile(source, dialect).render({{}}).text))
    except GGTokError as e:
        print(dialect, type(e).__name__, str(e)[:80])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
@pytest.mark.parametrize(
    "source",
    [attack if n % 3 == 0 else full(attack) for n, attack in enumerate(ATTACKS)],
    ids=lambda source: source[:48].replace("\t", " "),
)
def test_attacks_end_within_their_budget(source: str) -> None:
    program = RUN.format(memory=MEMORY)
    completed = subprocess.run(
        [sys.executable, "-c", program], input=source, capture_output=True, text=True, timeout=LIMIT
    )
    assert completed.returncode == 0, completed.stderr[-500:]
    assert len(completed.stdout.splitlines()) == 2 and "OutOfMemory" not in completed.stdout, (
        completed.stdout
    )
