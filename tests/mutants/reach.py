"""Finds the tests that reach a line. All tests are measured once, with one process per group."""

from __future__ import annotations

import json
import posixpath
import re
import subprocess
import sys
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from tests.c import build
from tests.mutants.groups import PYTEST, compile_module, copy_checkout, environment, groups
from tests.mutants.mutant import Mutant
from tests.mutants.sources import ROOT

RC = """
[run]
source_pkgs = ggtok
parallel = true
patch = subprocess
    fork
data_file = {data}
"""


def measure(work: Path, processes: int, remeasure: bool = False) -> None:
    """Measures what each test reaches, and writes the result to work/reach/GROUP. Skips groups that
    were already measured, unless `remeasure`."""
    reach = work / "reach"
    missing = [
        group for group in groups() if remeasure or not (reach / group / "tests.json").exists()
    ]
    if not missing:
        return
    copy = copy_checkout(reach / "copy")
    compile_module(copy, "reach").check_returncode()
    _write_lines(copy / "ggtok" / "_ffi.abi3.so", reach)
    with ThreadPoolExecutor(processes) as pool:
        list(pool.map(lambda group: _measure_group(copy, reach / group, group), missing))


def _measure_group(copy: Path, folder: Path, group: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    rc = folder / "coveragerc"
    rc.write_text(RC.format(data=folder / "coverage"), "utf-8")
    command = [sys.executable, "-m", "coverage", "run", f"--rcfile={rc}", "-m", "pytest", *PYTEST]
    more = ["-p", "tests.mutants.recorder", "-n", "0", "--full", "--timeout=0", f"tests/{group}"]
    with (folder / "log").open("wb") as log:
        done = subprocess.run(
            [*command, *more],
            cwd=copy,
            env=environment(copy, GGTOK_MUTANTS_REACH=str(folder)),
            stdout=log,
            stderr=log,
        )
    print(f"reach of {group}: pytest ended with {done.returncode}", flush=True)
    _write_python(copy, folder)


def _write_python(copy: Path, folder: Path) -> None:
    """Writes folder/python.json: for each line of each file, the numbers of the tests that reach
    it."""
    import coverage

    data = coverage.CoverageData(str(folder / "combined"))
    for path in folder.glob("coverage.*"):
        one = coverage.CoverageData(str(path))
        one.read()
        data.update(one)
        path.unlink()
    numbers: dict[str, int] = {}
    files = {
        Path(path).relative_to(copy).as_posix(): {
            line: [numbers.setdefault(name, len(numbers)) for name in names]
            for line, names in data.contexts_by_lineno(path).items()
        }
        for path in data.measured_files()
    }
    found = {"names": list(numbers), "files": files}
    (folder / "python.json").write_text(json.dumps(found), "utf-8")
    for path in folder.glob("combined*"):
        path.unlink()


def _write_lines(module: Path, folder: Path) -> None:
    """Writes folder/lines.json: for each line in cext/, the numbers of the basic blocks that
    contain its code."""
    read = """
import ctypes, json, numpy
import ggtok._ffi
module = ctypes.CDLL(ggtok._ffi.__file__)
blocks = numpy.zeros(module.reach_n_blocks(), numpy.uint64)
base = next(line for line in open("/proc/self/maps") if line.rstrip().endswith("_ffi.abi3.so"))
base = ctypes.c_void_p(int(base.split("-")[0], 16))
module.reach_blocks(base, blocks.ctypes.data_as(ctypes.c_void_p))
print(json.dumps(blocks.tolist()))
"""
    copy = module.parents[1]
    shown = subprocess.run(
        [sys.executable, "-c", read],
        cwd=copy,
        env=environment(copy),
        check=True,
        stdout=subprocess.PIPE,
    )
    blocks = np.array(json.loads(shown.stdout), np.int64)
    order = np.argsort(blocks)
    command = ["llvm-dwarfdump", "--debug-line", str(module)]
    table = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    lines: dict[str, dict[int, set[int]]] = defaultdict(lambda: defaultdict(set))
    for path, line, address in _rows(table):
        at = int(np.searchsorted(blocks[order], address, side="right")) - 1
        if at >= 0 and line and path.startswith("cext/"):
            lines[path][line].add(int(order[at]))
    found = {
        path: {n: sorted(numbers) for n, numbers in rows.items()} for path, rows in lines.items()
    }
    (folder / "lines.json").write_text(json.dumps(found), "utf-8")


def _rows(table: str) -> Any:
    """Yields the file, line and address in each row of a line table."""
    folders: dict[int, str] = {}
    names: dict[int, str] = {}
    number, name = 0, ""
    for text in table.splitlines():
        if text.startswith("debug_line["):
            folders, names = {}, {}
        elif match := re.match(r'include_directories\[\s*(\d+)\] = "(.*)"', text):
            folders[int(match[1])] = match[2]
        elif match := re.match(r"file_names\[\s*(\d+)\]:", text):
            number = int(match[1])
        elif match := re.match(r'\s+name: "(.*)"', text):
            name = match[1]
        elif match := re.match(r"\s+dir_index: (\d+)", text):
            folder = folders.get(int(match[1]), "")
            folder = folder if not folder.startswith("/") else ""
            names[number] = posixpath.normpath(posixpath.join(folder, name))
        elif match := re.match(r"0x([0-9a-f]+)\s+(\d+)\s+\d+\s+(\d+)", text):
            yield names[int(match[3])], int(match[2]), int(match[1], 16)


def _c_files_of_programs() -> set[str]:
    """Returns the files in cext/ from which the programs in tests/c are built, including
    headers."""
    found = {
        path
        for patterns in build.PROGRAMS.values()
        for pattern in patterns
        for path in (ROOT / "cext").glob(pattern)
    }
    headers = {path for source in found for path in source.parent.glob("*.h")}
    return {path.relative_to(ROOT).as_posix() for path in found | headers}


class Reach:
    """The measurements, as sets of tests. Only tests that passed are included."""

    def __init__(self, work: Path) -> None:
        self.tests: dict[str, dict[str, Any]] = {}
        self.python: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        self.lines: dict[str, dict[int, list[int]]] = {
            path: {int(line): blocks for line, blocks in rows.items()}
            for path, rows in json.loads((work / "reach" / "lines.json").read_text()).items()
        }
        self.blocks: list[tuple[list[str], Any]] = []  # per group: recorded names, their blocks
        self.users: dict[str, set[str]] = defaultdict(set)  # recorded name -> its tests
        self.in_programs = _c_files_of_programs()
        for path in sorted((work / "reach").glob("*/tests.json")):
            self._read(path.parent)
        self.building = {name for name, test in self.tests.items() if test["builds"]}

    def _read(self, folder: Path) -> None:
        facts = json.loads((folder / "tests.json").read_text("utf-8"))
        tests = {name: test for name, test in facts["tests"].items() if test["passed"]}
        self.tests |= tests
        for name, test in tests.items():
            self.users[name].add(name)
            self.users[test["file"]].add(name)
        cases: dict[str, list[str]] = defaultdict(list)  # measured cases, by test name and by file
        for name, test in tests.items():
            if test["measured"]:
                cases[name.partition("[")[0]].append(name)
                cases[test["file"]].append(name)
        for name, test in tests.items():
            if not test["measured"] and not test["builds"]:
                # Assume that the test reaches what similar tests reach.
                for other in cases[name.partition("[")[0]] or cases[test["file"]]:
                    self.users[other].add(name)
        for shared, fixture in facts["shared"].items():
            self.users[shared] |= {name for name in tests if fixture in tests[name]["fixtures"]}
        self.blocks.append((facts["names"], np.load(folder / "blocks.npy")))
        python = json.loads((folder / "python.json").read_text("utf-8"))
        users = [self.users.get(name, set()) for name in python["names"]]
        for path, lines in python["files"].items():
            for line, numbers in lines.items():
                self.python[path][int(line)].update(*(users[number] for number in numbers))

    def of(self, mutant: Mutant) -> set[str]:
        """Returns the tests that reach a mutant."""
        if mutant.path.startswith("cext/"):
            return self._of_c(mutant)
        lines = self.python[mutant.path]
        if mutant.change.at_import:
            return set().union(*lines.values(), self._naming(mutant.path)) or set(self.tests)
        within = range(mutant.change.first_line, mutant.change.line + 1)
        return set().union(*(lines[line] for line in within if line in lines))

    def _naming(self, path: str) -> set[str]:
        """Returns the tests in files that mention the module, since such tests may read its
        constants."""
        name = Path(path.removesuffix("/__init__.py")).stem
        files = {test["file"] for test in self.tests.values()}
        naming = {
            file
            for file in files
            if (ROOT / file).exists()
            and re.search(rf"\b{name}\b", (ROOT / file).read_text("utf-8"))
        }
        return {test for test, facts in self.tests.items() if facts["file"] in naming}

    def _of_c(self, mutant: Mutant) -> set[str]:
        lines = self.lines.get(mutant.path, {})
        within = range(mutant.change.first_line, mutant.change.line + 1)
        known = [line for line in within if line in lines]
        if not known:  # the compiler attributed the code to an earlier line
            known = [max((line for line in lines if line < within[0]), default=0)]
        bits = np.zeros(self.blocks[0][1].shape[1], np.uint8)
        for block in {block for line in known for block in lines.get(line, [])}:
            bits[block // 8] |= 0x80 >> block % 8
        found = set(self.building) if mutant.path in self.in_programs else set()
        for names, blocks in self.blocks:
            reached = (blocks & bits).any(axis=1)
            found |= set().union(*(self.users[names[i]] for i in np.flatnonzero(reached)))
        return found
