"""The platforms to build wheels for, one row each."""

from __future__ import annotations

from dataclasses import dataclass

PYTHON_TAG, ABI_TAG = "cp310", "abi3"


@dataclass(frozen=True)
class Target:
    name: str
    zig: str  # zig's name for the platform, with the oldest version of its C library or system
    host: str  # what sysconfig.get_platform() returns on the platform
    tags: tuple[str, ...]  # the wheel's platform tags
    kind: str  # the module's format: ELF, PE or Mach-O
    machine: str  # the processor, as binary.read() names it
    libraries: tuple[str, ...]  # the only libraries that the module may link to
    module: str = "_ffi.abi3.so"
    link: str = "-Wl,-s"
    oldest: tuple[int, ...] = ()  # macOS: the oldest supported version
    libc: str = ""  # Linux: which C library

    @property
    def tag(self) -> str:
        return f"{PYTHON_TAG}-{ABI_TAG}-{'.'.join(self.tags)}"


def _manylinux(machine: str, loader: str) -> Target:
    return Target(
        name=f"manylinux-{machine}",
        zig=f"{machine}-linux-gnu.2.17",
        host=f"linux-{machine}",
        tags=(f"manylinux2014_{machine}", f"manylinux_2_17_{machine}"),
        kind="ELF",
        machine=machine,
        libraries=("libc.so.6", "libm.so.6", "libpthread.so.0", loader),
        libc="glibc",
    )


def _musllinux(machine: str) -> Target:
    return Target(
        name=f"musllinux-{machine}",
        zig=f"{machine}-linux-musl",
        host=f"linux-{machine}",
        tags=(f"musllinux_1_2_{machine}",),
        kind="ELF",
        machine=machine,
        libraries=(f"libc.musl-{machine}.so.1",),
        libc="musl",
    )


def _macosx(machine: str, zig: str, oldest: tuple[int, int]) -> Target:
    version = ".".join(map(str, oldest))
    return Target(
        name=f"macosx-{machine}",
        zig=f"{zig}-macos.{version}",
        host=f"macosx-{version}-{machine}",
        tags=(f"macosx_{version.replace('.', '_')}_{machine}",),
        kind="Mach-O",
        machine=machine,
        libraries=("/usr/lib/libSystem.B.dylib",),
        # Python's symbols come from whichever Python loads the module. The install name replaces
        # the path of the linker's output, which would otherwise be stored in the module.
        link="-Wl,-s -undefined dynamic_lookup -install_name _ffi.abi3.so",
        oldest=oldest,
    )


TARGETS = (
    _manylinux("x86_64", "ld-linux-x86-64.so.2"),
    _manylinux("aarch64", "ld-linux-aarch64.so.1"),
    _musllinux("x86_64"),
    _musllinux("aarch64"),
    Target(
        name="windows-amd64",
        zig="x86_64-windows-gnu",
        host="win-amd64",
        tags=("win_amd64",),
        kind="PE",
        machine="amd64",
        libraries=("python3.dll", "kernel32.dll", "api-ms-win-crt-*.dll"),
        module="_ffi.pyd",
    ),
    _macosx("x86_64", "x86_64", (10, 15)),
    _macosx("arm64", "aarch64", (11, 0)),
)
BY_NAME = {target.name: target for target in TARGETS}
