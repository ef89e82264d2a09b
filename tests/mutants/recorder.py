"""A pytest plugin that records which code each test reaches, for `python -m tests.mutants`.

A fixture that several tests share is recorded as "FIXTURE of FILE", and applies to every test that
uses it. Similarly, code that runs when a file is imported applies to all tests in the file. Slow
tests, tests that compile C programs, and most cases of tests with many cases are skipped.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import json
import os
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import coverage
import numpy as np
import pytest

import ggtok._ffi

SLOW = 1  # seconds; slower tests aren't measured
MANY, ONE_IN = 24, 4  # of a test with more than MANY cases, every ONE_IN-th is measured


class Recorder:
    """Records which blocks of the C module each test reaches, and sets coverage.py's context so
    that it records the same for lines of Python."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.module = ctypes.CDLL(ggtok._ffi.__file__)
        self.counters = np.zeros(self.module.reach_n_blocks(), np.uint8)
        self.blocks: dict[str, np.ndarray[Any, Any]] = {}
        self.tests: dict[str, dict[str, Any]] = {}
        self.shared: dict[str, str] = {}  # recorded name -> fixture that several tests share
        self.now = [""]
        self.caches: list[Any] = []
        self.unmeasured: set[str] = set()
        known = folder.parent.parent / "seconds.json"
        self.seconds = json.loads(known.read_text("utf-8")) if known.exists() else {}

    def take(self) -> None:
        """Records that the current test reached the blocks that ran since the last call."""
        self.module.reach_take(self.counters.ctypes.data_as(ctypes.c_void_p))
        reached = np.packbits(self.counters != 0)
        name = self.now[-1]
        self.blocks[name] = self.blocks.get(name, 0) | reached

    def within(self, name: str) -> Generator[None, Any, Any]:
        self.take()
        self._switch([*self.now, name])
        try:
            return (yield)
        finally:
            self.take()
            self._switch(self.now[:-1])

    def _switch(self, names: list[str]) -> None:
        self.now = names
        if running := coverage.Coverage.current():
            running.switch_context(names[-1])
            running.config.context = names[-1]  # for the coverage of child processes
            os.environ["COVERAGE_PROCESS_CONFIG"] = running.config.serialize()

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Generator[None, Any, Any]:
        if isinstance(collector, pytest.Module):
            return (yield from self.within(collector.nodeid))
        return (yield)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        cases = defaultdict(list)
        for item in session.items:
            cases[item.nodeid.partition("[")[0]].append(item.nodeid)
        self.unmeasured = {
            name
            for names in cases.values()
            if len(names) > MANY
            for i, name in enumerate(names)
            if i % ONE_IN
        }
        self.caches = [
            found
            for found in gc.get_objects()
            if isinstance(found, functools._lru_cache_wrapper)
            and getattr(found, "__module__", "").startswith("tests.")
        ]

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        if not self.tests[item.nodeid]["measured"]:
            pytest.skip("not measured")

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Function) -> Generator[None, Any, Any]:
        for cached in self.caches:  # otherwise only the first test would run cached functions
            cached.cache_clear()
        file = item.nodeid.partition("::")[0]
        builds = file.startswith("tests/c/") or "c_program" in item.fixturenames
        slow = self.seconds.get(item.nodeid, 0) > SLOW
        self.tests[item.nodeid] = {
            "seconds": 0.0,
            "passed": True,
            "fixtures": [*item.fixturenames],
            "file": file,
            "builds": builds,
            "measured": not builds and not slow and item.nodeid not in self.unmeasured,
        }
        return (yield from self.within(item.nodeid))

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any, request: Any) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        name = f"{fixturedef.argname} of {fixturedef.baseid}"
        self.shared[name] = fixturedef.argname
        return (yield from self.within(name))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        test = self.tests[report.nodeid]
        if test["measured"]:
            test["seconds"] += report.duration
            test["passed"] &= report.passed
        else:
            test["seconds"] = self.seconds.get(report.nodeid, 0.1)

    def pytest_sessionfinish(self) -> None:
        self.take()
        for path in self.folder.glob("*.counters"):
            name, _, counters = path.read_bytes().partition(b"\0")
            test = name.decode().rpartition(" (")[0]
            if len(counters) == len(self.counters):
                reached = np.packbits(np.frombuffer(counters, np.uint8) != 0)
                self.blocks[test] = self.blocks.get(test, 0) | reached
            path.unlink()
        names = list(self.blocks)
        np.save(self.folder / "blocks.npy", np.array([self.blocks[name] for name in names]))
        facts = {"names": names, "tests": self.tests, "shared": self.shared}
        (self.folder / "tests.json").write_text(json.dumps(facts), "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Recorder(Path(os.environ["GGTOK_MUTANTS_REACH"])))
