"""Compiles a C test program with the C sources, without Python's help.

python tests/capi/build.py [--cc CC] [--program NAME] OUT [FLAG...]
"""

from __future__ import annotations

import argparse
import os
import shlex
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)

# Each program and the sources of cext that it needs.
PROGRAMS = {
    "capi": ("*.c",),
    "oom": ("*.c",),
    "reach": ("*.c",),
    "threads": ("*.c",),
    "paths": ("*.c",),
    "stl_order": ("stl_order.c", "mem.c"),
    "partition": ("partition*.c", "stl_order.c", "error.c", "mem.c"),
    "pretok_twins": ("pretok*.c", "unicode.c", "utf8*.c", "mem.c"),
    "utf8_valid": ("utf8*.c", "mem.c"),
    "utf8_ucs4": ("utf8*.c", "mem.c"),
    "wordcache": ("wordcache.c", "piece_cache.c", "long_cache.c", "mem.c"),
}


def build(
    out: Path, flags: Sequence[str] = (), cc: str | None = None, program: str = "capi"
) -> None:
    """Writes the program to `out`; raises CalledProcessError if it doesn't compile."""
    sources = list((ROOT / "tests" / "capi").glob(f"{program}.c*"))
    language = ["-std=c11"] if sources[0].suffix == ".c" else ["-lstdc++"]
    for pattern in PROGRAMS[program]:
        sources += sorted((ROOT / "cext").glob(pattern))
    options = ["-O1", "-g", *flags, f"-I{ROOT / 'cext'}", "-o", str(out)]
    libraries = [*language, "-lm", "-pthread"]
    subprocess.run([*_compiler(cc), *options, *map(str, sources), *libraries], check=True)


def have_sanitizers(cc: str | None = None, flags: Sequence[str] = SANITIZERS) -> bool:
    """Whether the compiler can link a program with them, and the program runs."""
    with tempfile.TemporaryDirectory(prefix="ggtok-probe-") as folder:
        source = Path(folder) / "probe.c"
        source.write_text("int main(void) { return 0; }\n")
        program = source.with_suffix("")
        command = [*_compiler(cc), *flags, str(source), "-o", str(program)]
        return all(
            subprocess.run(step, capture_output=True).returncode == 0
            for step in (command, [str(program)])
        )


def _compiler(cc: str | None) -> list[str]:
    return shlex.split(cc or os.environ.get("CC") or "cc")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Compile one of the C test programs.")
    parser.add_argument("--cc", help="the compiler (default: $CC, else cc)")
    parser.add_argument("--program", choices=PROGRAMS, default="capi")
    parser.add_argument("out", type=Path)
    args, flags = parser.parse_known_args()
    build(args.out, flags, args.cc, args.program)
