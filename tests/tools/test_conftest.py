"""How pytest starts: what it imports, and how many processes it uses."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import pytest_xdist_auto_num_workers

TESTS = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    ("arguments", "workers"),
    [
        (["tests/python/test_bools.py"], 0),
        (["tests/python/test_bools.py::test_a", "tests/python/test_bools.py::test_b[x::y]"], 0),
        (["tests/python/test_bools.py", "tests/test_no_clocks.py"], None),
        (["tests/python"], None),
    ],
)
def test_a_single_file_starts_no_workers(arguments: list[str], workers: int | None) -> None:
    """None: as many as xdist chooses."""
    given = SimpleNamespace(args=arguments, invocation_params=SimpleNamespace(dir=TESTS.parent))
    assert pytest_xdist_auto_num_workers(cast(pytest.Config, given)) == workers


def test_tests_of_the_sources_need_no_build() -> None:
    program = """if True:
        import sys
        sys.modules["ggtok._ffi"] = None
        import tests.conftest, tests.test_architecture, tests.test_no_clocks
    """
    subprocess.run([sys.executable, "-c", program], cwd=TESTS.parent, check=True)
