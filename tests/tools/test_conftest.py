"""How pytest starts: what it imports, and how many processes it uses."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tests.conftest import pytest_xdist_auto_num_workers

TESTS = Path(__file__).resolve().parents[1]


def workers(*arguments: str) -> int | None:
    given = SimpleNamespace(args=arguments, invocation_params=SimpleNamespace(dir=TESTS.parent))
    return pytest_xdist_auto_num_workers(cast(pytest.Config, given))


def test_a_single_file_starts_no_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 3}, raising=False)
    file = "tests/python/test_bools.py"
    assert workers(file) == workers(f"{file}::test_a", f"{file}::test_b[x::y]") == 0
    assert workers(file, "tests/test_no_clocks.py") == workers("tests/python") == 3
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "7")
    assert workers("tests/python") is None  # as many as xdist chooses: 7


def test_tests_of_the_sources_need_no_build() -> None:
    program = """if True:
        import sys
        sys.modules["ggtok._ffi"] = None
        import tests.conftest, tests.test_architecture, tests.test_no_clocks
    """
    subprocess.run([sys.executable, "-c", program], cwd=TESTS.parent, check=True)
