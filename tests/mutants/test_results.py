"""The files that `python -m tests.mutants` reads, and its output."""

from __future__ import annotations

from tests.mutants.reach import _rows
from tests.mutants.table import Table

LINES = """\
debug_line[0x00000000]
include_directories[  0] = "/somewhere"
include_directories[  1] = "cext"
file_names[  0]:
           name: "cext/base/mem.c"
      dir_index: 0
file_names[  1]:
           name: "base/mem.h"
      dir_index: 1

Address            Line   Column File   ISA Discriminator Flags
------------------ ------ ------ ------ --- ------------- -------------
0x0000000000001120      1      0      0   0             0  is_stmt
0x000000000000112a     20     11      1   0             0
"""


def test_line_tables_are_parsed() -> None:
    assert list(_rows(LINES)) == [("cext/base/mem.c", 1, 0x1120), ("cext/base/mem.h", 20, 0x112A)]


def run(**failed: list[str]) -> dict[str, object]:
    return {"ran": ["chat", "cli"], "failed": failed}


def test_the_table_counts_the_tests_that_run_without_full_now() -> None:
    results = [
        {"name": "cext/a.c:1:1: a -> b", "plain": run(chat=["tests/chat/test_a.py::a"])},
        {
            "name": "cext/a.c:2:1: a -> b",
            "plain": run(),
            "full": run(cli=["tests/cli/test_b.py::b"]),
        },
        {"name": "ggtok/a.py:1:1: a -> b", "plain": run()},
        {"name": "ggtok/a.py:2:1: a -> b", "state": "the same object"},
    ]
    seconds = {"tests/chat/test_a.py::a": 1.6, "tests/cli/test_b.py::b": 3.0}
    table = Table(results, {"tests/chat/test_a.py::a"}, seconds, {})
    assert str(table).splitlines()[2:] == [
        "| chat | 2 | 2 | 3 | 1 | 1 | 1 |",
        "| cli | 0 | 3 | 3 | 0 | 1 | 1 |",
        "",
        "C: 2 mutants; `pytest` finds 1, `pytest --full` 2.",
        "Python: 1 mutants; `pytest` finds 0, `pytest --full` 0.",
    ]
