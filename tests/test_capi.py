"""The C library by itself: C programs, compiled without Python's help."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.capi.build import SANITIZERS, THREADS, build, have_sanitizers

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = sorted((ROOT / "fixtures" / "gguf").glob("*.gguf"))
FIXTURE = ROOT / "fixtures" / "gguf" / "bpe-gpt2.gguf"
COMPILER = os.environ.get("CC") or shutil.which("cc")

# Programs that hold something fast against what it must equal, and how much of it they try.
AGAINST_DEFINITIONS = {
    "pretok_twins": ["2000"],
    "partition": ["5000"],
    "utf8_valid": [],
    "utf8_ucs4": [],
    "wordcache": [],
}

# Builds that do without what newer processors have, and without vector code of their own.
OTHER_MACHINES = {
    "newer": ("-DGGTOK_TEST_MACHINE=1",),
    "any": ("-DGGTOK_TEST_MACHINE=0",),
    "portable": ("-DGGTOK_TEST_MACHINE=0", "-U__SSE2__", "-U__ARM_NEON"),
}

pytestmark = pytest.mark.skipif(
    sys.platform == "win32" or not COMPILER, reason="needs a C compiler named cc or in $CC"
)


def test_c_program(tmp_path: Path) -> None:
    """Against ggtok.h alone."""
    program = tmp_path / "capi"
    build_py = [sys.executable, str(ROOT / "tests" / "capi" / "build.py"), str(program)]
    subprocess.run(build_py, check=True)
    done = subprocess.run([str(program), str(FIXTURE)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr


@pytest.mark.parametrize("sanitized", [False, True])
@pytest.mark.parametrize("name", AGAINST_DEFINITIONS)
def test_against_the_definition(name: str, sanitized: bool, tmp_path: Path) -> None:
    """Longer: python tests/capi/build.py --program NAME it && ./it 100000 SEED."""
    if sanitized and not have_sanitizers():
        pytest.skip("the compiler has no sanitizers")
    build(tmp_path / name, SANITIZERS if sanitized else ["-O2"], program=name)
    command = [str(tmp_path / name), *AGAINST_DEFINITIONS[name]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("name", ["pretok_twins", "utf8_valid", "utf8_ucs4"])
@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_against_the_definition_on(machine: str, name: str, tmp_path: Path) -> None:
    build(tmp_path / name, ["-O2", *OTHER_MACHINES[machine]], program=name)
    command = [str(tmp_path / name), *AGAINST_DEFINITIONS[name]]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_all_paths_give_the_same_ids(tmp_path: Path) -> None:
    """This machine's, those of others, with small caches, and without all that DESIGN.md argues
    for: no caches, cuts or windows."""
    sanitizers = SANITIZERS if have_sanitizers() else ()
    builds = {
        "here": sanitizers,
        **OTHER_MACHINES,
        "small": ("-DGGTOK_TEST_SMALL", *sanitizers),
        "plain": ("-DGGTOK_TEST_PLAIN",),
    }
    ids = {}
    for name, flags in builds.items():
        build(tmp_path / name, ["-O0", *flags], program="paths")
        done = subprocess.run([tmp_path / name, *FIXTURES], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        ids[name] = done.stdout.splitlines()
    assert len(ids["here"]) == len(FIXTURES)
    for name in builds:
        assert ids[name] == ids["here"], name


def test_allocations_that_fail(tmp_path: Path) -> None:
    """Each in turn, in load, encode and decode of every fixture: a clean error, no leak, the
    same ids afterwards."""
    program = tmp_path / "oom"
    sanitizers = SANITIZERS if have_sanitizers() else ()
    build(program, ["-DGGTOK_TEST_ALLOC", *sanitizers], program="oom")
    done = subprocess.run([program, *FIXTURES], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count(" failures\n") == len(FIXTURES) + 1


@pytest.mark.parametrize("sanitized", [False, True])
def test_threads_share_a_tokenizer(sanitized: bool, tmp_path: Path) -> None:
    if sanitized and not have_sanitizers(flags=THREADS):
        pytest.skip("the compiler has no ThreadSanitizer")
    program = tmp_path / "threads"
    build(program, THREADS if sanitized else ["-O2"], program="threads")
    done = subprocess.run([program, *FIXTURES], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr  # where reports go


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another C++ library")
def test_orders_of_the_cpp_library(tmp_path: Path) -> None:
    """std::sort and std::unordered_map themselves."""
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    program = tmp_path / "stl_order"
    build(program, SANITIZERS if have_sanitizers("gcc") else (), cc="gcc", program="stl_order")
    done = subprocess.run([program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
