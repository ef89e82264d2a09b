"""The groups of tests, the time that each group takes, and the scratch copies in which they run."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
MODES = {"plain": [], "full": ["--full"]}
PYTEST = ["-q", "-p", "no:cacheprovider", "--no-header", "--tb=no"]


def group_of(test: str) -> str:
    """Returns a test's group: its folder in tests/, or its file if that is directly in tests/."""
    return test.partition("::")[0].split("/")[1]


def groups() -> list[str]:
    tests = (ROOT / "tests").rglob("test_*.py")
    return sorted({group_of(path.relative_to(ROOT).as_posix()) for path in tests})


def copy_checkout(folder: Path) -> Path:
    """Copies the checkout's files, except files that git ignores."""
    shutil.rmtree(folder, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    return folder


def environment(copy: Path, **more: str) -> dict[str, str]:
    """Returns an environment in which Python imports the package and the tests from the copy."""
    return {**os.environ, "PYTHONPATH": str(copy), **more}


def compile_module(copy: Path, how: str) -> subprocess.CompletedProcess[bytes]:
    """Compiles a copy's C module in place. `how` is "plain" or "reach"."""
    command = [sys.executable, "-m", "tests.mutants.compile", how]
    return subprocess.run(command, cwd=copy, env=environment(copy), capture_output=True)


def plain_tests(copy: Path) -> set[str]:
    """Returns the tests that run without --full."""
    command = [sys.executable, "-m", "pytest", *PYTEST, "-n", "0", "--collect-only"]
    shown = subprocess.run(
        command, cwd=copy, env=environment(copy), stdout=subprocess.PIPE, text=True
    )
    return {line for line in shown.stdout.splitlines() if "::" in line}


def measure(work: Path) -> None:
    """Runs each group separately, and writes its wall-clock and processor time, in seconds, to
    work/costs.json."""
    copy = copy_checkout(work / "costs")
    compile_module(copy, "plain").check_returncode()
    path = work / "costs.json"
    costs = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for mode, flags in MODES.items():
        for group in groups():
            command = [sys.executable, "-m", "pytest", *PYTEST, "-n", "2", *flags, f"tests/{group}"]
            command.append(f"--junitxml={copy / 'junit.xml'}")
            before, begin = os.times(), time.monotonic()
            subprocess.run(command, cwd=copy, env=environment(copy), stdout=subprocess.DEVNULL)
            after, wall = os.times(), time.monotonic() - begin
            used = after.children_user - before.children_user
            used += after.children_system - before.children_system
            costs.setdefault(group, {})[mode] = {
                "wall": round(wall, 1),
                "processor": round(used, 1),
            }
            path.write_text(json.dumps(costs, indent=1), "utf-8")
            _keep_seconds(copy / "junit.xml", work / "seconds.json")
            print(f"{group:20} {mode:5} {wall:7.1f} s, {used:7.1f} s of processors", flush=True)


def _keep_seconds(junit: Path, path: Path) -> None:
    """Adds the seconds that each test took, from pytest's report, to the file at `path`."""
    seconds = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for case in ElementTree.parse(junit).iter("testcase"):
        file = case.attrib["classname"].replace(".", "/")
        seconds[f"{file}.py::{case.attrib['name']}"] = float(case.attrib["time"])
    path.write_text(json.dumps(seconds), "utf-8")
