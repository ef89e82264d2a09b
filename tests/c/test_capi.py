"""Runs C programs that test the C library without Python.

`python -m tests.c` runs them for longer, and under ThreadSanitizer.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.c.build import SANITIZERS, have_sanitizers
from tests.support.programs import Build
from tests.support.vocabularies import fixture, fixture_names

TEMPLATES = Path(__file__).resolve().parents[1] / "chat" / "templates.txt"
FIXTURES = [fixture(name) for name in fixture_names()]
# One fixture for each vocabulary type, and for each way in which BPE splits words.
KINDS = "bpe-llama3 bpe-gemma4 bpe-hybriddna spm wpm ugm rwkv plamo2 plamo3".split()

# Programs that compare fast code with a simple definition, and their number of cases.
AGAINST_DEFINITIONS = {
    "pretok_chains": ["2000"],
    "partition": ["3000"],
    "utf8_valid": [],
    "utf8_ucs4": [],
    "word_cache": [],
}

# Compiler flags for processors with fewer instructions, and for code without SIMD intrinsics.
OTHER_MACHINES = {
    "avx2": ("-DGGTOK_TEST_MACHINE=1",),
    "baseline": ("-DGGTOK_TEST_MACHINE=0",),
    "portable": ("-DGGTOK_TEST_MACHINE=0", "-U__SSE2__", "-U__ARM_NEON"),
}


@pytest.fixture(scope="session")
def sanitizers() -> tuple[str, ...]:
    """Returns the flags for most programs: sanitizers, if the compiler supports them."""
    return SANITIZERS if have_sanitizers() else ()


def output(*command: str | Path) -> str:
    """Returns a program's standard output. The test fails if the program fails or writes to
    standard error."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr
    assert not done.stderr  # sanitizers report errors here
    return done.stdout


def test_the_c_api_works_without_python(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """The program includes only ggtok.h."""
    assert output(c_program("capi", *sanitizers), fixture("bpe-gpt2")) == "ok\n"


@pytest.mark.parametrize("name", AGAINST_DEFINITIONS)
def test_fast_code_equals_its_definition(
    name: str, c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    """To run more cases by hand: python tests/c/build.py --program NAME it && ./it 100000 SEED."""
    output(c_program(name, *sanitizers), *AGAINST_DEFINITIONS[name])


def test_the_engine_keeps_origins_and_writes_json(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    assert output(c_program("engine", *sanitizers)) == "ok\n"


def test_a_recount_adds_pairs_in_random_order(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    output(c_program("recount", *sanitizers))


def test_a_small_word_cache_returns_the_stored_ids(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    output(c_program("word_cache", "-DGGTOK_TEST_SMALL", *sanitizers))


@pytest.mark.parametrize("name", ["pretok_chains", "utf8_valid", "utf8_ucs4"])
@pytest.mark.parametrize("machine", OTHER_MACHINES)
def test_fast_code_equals_its_definition_on_other_machines(
    machine: str, name: str, c_program: Build
) -> None:
    output(c_program(name, *OTHER_MACHINES[machine]), *AGAINST_DEFINITIONS[name])


def test_all_paths_give_the_same_ids(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """The ids are the same from the code for this processor, the code for other processors, a build
    with small caches and the plain build (without caches and other fast paths)."""
    builds = {
        "here": sanitizers,
        **OTHER_MACHINES,
        "small": ("-DGGTOK_TEST_SMALL", *sanitizers),
        "plain": ("-DGGTOK_TEST_PLAIN",),
    }
    ids = {
        name: output(c_program("paths", *flags), *FIXTURES).splitlines()
        for name, flags in builds.items()
    }
    assert len(ids["here"]) == len(FIXTURES)
    for name in builds:
        assert ids[name] == ids["here"], name


def test_a_failed_allocation_is_reported_without_a_leak(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    """Each allocation fails in turn while every fixture loads, encodes and decodes: there is a
    clean error, no leak, and the ids afterwards are the same."""
    shown = output(c_program("oom", "-DGGTOK_TEST_ALLOC", *sanitizers), *FIXTURES)
    assert shown.count(" failures\n") == len(FIXTURES) + 1


def test_a_chat_reports_failed_allocations(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """Each allocation fails in turn while a template is compiled and requests of each kind are
    rendered and encoded."""
    shown = output(c_program("chat_oom", "-DGGTOK_TEST_ALLOC", *sanitizers), fixture("bpe-llama3"))
    assert shown.count(" failures\n") == 4


def test_arrow_columns_are_released_once_when_memory_runs_out(c_program: Build) -> None:
    """Each allocation fails in turn: the caller's arrays are released once, and nothing leaks."""
    shown = output(c_program("arrow", "-DGGTOK_TEST_ALLOC"), fixture("bpe-gpt2"))
    assert shown.endswith("failures\n")


@pytest.mark.skipif(sys.platform == "win32", reason="no fork here")
def test_forks_structs_and_templates_work_while_threads_contend(c_program: Build) -> None:
    assert output(c_program("contended"), fixture("bpe-gpt2"), TEMPLATES) == "ok\n"


def test_calls_stop_when_the_callback_returns_false(c_program: Build) -> None:
    """Calls stop soon, with any text and any vocabulary, and the context is still usable."""
    others = [path for path in FIXTURES if path.stem not in KINDS]
    assert output(c_program("stops"), *others) == "ok\n"


def test_stopped_calls_access_only_valid_memory(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    """With sanitizers, for one vocabulary of each kind."""
    assert output(c_program("stops", *sanitizers), *map(fixture, KINDS)) == "ok\n"


def test_traces_can_end_early(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """Traces are stopped at each step, limited to each number of steps, and run with each
    allocation failing."""
    assert output(c_program("trace", "-DGGTOK_TEST_ALLOC", *sanitizers), *FIXTURES) == "ok\n"


def test_threads_share_a_tokenizer(c_program: Build) -> None:
    """All threads get the same ids. `python -m tests.c threads` checks their memory accesses."""
    output(c_program("threads"), *FIXTURES)


def test_all_builds_train_alike(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """Builds with small caches and bounds train the same merges as the plain build."""
    builds = (sanitizers, ("-DGGTOK_TEST_SMALL", *sanitizers), ("-DGGTOK_TEST_PLAIN",))
    merges = {flags: output(c_program("train", *flags)) for flags in builds}
    assert merges[sanitizers].endswith("ok\n")
    for flags in builds:
        assert merges[flags] == merges[sanitizers], flags


def test_a_failed_allocation_in_training_is_reported_without_a_leak(
    c_program: Build, sanitizers: tuple[str, ...]
) -> None:
    """One allocation in four fails in turn: there is a clean error and no leak. `python -m tests.c
    train-oom` tries every allocation."""
    program = c_program("train", "-DGGTOK_TEST_ALLOC", "-DGGTOK_TEST_SMALL", *sanitizers)
    assert int(output(program, "4").split()[0]) > 250


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have another C++ library")
def test_orders_of_the_cpp_library(c_program: Build, sanitizers: tuple[str, ...]) -> None:
    """The orders equal those of std::sort and std::unordered_map."""
    if not shutil.which("g++"):
        pytest.skip("needs g++")
    assert output(c_program("stl_order", *sanitizers)) == "ok\n"
