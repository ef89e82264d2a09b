"""A pytest plugin that runs only the tests that reach a mutant, for `python -m tests.mutants`."""

from __future__ import annotations

import faulthandler
import json
import os
from pathlib import Path

import pytest

from tests.mutants.groups import group_of


class Selection:
    """Runs the tests that a file lists, in that order. After a failure, the rest of the group is
    skipped (except in groups listed as `whole`); after enough failed groups, all other groups are
    skipped. Failures are written to failed/GROUP immediately, since a mutant may crash the process.
    A hanging test terminates the process, since it may hang in C code."""

    def __init__(self, path: Path) -> None:
        plan = json.loads(path.read_text("utf-8"))
        self.order = {test: i for i, test in enumerate(plan["tests"])}
        self.folder = path.parent / "failed"
        self.whole: list[str] = plan["whole"]  # groups that continue after a failure
        self.enough: int = plan["enough"]
        self.hang: dict[str, float] = plan["hang"]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> None:
        chosen = [item for item in items if item.nodeid in self.order]
        others = [item for item in items if item.nodeid not in self.order]
        config.hook.pytest_deselected(items=others)
        items[:] = sorted(chosen, key=lambda item: self.order[item.nodeid])

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> None:
        failed = {path.name for path in self.folder.iterdir()}
        group = group_of(item.nodeid)
        if group in failed and group not in self.whole:
            pytest.skip("a test of its group failed")
        if len(failed) >= self.enough and group not in failed:
            pytest.skip("enough groups failed")
        (self.folder.parent / "ran" / group).touch()
        (self.folder.parent / "current").write_text(item.nodeid, "utf-8")
        faulthandler.dump_traceback_later(self.hang[item.nodeid], exit=True)

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        faulthandler.cancel_dump_traceback_later()
        if {path.name for path in self.folder.iterdir()} or exitstatus in (0, 5):
            (self.folder.parent / "finished").touch()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._note(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self._note(report)

    def _note(self, report: pytest.TestReport | pytest.CollectReport) -> None:
        if report.failed:
            path = self.folder / group_of(report.nodeid)
            known = path.read_text("utf-8").splitlines() if path.exists() else []
            if report.nodeid not in known:
                path.write_text("\n".join([*known, report.nodeid]) + "\n", "utf-8")


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(Selection(Path(os.environ["GGTOK_MUTANTS_TESTS"])))
