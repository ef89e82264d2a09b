"""Fixtures and options for all tests."""

from __future__ import annotations

import contextlib
import gc
import os
import platform
import random
import signal
import sys
import sysconfig
import tempfile
import warnings
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.c.build import STEPS
from tests.support import samples
from tests.support.programs import Build, builder
from tests.support.work import Measure, measure

if TYPE_CHECKING:  # imported by fixtures only, so that some tests run without the compiled module
    import ggtok
    from tests.support.llamacpp import LlamaCpp

TESTS = Path(__file__).resolve().parent

# Shells start background jobs with SIGINT ignored, and the tests' child processes would inherit
# that setting.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)


# No deadline for Hypothesis: how long an example takes depends on the machine's load.
settings.register_profile("ggtok", deadline=None)
settings.load_profile("ggtok")

# Files and folders in which all tests are slow, or need packages that the extra `test` lacks.
FULL = {
    "adapters/test_constrained.py",
    "arrow/test_libraries.py",
    "c/test_capi.py",
    "distributed/test_recipes.py",
    "making/convert",
    "making/test_patterns.py",
    "package",
    "server/test_clients.py",
    "server/test_clients_live.py",
    "web/test_page_access.py",
    "web/test_page_compare.py",
    "web/test_page_firefox.py",
    "web/test_page_hostile.py",
    "web/test_page_map.py",
    "web/test_page_models.py",
    "web/test_page_sharing.py",
    "web/test_page_text.py",
    "web/test_page_views.py",
    "web/test_page_vocabulary.py",
    "web/test_page_why.py",
}


def pytest_addoption(parser: pytest.Parser) -> None:
    add = parser.getgroup("ggtok").addoption
    add("--full", action="store_true", help="run every test, and every case of sampled tests")
    add(
        "--sample",
        type=float,
        metavar="SHARE",
        help="run only a random share (up to 1) of the tests that need --full",
    )
    add(
        "--thin",
        type=int,
        default=1,
        metavar="N",
        help="run only a random one in N of a test's cases, but at least one of each test",
    )
    add("--sample-seed", type=int, default=0, metavar="SEED", help="the seed of --sample, --thin")


def pytest_configure(config: pytest.Config) -> None:
    full, share = config.getoption("--full"), config.getoption("--sample")
    if share is not None and (full or not 0 < share <= 1):
        raise pytest.UsageError("--sample takes a share above 0, up to 1, and excludes --full")
    samples.FULL = full or share is not None
    samples.THIN, samples.SEED = config.getoption("--thin"), config.getoption("--sample-seed")
    # Most fixtures are odd on purpose; tests of warnings expect them with pytest.warns. Without the
    # compiled module, pytest couldn't find this class.
    with contextlib.suppress(ImportError):
        import ggtok  # noqa: F401

        config.addinivalue_line("filterwarnings", "ignore::ggtok.VocabWarning")
    if sys.dont_write_bytecode:
        _share_bytecode(config)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Starts no workers for a single file, since each would import everything again; otherwise one
    more than there are processors, since many tests mostly wait."""
    files = {config.invocation_params.dir / arg.split("::")[0] for arg in config.args}
    if len(files) == 1 and files.pop().is_file():
        return 0
    if "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    affinity = getattr(os, "sched_getaffinity", None)
    return (len(affinity(0)) if affinity else os.cpu_count() or 1) + 1


def _share_bytecode(config: pytest.Config) -> None:
    """Makes all processes of this and later test runs store compiled modules in pytest's cache.

    If Python may not write them next to the sources, each of the hundreds of processes that tests
    start would otherwise compile every module that it imports."""
    try:
        folder = str(config.cache.mkdir("bytecode"))  # type: ignore[union-attr]
    except (AttributeError, OSError):  # pytest -p no:cacheprovider, or a folder that is read-only
        temporary = tempfile.TemporaryDirectory(
            prefix="ggtok-bytecode-", ignore_cleanup_errors=True
        )
        config.add_cleanup(temporary.cleanup)
        folder = temporary.name
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.pycache_prefix = os.environ["PYTHONPYCACHEPREFIX"] = folder
    sys.dont_write_bytecode = False


@cache
def _is_full(path: Path) -> bool:
    return any((TESTS / name) in (path, *path.parents) for name in FULL)


def pytest_ignore_collect(collection_path: Path) -> bool | None:
    return None if samples.FULL else _is_full(collection_path) or None


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the tests that need --full. With --sample, keeps only a random share of them; with
    --thin, only some cases of each test."""
    share = config.getoption("--sample")
    rng = random.Random(config.getoption("--sample-seed"))

    def runs(item: pytest.Item) -> bool:
        if config.getoption("--full"):
            return True
        compiles = "c_program" in getattr(item, "fixturenames", ())
        full = compiles or _is_full(item.path) or item.get_closest_marker("full") is not None
        return full and rng.random() < share if share else not full

    chosen = _thinned([item for item in items if runs(item)], config.getoption("--thin"), rng)
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def _thinned(items: list[pytest.Item], n: int, rng: random.Random) -> list[pytest.Item]:
    """Returns one in n of the cases of each test, at random, but at least one."""
    cases: dict[str, list[pytest.Item]] = {}
    for item in items:
        cases.setdefault(item.nodeid.split("[")[0], []).append(item)
    kept = {item for same in cases.values() for item in rng.sample(same, -(-len(same) // n))}
    return [item for item in items if item in kept]


def pytest_collection_finish() -> None:
    """Exempts modules and collected tests from garbage collection: they live until the end."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    ran = {"passed", "failed", "error"} & terminalreporter.stats.keys()
    if not samples.FULL and not ran and not terminalreporter.config.option.collectonly:
        terminalreporter.write_line("no test ran: some need --full (CONTRIBUTING.md)")


@pytest.fixture(scope="session")
def llama() -> Iterator[LlamaCpp]:
    """Starts llama.cpp, the live reference. Its wheel exists for only one platform."""
    here = sys.platform, platform.machine(), platform.libc_ver()[0]
    if here != ("linux", "x86_64", "glibc") or sysconfig.get_config_var("Py_GIL_DISABLED"):
        pytest.skip("the reference's wheel is for CPython with a GIL, Linux on x86-64, glibc")
    from tests.support.llamacpp import LlamaCpp

    with LlamaCpp() as process:
        yield process


@cache
def _load_fixture(name: str) -> ggtok.Tokenizer:
    import ggtok
    from tests.support.vocabularies import fixture

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture(name))


@pytest.fixture(scope="session")
def load_fixture() -> Callable[[str], ggtok.Tokenizer]:
    """Returns a function that loads a fixture by name and caches it."""
    return _load_fixture


@pytest.fixture(scope="session")
def c_program(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """Returns a function that builds one of the programs in tests/c: `c_program("capi", "-O2")`."""
    return builder(tmp_path_factory)


@pytest.fixture(scope="session")
def work(c_program: Build, tmp_path_factory: pytest.TempPathFactory) -> Measure:
    """Returns a function that counts the steps of loading a file and encoding texts."""
    return measure(c_program("work", *STEPS), tmp_path_factory.mktemp("work"))
