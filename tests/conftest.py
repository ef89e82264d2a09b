"""Fixtures that several test files share."""

from __future__ import annotations

import platform
import signal
import sys
import sysconfig
import warnings
from collections.abc import Callable, Iterator
from functools import cache

import pytest

import ggtok
from tests.support import samples
from tests.support.llamacpp import LlamaCpp
from tests.support.programs import Build, builder
from tests.support.vocabularies import fixture

# Shells start background jobs with SIGINT ignored, which the programs of the tests would inherit.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--full",
        action="store_true",
        help="also run the tests marked `full`, and try every case where others try a sample",
    )


def pytest_configure(config: pytest.Config) -> None:
    samples.FULL = config.getoption("--full")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out the tests marked `full`, unless `--full` is given."""
    if samples.FULL:
        return
    deselected = [item for item in items if item.get_closest_marker("full")]
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = [item for item in items if not item.get_closest_marker("full")]


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
