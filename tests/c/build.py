"""Compiles a C test program with the C sources, without Python's build tools.

    python tests/c/build.py [--cc CC] [--program NAME] [--objects FOLDER] OUT [FLAG...]

Programs share object files: each is compiled once for each compiler and set of flags ($CFLAGS come
first). An object file is identified by its preprocessed source, so a macro that only tests define
recompiles only the files that use it.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = os.environ.get("CC") or shutil.which("cc")

SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
THREADS = ("-fsanitize=thread",)
# Each basic block of the library calls a function of the program; the program's own blocks don't.
STEPS = ("-fsanitize-coverage=trace-pc",)

# The sources for encoding and decoding: the library without chat, templates, training and Python.
LIBRARY = tuple(
    f"{folder.relative_to(ROOT / 'cext')}/*.c"
    for folder in sorted((ROOT / "cext").glob("*/**/"))
    if folder.relative_to(ROOT / "cext").parts[0] not in ("chat", "gen", "jinja", "python", "train")
    and any(folder.glob("*.c"))
)
# The template engine.
ENGINE = ("jinja/**/*.c", "unicode/*.c", "index/stl_order.c", "base/*.c")
# For each program, the sources from cext that it needs.
PROGRAMS = {
    "arrow": LIBRARY,
    "batch": ("base/*.c",),
    "capi": (*LIBRARY, "chat/*.c", "jinja/**/*.c"),
    "contended": (*LIBRARY, "jinja/**/*.c", "train/*.c"),
    "oom": LIBRARY,
    "chat_oom": (*LIBRARY, "chat/*.c", "jinja/**/*.c"),
    "reach": LIBRARY,
    "threads": LIBRARY,
    "paths": LIBRARY,
    "work": LIBRARY,
    "stops": LIBRARY,
    "trace": LIBRARY,
    "stl_order": ("index/stl_order.c", "base/mem.c"),
    "partition": ("special/*.c", "index/stl_order.c", "base/error.c", "base/mem.c"),
    "pretok_chains": ("pretok/**/*.c", "unicode/*.c", "base/*.c"),
    "utf8_valid": ("unicode/utf8*.c", "base/mem.c"),
    "utf8_ucs4": ("unicode/utf8*.c", "base/mem.c"),
    "word_cache": ("cache/*.c", "base/mem.c"),
    "recount": (
        *(f"train/{name}.c" for name in ("recount", "pairs", "symbols")),
        *("unicode/*.c", "base/*.c"),
    ),
    "jinja": ENGINE,
    "engine": ENGINE,
    "train": ("train/*.c", "pretok/**/*.c", "unicode/*.c", "cache/*.c", "base/*.c"),
    "words": ("pretok/**/*.c", "unicode/*.c", "base/*.c"),
}


def build(
    out: Path,
    flags: Sequence[str] = (),
    cc: str | None = None,
    program: str = "capi",
    objects: Path | None = None,
) -> None:
    """Builds the program as `out`, or raises CalledProcessError. The folder `objects` keeps object
    files for other programs."""
    programs = list((ROOT / "tests" / "c").glob(f"{program}.c*"))
    sources = [*programs]
    library = "-lm" if programs[0].suffix == ".c" else "-lstdc++"
    for pattern in PROGRAMS[program]:
        sources += sorted((ROOT / "cext").glob(pattern))
    command = command_of(flags, cc)
    plain = [word for word in command if word not in STEPS]
    with tempfile.TemporaryDirectory(prefix="ggtok-objects-") as own:
        folder = objects or Path(own)
        # A random order lets processes that start at the same time compile different objects; each
        # later finds those of the others.
        shuffled = random.Random(os.getpid()).sample(sources, len(sources))
        compiled = {
            source: object_of(source, plain if source in programs else command, folder)
            for source in shuffled
        }
        linked = [str(compiled[source]) for source in sources]
        subprocess.run([*command, "-o", str(out), *linked, library, "-lm", "-pthread"], check=True)


def build_module(out: Path, command: Sequence[str], objects: Path) -> None:
    """Builds the Python extension module as `out`, with this compiler command."""
    interface = objects / "_ffi.c"
    objects.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "cext/build_ffi.py", str(interface)], cwd=ROOT, check=True)
    sources = [interface, *sorted((ROOT / "cext").rglob("*.c"))]
    # As in build_ffi.py, use the limited API.
    python = [f"-I{sysconfig.get_path('include')}", "-DPy_LIMITED_API=0x030A0000"]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        linked = pool.map(lambda source: object_of(source, [*command, *python], objects), sources)
        subprocess.run([*command, "-shared", "-o", out, *linked, "-lm", "-pthread"], check=True)


def command_of(flags: Sequence[str], cc: str | None = None) -> list[str]:
    """Returns the compiler command with the flags. Modules and programs use the same command, so
    that a compiler cache serves both."""
    sanitized = any(flag.startswith("-fsanitize=") for flag in flags)
    reports = ["-g1", "-fno-omit-frame-pointer", "-fPIC"] if sanitized else []
    return [*_compiler(cc), *shlex.split(os.environ.get("CFLAGS", "")), "-O1", *reports, *flags]


def object_of(source: Path, command: Sequence[str], folder: Path) -> Path:
    """Compiles a source file to an object file in `folder`, where other processes may write at the
    same time; returns the object file's path."""
    folder.mkdir(parents=True, exist_ok=True)
    standard = ["-std=c11"] if source.suffix == ".c" else []
    # Relative names let a compiler cache also serve other copies of the repository.
    compiler = (*command, *standard, "-Icext")
    source = source.relative_to(ROOT) if source.is_relative_to(ROOT) else source
    found = folder / f"{_name(compiler, source)}.o"
    if not found.exists():
        handle, new = tempfile.mkstemp(dir=folder, suffix=".part")
        os.close(handle)
        subprocess.run([*compiler, "-c", str(source), "-o", new], cwd=ROOT, check=True)
        os.replace(new, found)
    return found


@cache  # nobody edits sources while the tests run
def _name(compiler: tuple[str, ...], source: Path) -> str:
    """Returns the name of an object file, derived from the preprocessed source and the remaining
    flags."""
    command = [*compiler, "-E", str(source)]
    preprocessed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE)
    remaining = [word for word in compiler if not word.startswith(("-D", "-U", "-I"))]
    return hashlib.sha256("\0".join(remaining).encode() + preprocessed.stdout).hexdigest()[:32]


@cache
def have_sanitizers(cc: str | None = None, flags: tuple[str, ...] = SANITIZERS) -> bool:
    """Whether the compiler can link a program with sanitizers that then runs."""
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
    parser.add_argument("--objects", type=Path, help="keep the objects in this folder")
    parser.add_argument("out", type=Path)
    args, flags = parser.parse_known_args()
    build(args.out, flags, args.cc, args.program, args.objects)
