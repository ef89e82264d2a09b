"""Every filter, test and method in jinja2's tables, with arguments of each kind: the result is
jinja2's, or both fail.

Claim jinja.2.
"""

from __future__ import annotations

import random

from jinja2 import filters, tests

from tests.chat import fuzz_jinja, jinja_references, jinja_tables
from tests.chat.jinja_grammar import VALUES

LEFT_OUT = {"pprint", "random", "striptags", "urlize", "wordwrap", "xmlattr"}
UNLISTED = set(
    "encode expandtabs format format_map isdecimal isdigit isidentifier isnumeric isprintable "
    "maketrans translate append clear extend insert pop remove reverse sort fromkeys popitem "
    "setdefault update".split()
)


def test_the_tables_are_jinja2s() -> None:
    assert set(jinja_tables.FILTERS) | LEFT_OUT == set(filters.FILTERS)
    assert set(jinja_tables.TESTS) == {name for name in tests.TESTS if name.isalpha()}
    for kind in (str, list, dict):
        public = {name for name in dir(kind) if not name.startswith("_")}
        assert set(jinja_tables.METHODS[kind.__name__]) == public - UNLISTED


def test_random_calls_equal_jinja2() -> None:
    r = random.Random(0)
    for _ in range(1200):
        source = f"{{{{ {jinja_tables.expression(r)} }}}}"
        theirs = jinja_references.transformers(source, VALUES)
        mine = jinja_references.ggtok_answer(source, VALUES, "transformers")
        assert not fuzz_jinja.differs(source, theirs, mine, "transformers"), (source, theirs, mine)
