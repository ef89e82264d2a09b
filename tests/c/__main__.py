"""Runs the C programs exhaustively, under sanitizers.

    python -m tests.c [--cc CC] [NAME ...]     # default: all

The tests run the same programs for a shorter time, and without ThreadSanitizer.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.c.build import SANITIZERS, THREADS, build, have_sanitizers
from tests.support.vocabularies import fixture, fixture_names

FIXTURES = [str(fixture(name)) for name in fixture_names()]
TEMPLATES = Path(__file__).resolve().parents[1] / "chat" / "templates.txt"
ALLOC, SMALL = "-DGGTOK_TEST_ALLOC", "-DGGTOK_TEST_SMALL"

# For each run of a program: the program, compiler flags and arguments.
RUNS: dict[str, tuple[str, tuple[str, ...], list[str]]] = {
    "capi": ("capi", SANITIZERS, [str(fixture("bpe-gpt2"))]),
    "capi-threads": ("capi", THREADS, [str(fixture("bpe-gpt2"))]),
    "threads": ("threads", THREADS, FIXTURES),
    "contended": ("contended", THREADS, [str(fixture("bpe-gpt2")), str(TEMPLATES)]),
    "train-threads": ("train", THREADS, []),
    "train": ("train", SANITIZERS, []),
    "recount": ("recount", SANITIZERS, []),
    "train-small": ("train", (*SANITIZERS, SMALL), []),
    "train-oom": ("train", (*SANITIZERS, ALLOC, SMALL), []),
    "oom": ("oom", (*SANITIZERS, ALLOC), FIXTURES),
    "stops": ("stops", SANITIZERS, ["-a", *FIXTURES]),
    "trace": ("trace", (*SANITIZERS, ALLOC), FIXTURES),
    "paths": ("paths", SANITIZERS, FIXTURES),
    "paths-small": ("paths", (*SANITIZERS, SMALL), FIXTURES),
    "pretok_chains": ("pretok_chains", SANITIZERS, ["100000"]),
    "partition": ("partition", SANITIZERS, ["100000"]),
    "utf8_valid": ("utf8_valid", SANITIZERS, []),
    "utf8_ucs4": ("utf8_ucs4", SANITIZERS, []),
    "word_cache": ("word_cache", SANITIZERS, []),
    "word_cache-small": ("word_cache", (*SANITIZERS, SMALL), []),
}


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.c",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--cc", help="the compiler (default: $CC, else cc)")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(RUNS))
    args = parser.parse_args()
    if unknown := set(args.names) - RUNS.keys():
        parser.error(f"no such program: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="ggtok-c-") as name:
        folder = Path(name)
        for row in args.names or RUNS:
            program, flags, arguments = RUNS[row]
            kind = THREADS if flags == THREADS else SANITIZERS
            if not have_sanitizers(args.cc, kind):
                print(f"{row}: the compiler has no {' '.join(kind)}", file=sys.stderr)
                return 2
            started = time.monotonic()
            build(folder / row, flags, args.cc, program, folder / "objects")
            done = subprocess.run([folder / row, *arguments], capture_output=True, text=True)
            if done.returncode or done.stderr:
                print(f"{row} failed\n{done.stdout[-3000:]}{done.stderr}", file=sys.stderr)
                return 1
            print(f"{row}: {time.monotonic() - started:.0f} s", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
