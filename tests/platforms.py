"""python -m tests.platforms, or tests.instrument platforms: runs tests/c on other platforms.

Compiles the programs for 64-bit ARM (NEON), IBM Z (big-endian) and Windows, and runs them under
qemu-user and wine. The program `paths` prints, for each fixture, a checksum of the ids of many
texts, which must be the same as on this machine. The other programs compare parts of the library
with simple reference implementations.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tests.c.build import build
from tests.support.vocabularies import fixture, fixture_names


@dataclass(frozen=True)
class Platform:
    name: str
    cc: str
    flags: tuple[str, ...]
    run: tuple[str, ...]  # the command that runs the platform's programs; empty for this machine
    packages: tuple[str, ...]  # the Debian packages for its compiler and emulator


HERE = Platform("this machine", "cc", (), (), ())
OTHERS = (
    Platform(
        "aarch64",
        "aarch64-linux-gnu-gcc",
        ("-O1", "-static"),
        ("qemu-aarch64",),
        ("qemu-user", "gcc-aarch64-linux-gnu", "libc6-dev-arm64-cross"),
    ),
    Platform(
        "s390x",
        "s390x-linux-gnu-gcc",
        ("-O1", "-static"),
        ("qemu-s390x",),
        ("qemu-user", "gcc-s390x-linux-gnu", "libc6-dev-s390x-cross"),
    ),
    Platform(
        "Windows",
        "x86_64-w64-mingw32-gcc",
        ("-O1", "-static", "-D__USE_MINGW_ANSI_STDIO=1"),
        ("wine",),
        ("gcc-mingw-w64-x86-64-posix", "wine", "wine64"),
    ),
)

# The programs that compare parts of the library with simple reference implementations, and their
# arguments (the number of cases).
DEFINITIONS = {
    "pretok_chains": ("300",),
    "partition": ("1000",),
    "utf8_valid": (),
    "utf8_ucs4": (),
    "word_cache": (),
}


def missing(platform: Platform) -> tuple[str, ...]:
    """Returns the Debian packages for the platform's compiler and emulator, or none if both are
    installed."""
    tools = (platform.cc, *platform.run)
    return () if all(map(shutil.which, tools)) else platform.packages


def run(platform: Platform, folder: Path, program: str, *arguments: str) -> str:
    """Compiles a program for the platform, runs it and returns its output."""
    out = folder / f"{platform.name.replace(' ', '-')}-{program}"
    build(out, platform.flags, platform.cc, program, folder / "objects")
    if platform.name == "Windows" and not out.exists():
        out = out.with_name(out.name + ".exe")
    environment = {**os.environ, "WINEDEBUG": "-all", "WINEPREFIX": str(folder / "wine")}
    # Keeps wine from offering to install Mono.
    environment |= {"WINEDLLOVERRIDES": "mscoree,mshtml="}
    completed = subprocess.run(
        [*platform.run, str(out), *arguments], capture_output=True, text=True, env=environment
    )
    if completed.returncode:
        raise SystemExit(f"{platform.name}: {program} failed\n{completed.stdout}{completed.stderr}")
    return completed.stdout


def sums(platform: Platform, folder: Path) -> dict[str, str]:
    paths = [str(fixture(name)) for name in fixture_names()]
    printed = run(platform, folder, "paths", *paths)
    rows = (line.rsplit(" ", 1) for line in printed.splitlines())
    return {path.replace("\\", "/").rsplit("/", 1)[1]: total for path, total in rows}


def check(platform: Platform, folder: Path, expected: dict[str, str]) -> str:
    """Compares a platform with this machine and returns a summary."""
    for program, arguments in DEFINITIONS.items():
        run(platform, folder, program, *arguments)
    run(platform, folder, "capi", str(fixture("bpe-gpt2")))
    found = sums(platform, folder)
    different = [name for name in expected if found.get(name) != expected[name]]
    if different:
        raise SystemExit(
            f"{platform.name}: ids differ from this machine's with {', '.join(different)}"
        )
    return f"{platform.name}: {len(found)} fixtures, the same ids as on this machine"


def main() -> int:
    for platform in OTHERS:
        if packages := missing(platform):
            print(f"{platform.name}: install {' '.join(packages)}", file=sys.stderr)
            return 2
    with tempfile.TemporaryDirectory(prefix="ggtok-platforms-") as name:
        folder = Path(name)
        expected = sums(HERE, folder)
        with ThreadPoolExecutor(2) as pool:
            for line in pool.map(lambda p: check(p, folder, expected), OTHERS):
                print(line, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
