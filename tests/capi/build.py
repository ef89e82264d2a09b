"""Compiles tests/capi/capi.c with the C sources, without Python's help.

python tests/capi/build.py [--cc CC] OUT [FLAG...]
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def build(out: Path, flags: Sequence[str] = (), cc: str | None = None) -> None:
    """Writes the program to `out`; raises CalledProcessError if it doesn't compile."""
    compiler = shlex.split(cc or os.environ.get("CC") or "cc")
    sources = [ROOT / "tests" / "capi" / "capi.c", *sorted((ROOT / "cext").glob("*.c"))]
    command = [*compiler, "-std=c11", "-O1", "-g", *flags, f"-I{ROOT / 'cext'}", "-o", str(out)]
    subprocess.run([*command, *map(str, sources), "-lm"], check=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compile the C API's test program.")
    parser.add_argument("--cc", help="the compiler (default: $CC, else cc)")
    parser.add_argument("out", type=Path)
    args, flags = parser.parse_known_args()
    build(args.out, flags, args.cc)
