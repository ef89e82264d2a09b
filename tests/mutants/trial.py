"""Builds each mutant in a scratch copy, and runs the tests that reach it."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.mutants.groups import (
    PYTEST,
    compile_module,
    copy_checkout,
    environment,
    group_of,
    plain_tests,
)
from tests.mutants.mutant import Mutant
from tests.mutants.reach import Reach
from tests.mutants.sources import ROOT

MEMORY = 4 << 30  # bytes; a run whose processes use more memory counts as failed
HANG = 30  # seconds; a test fails if it takes longer than this and than ten times its usual time
WHOLE = 20  # seconds; groups that take less continue after a failure, to find all failures


class Trial:
    def __init__(self, work: Path, enough: int, most: int, end: float) -> None:
        self.work, self.enough, self.most, self.end = work, enough, most, end
        self.reach = Reach(work)
        self.copy = copy_checkout(work / "copy")
        compile_module(self.copy, "plain").check_returncode()
        self.module = self.copy / "ggtok" / "_ffi.abi3.so"
        self.original = self.module.read_bytes()
        self.plain = plain_tests(self.copy)
        self.sampling = {  # files whose tests run more cases with --full
            name
            for name in {test["file"] for test in self.reach.tests.values()}
            if (self.copy / name).exists() and "samples" in (self.copy / name).read_text("utf-8")
        }

    def __call__(self, mutant: Mutant) -> dict[str, Any]:
        """Tries a mutant. The result's "state" says whether the mutant was dropped, survived, was
        killed, or is unfinished."""
        begin = time.monotonic()
        tests = self.reach.of(mutant)
        result: dict[str, Any] = {"name": mutant.name, "kind": mutant.change.kind}
        with self._mutated(mutant) as dropped:
            if dropped:
                return result | {"state": dropped}
            plain = self.run(tests & self.plain, [])
            result["plain"] = plain
            if plain["state"] == "survived":
                more = {name for name in tests if self.reach.tests[name]["file"] in self.sampling}
                result["full"] = self.run((tests - self.plain) | more, ["--full"])
        self._confirm(plain, [])
        if "full" in result:
            self._confirm(result["full"], ["--full"])
        last = result.get("full", plain)
        result["state"] = last["state"] if tests else "not reached"
        return result | {"seconds": round(time.monotonic() - begin)}

    @contextlib.contextmanager
    def _mutated(self, mutant: Mutant) -> Any:
        """Applies the mutant to the copy during a `with` block. Yields "" or, if the mutant is
        dropped, the reason."""
        path = self.copy / mutant.path
        original = path.read_bytes()
        path.write_bytes(mutant.apply(original))
        try:
            if path.suffix == ".py":
                Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
                yield ""
            elif compile_module(self.copy, "plain").returncode:
                yield "does not compile"
            elif self.module.read_bytes() == self.original:
                yield "the same object"
            else:
                yield ""
        finally:
            path.write_bytes(original)
            if path.suffix == ".py":
                Path(importlib.util.cache_from_source(path)).unlink(missing_ok=True)
            else:
                self.module.unlink(missing_ok=True)  # a process may still have it mapped
                self.module.write_bytes(self.original)

    def _confirm(self, run: dict[str, Any], flags: list[str]) -> None:
        """If one or two tests failed, repeats them without the mutant, and discards failures that
        recur."""
        failed = [name for names in run["failed"].values() for name in names]
        if not 0 < len(failed) <= 2:
            return
        recurring = self.run({name for name in failed if "::" in name}, flags)["failed"]
        if recurring:
            run["unreliable"] = recurring
            run["failed"] = {
                group: names for group, names in run["failed"].items() if group not in recurring
            }
            run["state"] = "killed" if run["failed"] else "unfinished"

    def run(self, tests: Iterable[str], flags: list[str]) -> dict[str, Any]:
        """Runs the tests, at most `most` of each group, starting with the cheapest group.

        In the result, `reached` has the number of tests by group, `ran` the groups whose tests ran,
        and `failed` the failed tests by group.
        """
        reached: dict[str, list[str]] = defaultdict(list)
        for name in sorted(tests):
            reached[group_of(name)].append(name)
        seconds = {
            name: self.reach.tests[name]["seconds"]
            for names in reached.values()
            for name in random.Random(1).sample(names, min(self.most, len(names)))
        }
        by_group: dict[str, list[str]] = defaultdict(list)
        for name in sorted(seconds, key=lambda name: (seconds[name], name)):
            by_group[group_of(name)].append(name)
        cost = {group: sum(seconds[name] for name in names) for group, names in by_group.items()}
        order = [name for group in sorted(cost, key=lambda g: cost[g]) for name in by_group[group]]
        folder = self.work / "run"
        shutil.rmtree(folder, ignore_errors=True)
        for name in ("failed", "ran"):
            (folder / name).mkdir(parents=True)
        whole = [group for group in cost if cost[group] < WHOLE]
        limit = min(120 + 8 * sum(seconds.values()), self.end - time.time())
        hang = {name: max(HANG, 10 * seconds[name]) for name in order}
        state = "survived"
        while order and state == "survived":
            plan = {"tests": order, "whole": whole, "enough": self.enough, "hang": hang}
            (folder / "tests.json").write_text(json.dumps(plan), "utf-8")
            ended = self._pytest(folder, order, flags, limit)
            if ended == "time":
                state = "unfinished"
            if ended in ("time", "finished"):
                break
            _note_end(folder, by_group)
            failed = {path.name for path in (folder / "failed").iterdir()}
            order = [name for name in order if group_of(name) not in failed]
            order = order if len(failed) < self.enough else []
        failures = {
            path.name: path.read_text("utf-8").splitlines()
            for path in sorted((folder / "failed").iterdir())
        }
        return {
            "reached": {group: len(names) for group, names in reached.items()},
            "ran": sorted(path.name for path in (folder / "ran").iterdir()),
            "failed": failures,
            "state": "killed" if failures else state,
        }

    def _pytest(self, folder: Path, order: list[str], flags: list[str], limit: float) -> str:
        """Runs pytest in one process. Returns how the process ended: "finished", "time", "memory"
        or an exit status."""
        files = sorted({name.partition("::")[0] for name in order})
        command = [sys.executable, "-m", "pytest", *PYTEST, "-p", "tests.mutants.selection"]
        command += ["-n", "0", "--timeout=0", "-o", "faulthandler_timeout=0"]
        command += ["--continue-on-collection-errors", *flags, *files]
        for name in ("current", "finished"):
            (folder / name).unlink(missing_ok=True)
        more = environment(self.copy, GGTOK_MUTANTS_TESTS=str(folder / "tests.json"))
        with (folder / "log").open("ab") as log:
            child = subprocess.Popen(
                command, cwd=self.copy, env=more, stdout=log, stderr=log, start_new_session=True
            )
        begin = time.monotonic()
        try:
            while child.poll() is None:
                time.sleep(0.5)
                if time.monotonic() - begin > limit:
                    return "time"
                if _memory(child.pid) > MEMORY:
                    return "memory"
            return "finished" if (folder / "finished").exists() else str(child.returncode)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            child.wait()


def _note_end(folder: Path, by_group: dict[str, list[str]]) -> None:
    """Records failures after a crash: that of the current test or, if no test was running, one for
    each group."""
    current = folder / "current"
    where = current.read_text("utf-8") if current.exists() else ""
    for group in [group_of(where)] if where else list(by_group):
        with (folder / "failed" / group).open("a", encoding="utf-8") as file:
            file.write(f"{where or f'tests/{group}'}\n")
        (folder / "ran" / group).touch()


def _memory(session: int) -> int:
    """Returns the resident memory of the session's processes, in bytes."""
    total = 0
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session:
                total += int(fields[21]) * os.sysconf("SC_PAGE_SIZE")
    return total


def commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()
