"""The changes that `python -m tests.mutants` generates."""

from __future__ import annotations

import ast
import itertools

from tests.mutants import c_code, python_code
from tests.mutants.mutant import Change, Mutant, sample
from tests.mutants.sources import LANGUAGES, ROOT, files

C = b"""\
/* if (a < 1) */
#define TWICE(x) \\
    ((x) + 2)
static const int table[] = {1, 2};
static int f(const char *s, int n) {
    int sum = 0; // 3 < 4
    for (int i = 0; i < n; i++)
        sum += s[i] == '1' && true;
    if (n > sum)
        g("a < 5");
    return sum * n;
}
"""
PYTHON = b'''\
"""1 < 2"""
LIMIT = 8


def f(a: int = 1, *, b: "x < 3" = None) -> list[4]:
    """3 < 4"""
    # 5 < 6
    while a < b and f"{a + 7}":
        a += 1
    return a - b
'''


def shown(source: bytes, changes: itertools.chain[Change]) -> set[tuple[int, str, str, str]]:
    return {
        (change.line, change.kind, source[change.start : change.end].decode(), change.new.decode())
        for change in changes
    }


def test_only_code_in_c_functions_is_changed() -> None:
    """Comments, strings, preprocessor lines and tables aren't changed."""
    assert shown(C, c_code.changes(C)) == {
        (6, "constant", "0", "1"),
        (7, "constant", "0", "1"),
        (7, "comparison", "<", "<="),
        (7, "comparison", "<", ">="),
        (8, "statement", "sum += s[i] == '1' && true;", ";"),
        (8, "arithmetic", "+=", "-="),
        (8, "comparison", "==", "!="),
        (8, "boolean", "&&", "||"),
        (8, "constant", "true", "false"),
        (9, "negation", "n > sum", "!(n > sum)"),
        (9, "comparison", ">", ">="),
        (9, "comparison", ">", "<="),
        (10, "statement", 'g("a < 5");', ";"),
        (11, "return", "return sum * n;", "return 0;"),
        (11, "arithmetic", "*", "+"),
    }


def test_only_executed_python_code_is_changed() -> None:
    """Comments, docstrings, annotations and f-strings aren't changed."""
    assert shown(PYTHON, python_code.changes(PYTHON)) == {
        (2, "constant", "8", "9"),
        (2, "constant", "8", "7"),
        (5, "constant", "1", "2"),
        (5, "constant", "1", "0"),
        (8, "negation", 'a < b and f"{a + 7}"', '(not (a < b and f"{a + 7}"))'),
        (8, "boolean", "and", "or"),
        (8, "comparison", "<", "<="),
        (8, "comparison", "<", ">="),
        (9, "statement", "a += 1", "pass"),
        (9, "constant", "1", "2"),
        (9, "constant", "1", "0"),
        (10, "return", "return a - b", "return None"),
        (10, "arithmetic", "-", "+"),
    }
    at_import = {change.line for change in python_code.changes(PYTHON) if change.at_import}
    assert at_import == {2, 5}


def some(language: str) -> list[Mutant]:
    """Returns the mutants of every twentieth file."""
    function = LANGUAGES[language][0]
    return [
        Mutant(path.relative_to(ROOT).as_posix(), "", 0, change)
        for path in files(language)[::20]
        for change in function(path.read_bytes())
    ]


def test_python_mutants_are_python() -> None:
    for mutant in some("python")[::10]:
        ast.parse(mutant.apply((ROOT / mutant.path).read_bytes()))


def test_braces_of_c_mutants_are_balanced() -> None:
    for mutant in some("c")[::200]:
        texts = [
            token.text for token in c_code.tokens(mutant.apply((ROOT / mutant.path).read_bytes()))
        ]
        for a, b in ("()", "[]", "{}"):
            assert texts.count(a.encode()) == texts.count(b.encode()), mutant


def test_a_seed_decides_the_order_and_kinds_take_turns() -> None:
    found = some("python")
    first = [mutant.change for mutant in itertools.islice(sample(found, 36), 50)]
    assert first == [mutant.change for mutant in itertools.islice(sample(found, 36), 50)]
    assert first != [mutant.change for mutant in itertools.islice(sample(found, 37), 50)]
    kinds = [change.kind for change in first]
    assert len(set(kinds[:7])) == 7 and kinds[:7] == kinds[7:14]
