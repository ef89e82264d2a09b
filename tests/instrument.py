"""python -m tests.instrument: runs the tests with an instrumented build of the C library.

    python -m tests.instrument sanitize [PYTEST ARGUMENT ...]    # default: all tests
    python -m tests.instrument sanitize -m MODULE [ARGUMENT ...]
    python -m tests.instrument coverage [PYTEST ARGUMENT ...]
    python -m tests.instrument platforms    # the C programs for ARM, big-endian and Windows

`sanitize` compiles the module with AddressSanitizer and UndefinedBehaviorSanitizer (gcc) and runs
pytest, or another module, with it. `coverage` compiles with clang's source coverage, and runs
pytest under coverage.py, the C programs of tests/c, and the fuzzers on their saved corpora. For
each file of ggtok/ and cext/, it prints the lines and branches that no run reached; with --show, it
prints the C code with the counts. Neither command changes the installed package; both only use its
dependencies.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import platforms
from tests.c import build as capi
from tests.fuzz import __main__ as fuzz
from tests.fuzz.build import TARGETS
from tests.fuzz.build import build as build_fuzzers
from tests.support.vocabularies import fixture, fixture_names

ROOT = Path(__file__).resolve().parents[1]
COVERAGE = ("-fprofile-instr-generate", "-fcoverage-mapping")
SUFFIX = os.environ.get("LLVM", "")  # suffix of the names of LLVM's tools, such as "-14"


def module(folder: Path, command: list[str]) -> None:
    """Copies the package to `folder`, with a C module that the command compiles."""
    package = folder / "ggtok"
    shutil.copytree(ROOT / "ggtok", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    capi.build_module(package / "_ffi.abi3.so", command, folder)


# Scripts: their folder, which has a copy of the package, is first on sys.path.
RUN_PYTEST = "import sys, pytest; sys.exit(pytest.main())"
RUN_MODULE = (
    "import os, runpy, sys; sys.path.append(os.getcwd()); del sys.argv[0]; "
    "runpy.run_module(sys.argv[0], run_name='__main__', alter_sys=True)"
)


def pytest(
    folder: Path, arguments: list[str], python: tuple[str, ...] = (), **environment: str
) -> int:
    """Runs pytest, or the module that follows -m, with the package in `folder` instead of the
    installed package and the sources."""
    runs_module = arguments[:1] == ["-m"]
    program = folder / ("run_module.py" if runs_module else "run_pytest.py")
    program.write_text(RUN_MODULE if runs_module else RUN_PYTEST)
    arguments = arguments[1:] if runs_module else ["-q", *arguments]
    environment = {**os.environ, "PYTHONPATH": str(folder), **environment}
    command = [sys.executable, *python, str(program), *arguments]
    return subprocess.run(command, cwd=ROOT, env=environment).returncode


def _library(cc: str, name: str) -> str:
    found = subprocess.run([cc, f"-print-file-name={name}"], check=True, capture_output=True)
    return found.stdout.decode().strip()


def sanitize(folder: Path, arguments: list[str]) -> int:
    module(folder, capi.command_of(capi.SANITIZERS, "gcc"))
    return pytest(
        folder,
        arguments if arguments[:1] == ["-m"] else ["-p", "no:cacheprovider", *arguments],
        # C++ exceptions in the reference need libstdc++.
        LD_PRELOAD=f"{_library('gcc', 'libasan.so')} {_library('g++', 'libstdc++.so')}",
        # Leak detection is off because Python never frees some of its memory.
        ASAN_OPTIONS="detect_leaks=0:abort_on_error=1:allocator_may_return_null=1",
        UBSAN_OPTIONS="print_stacktrace=1:halt_on_error=1",
    )


def coverage(folder: Path, arguments: list[str], show: bool) -> int:
    environment = {"LLVM_PROFILE_FILE": str(folder / "%p-%m.profraw")}
    module(folder, capi.command_of(("-g", "-fPIC", *COVERAGE), "clang"))
    settings = folder / "coveragerc"
    settings.write_text(
        "[run]\nbranch = true\nparallel = true\npatch = subprocess\n"
        f"data_file = {folder / 'python'}\nsource = {folder / 'ggtok'}\n"
    )
    measure = ("-m", "coverage")
    run = (*measure, "run", f"--rcfile={settings}")
    status = pytest(folder, arguments, run, **environment)
    programs = list((folder / "ggtok").glob("_ffi*.so"))
    files = [str(fixture(name)) for name in fixture_names()]
    runs = {
        "arrow": (["-DGGTOK_TEST_ALLOC"], [str(fixture("bpe-gpt2"))]),
        "capi": (["-g"], [str(fixture("bpe-gpt2"))]),
        "oom": (["-DGGTOK_TEST_ALLOC"], files),
        "reach": ([], [str(fixture("bpe-gpt2"))]),
        "stl_order": ([], []),
        "stops": ([], files),
        "threads": ([], files),
        "train": (["-DGGTOK_TEST_ALLOC", "-DGGTOK_TEST_SMALL"], ["4"]),
        "partition": ([], []),
        "paths": (["-DGGTOK_TEST_MACHINE=0"], files),
        "pretok_chains": ([], ["500"]),
        "utf8_valid": ([], []),
        "utf8_ucs4": ([], []),
        "word_cache": (["-DGGTOK_TEST_SMALL"], []),
    }
    for program, (flags, words) in runs.items():
        flags = [*COVERAGE, *flags]
        capi.build(folder / program, flags, "clang", program, folder / "objects")
        _run(folder / program, *words, **environment)
        programs.append(folder / program)
    build_fuzzers(folder, flags=("-fsanitize=fuzzer-no-link", *COVERAGE))
    for target in TARGETS:
        inputs = folder / "inputs" / target
        fuzz.unpack(target, inputs)
        _run(folder / f"fuzz_{target}", "-runs=0", inputs, **environment)
        programs.append(folder / f"fuzz_{target}")
    _run(sys.executable, *measure, "combine", f"--rcfile={settings}")
    subprocess.run(
        [sys.executable, *measure, "report", f"--rcfile={settings}", "--show-missing"], check=True
    )
    profile = folder / "all.profdata"
    _run(f"llvm-profdata{SUFFIX}", "merge", "-o", profile, *folder.glob("*.profraw"))
    objects = [programs[0], *(f"-object={program}" for program in programs[1:])]
    mode = ["show", "-show-branches=count"] if show else ["report", "-show-region-summary=false"]
    sources = sorted((ROOT / "cext").rglob("*.[ch]"))
    subprocess.run(
        [f"llvm-cov{SUFFIX}", *mode, *objects, f"-instr-profile={profile}", *sources], check=True
    )
    return status


def _run(*command: str | Path, **environment: str) -> None:
    subprocess.run(
        [str(word) for word in command],
        env={**os.environ, **environment},
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.instrument",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("how", choices=("sanitize", "coverage", "platforms"))
    parser.add_argument(
        "--show", action="store_true", help="coverage: print the C code with counts"
    )
    parser.add_argument("--work", type=Path, help="keep the build and the measurements here")
    args, arguments = parser.parse_known_args()
    if args.how == "platforms":
        return platforms.main()
    with tempfile.TemporaryDirectory(prefix="ggtok-instrument-") as name:
        folder = args.work or Path(name)
        if args.how == "sanitize":
            return sanitize(folder, arguments)
        if not shutil.which(f"llvm-cov{SUFFIX}"):
            parser.error("llvm-cov isn't here (LLVM=-14 looks for llvm-cov-14)")
        return coverage(folder, arguments, args.show)


if __name__ == "__main__":
    sys.exit(main())
