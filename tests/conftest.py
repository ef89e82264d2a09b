"""Fixtures that several test files share."""

from __future__ import annotations

import platform
import random
import signal
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

import ggtok
from tests.c.build import STEPS
from tests.support import samples
from tests.support.llamacpp import LlamaCpp
from tests.support.programs import Build, builder
from tests.support.vocabularies import fixture
from tests.support.work import Measure, measure

TESTS = Path(__file__).resolve().parent

# Shells start background jobs with SIGINT ignored, which the programs of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# Files and folders whose tests all need what the extra `test` lacks, or all run at length.
FULL = {
    "adapters/test_constrained.py",
    "arrow/test_libraries.py",
    "c/test_capi.py",
    "distributed/test_recipes.py",
    "making/convert",
    "making/test_patterns.py",
    "package",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("ggtok").addoption
    add("--full", action="store_true", help="every test, and every case that others sample")
    add(
        "--sample",
        type=float,
        metavar="SHARE",
        help="of the tests that only --full runs, this share, drawn at random, and no others",
    )
    add("--sample-seed", type=int, default=0, metavar="SEED", help="what to draw them by")


def pytest_configure(config: pytest.Config) -> None:
    samples.FULL = config.getoption("--full") or bool(config.getoption("--sample"))


def _is_full(path: Path) -> bool:
    return any((TESTS / name) in (path, *path.parents) for name in FULL)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if config.getoption("--full") or config.getoption("--sample"):
        return None
    return _is_full(collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests marked `full`, unless `--full` is given."""
    share = config.getoption("--sample")
    if config.getoption("--full"):
        return
    drawn = random.Random(config.getoption("--sample-seed"))

    def runs(item: pytest.Item) -> bool:
        full = _is_full(item.path) or item.get_closest_marker("full") is not None
        return full and drawn.random() < share if share else not full

    chosen = [item for item in items if runs(item)]
    if len(chosen) < len(items):
        config.hook.pytest_deselected(items=[item for item in items if item not in set(chosen)])
        items[:] = chosen


@pytest.fixture(scope="session")
def llama() -> Iterator[LlamaCpp]:
    """The live reference, whose wheel is made for one platform only."""
    here = sys.platform, platform.machine(), platform.libc_ver()[0]
    if here != ("linux", "x86_64", "glibc") or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("the reference's wheel is for CPython with a GIL, Linux on x86-64, glibc")
    with LlamaCpp() as process:
        yield process


@cache
def _load_fixture(name: str) -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture(name))


@pytest.fixture(scope="session")
def load_fixture() -> Callable[[str], ggtok.Tokenizer]:
    """Loads one of this project's small vocabularies by name, once."""
    return _load_fixture


@pytest.fixture(scope="session")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Builds one of tests/c's programs: `c_program("capi", "-O2")`."""
    return builder(tmp_path_factory)


@pytest.fixture(scope="session")
def work(c_program: Build, tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Counts the steps that a file and texts take."""
    return measure(c_program("work", *STEPS), tmp_path_factory.mktemp("work"))
