"""Tests the targets and checks of `python -m tools.wheels`. No wheel is built here, because that
takes minutes and needs zig; the command checks every wheel that it builds."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.support.vocabularies import FIXTURES
from tools.wheels import check
from tools.wheels.binary import Binary, read, set_link_time
from tools.wheels.targets import BY_NAME, TARGETS, Target

MANYLINUX, MUSL = BY_NAME["manylinux-x86_64"], BY_NAME["musllinux-aarch64"]
WINDOWS, MACOS = BY_NAME["windows-amd64"], BY_NAME["macosx-x86_64"]
STABLE = {"PyList_New", "PyUnicode_Type"}


def test_tags_of_all_targets() -> None:
    assert {target.name: target.tag for target in TARGETS} == {
        "manylinux-x86_64": "cp310-abi3-manylinux2014_x86_64.manylinux_2_17_x86_64",
        "manylinux-aarch64": "cp310-abi3-manylinux2014_aarch64.manylinux_2_17_aarch64",
        "musllinux-x86_64": "cp310-abi3-musllinux_1_2_x86_64",
        "musllinux-aarch64": "cp310-abi3-musllinux_1_2_aarch64",
        "windows-amd64": "cp310-abi3-win_amd64",
        "macosx-x86_64": "cp310-abi3-macosx_10_15_x86_64",
        "macosx-arm64": "cp310-abi3-macosx_11_0_arm64",
    }


def test_the_workflow_runs_each_wheel() -> None:
    workflow = FIXTURES.parent / ".github" / "workflows" / "wheels.yml"
    if not workflow.exists():
        pytest.skip("a source distribution has no workflows")
    tags = re.findall(r"\{ tag: (\w+),", workflow.read_text("utf-8"))
    assert sorted(tags) == sorted(target.tags[-1] for target in TARGETS)


def files(target: Target, **changed: bytes | None) -> dict[str, bytes]:
    """Returns the files of a small wheel for the target. `changed` adds, replaces or (None) removes
    files."""
    tags = "".join(f"Tag: cp310-abi3-{tag}\n" for tag in target.tags)
    result = {
        f"ggtok/{target.module}": b"the module",
        "ggtok/py.typed": b"",
        "ggtok-1.0.dist-info/WHEEL": f"Root-Is-Purelib: false\n{tags}".encode(),
    }
    for name, data in changed.items():
        result = {path: old for path, old in result.items() if not path.endswith(name)}
        if data is not None:
            result[f"ggtok/{name}" if "/" not in name else name] = data
    return result


def pack(path: Path, content: dict[str, bytes], record: str | None = None) -> Path:
    rows = []
    for name, data in content.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in content.items():
            archive.writestr(name, data)
        archive.writestr("ggtok-1.0.dist-info/RECORD", record or "".join(rows))
    return path


def named(folder: Path, target: Target) -> Path:
    return folder / f"ggtok-1.0-{target.tag}.whl"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
def test_a_good_wheel_has_no_faults(target: Target, tmp_path: Path) -> None:
    wheel = pack(named(tmp_path, target), files(target))
    assert check.tags(wheel, target) == check.contents(wheel, target) == []
    assert check.paths(wheel, check.machine_paths(tmp_path)) == []


def test_faults_of_name_and_tags(tmp_path: Path) -> None:
    wheel = pack(named(tmp_path, MUSL), files(MANYLINUX))
    assert check.tags(wheel, MUSL) == [
        "its tags are cp310-abi3-manylinux2014_x86_64, cp310-abi3-manylinux_2_17_x86_64"
    ]
    (fault,) = check.tags(wheel, MANYLINUX)
    assert fault.startswith("its name is not ")
    pure = files(WINDOWS, WHEEL=None)
    pure["ggtok-1.0.dist-info/WHEEL"] = b"Root-Is-Purelib: true\nTag: cp310-abi3-win_amd64\n"
    assert check.tags(pack(named(tmp_path, WINDOWS), pure), WINDOWS) == [
        "it is marked as pure Python"
    ]


@pytest.mark.parametrize(
    ("changed", "fault"),
    [
        ({"libz.so.1": b""}, "its compiled files are ggtok/_ffi.abi3.so, ggtok/libz.so.1"),
        ({"python3.lib": b""}, "its compiled files are ggtok/_ffi.abi3.so, ggtok/python3.lib"),
        ({"_ffi.abi3.so": None}, "its compiled files are none"),
        ({"py.typed": None}, "it lacks ggtok/py.typed"),
    ],
)
def test_faults_of_contents(changed: dict[str, Any], fault: str, tmp_path: Path) -> None:
    wheel = pack(named(tmp_path, MANYLINUX), files(MANYLINUX, **changed))
    assert check.contents(wheel, MANYLINUX) == [fault]


def test_faults_of_the_record(tmp_path: Path) -> None:
    wheel = pack(named(tmp_path, MANYLINUX), files(MANYLINUX), "ggtok/py.typed,sha256=0,0\n")
    faults = check.contents(wheel, MANYLINUX)
    assert "RECORD lacks the digest of ggtok/py.typed" in faults
    assert len(faults) == 3


def test_paths_of_the_machine_are_faults(tmp_path: Path) -> None:
    data = b"built in " + str(tmp_path / "work" / "cext").encode()
    wheel = pack(named(tmp_path, MACOS), files(MACOS, **{"_ffi.abi3.so": data}))
    faults = check.paths(wheel, check.machine_paths(tmp_path / "work"))
    assert f"ggtok/_ffi.abi3.so names {tmp_path / 'work'}/" in faults


ELF = Binary(
    "ELF",
    "x86_64",
    ("libc.so.6",),
    frozenset({"PyInit__ffi"}),
    {"PyList_New": "", "memcpy": "GLIBC_2.14", "PyUnicode_Type": ""},
)
DLL = Binary(
    "PE",
    "amd64",
    ("python3.dll", "kernel32.dll", "api-ms-win-crt-heap-l1-1-0.dll"),
    frozenset({"PyInit__ffi"}),
    {"PyList_New": "python3.dll", "Sleep": "kernel32.dll"},
)
SYSTEM = "/usr/lib/libSystem.B.dylib"
DYLIB = Binary(
    "Mach-O",
    "x86_64",
    (SYSTEM,),
    frozenset({"PyInit__ffi"}),
    {"PyList_New": "", "memcpy": SYSTEM},
    oldest=(10, 15),
)


def test_good_modules_have_no_faults() -> None:
    assert check.module(ELF, MANYLINUX, STABLE) == []
    assert check.module(DLL, WINDOWS, STABLE) == []
    assert check.module(DYLIB, MACOS, STABLE) == []
    musl = replace(ELF, machine="aarch64", libraries=MUSL.libraries, imports={"memcpy": ""})
    assert check.module(musl, MUSL, STABLE, {"memcpy"}) == []
    assert check.module(musl, MUSL, STABLE) == [
        "it needs memcpy, which neither Python's stable ABI nor libc has"
    ]


@pytest.mark.parametrize(
    ("found", "target", "fault"),
    [
        (
            replace(ELF, imports={"_PyLong_Sign": ""}),
            MANYLINUX,
            "it needs _PyLong_Sign, which neither Python's stable ABI nor libc has",
        ),
        (
            replace(DLL, imports={"PyLong_AsInt": "python3.dll"}),
            WINDOWS,
            "it needs PyLong_AsInt, which neither Python's stable ABI nor libc has",
        ),
        (
            replace(DYLIB, imports={"deflate": ""}),
            MACOS,
            "it needs deflate, which neither Python's stable ABI nor libc has",
        ),
        (
            replace(DYLIB, imports={"PyList_New": SYSTEM}),
            MACOS,
            f"it looks for PyList_New in {SYSTEM}",
        ),
        (replace(ELF, libraries=("libz.so.1",)), MANYLINUX, "it needs libz.so.1"),
        (replace(DLL, libraries=("python313.dll",)), WINDOWS, "it needs python313.dll"),
        (replace(ELF, machine="aarch64"), MANYLINUX, "it is ELF for aarch64"),
        (replace(DYLIB, oldest=(13, 0)), MACOS, "it is for macOS 13.0"),
        (replace(ELF, exports=ELF.exports | {"hash"}), MANYLINUX, "it exports PyInit__ffi, hash"),
        (replace(ELF, exports=frozenset()), MANYLINUX, "it exports nothing"),
        (replace(ELF, faults=("it has a run path",)), MANYLINUX, "it has a run path"),
    ],
)
def test_faults_of_modules(found: Binary, target: Target, fault: str) -> None:
    assert check.module(found, target, STABLE) == [fault]


def test_symbols_of_musl(tmp_path: Path) -> None:
    stub = tmp_path / "lib" / "libc" / "musl" / "libc.S"
    stub.parent.mkdir(parents=True)
    stub.write_text(
        "#define WEAK64 .weak\n#ifdef TIME32\n.globl __ioctl_time64\n#endif\n"
        ".globl a\na:\n.bss\nWEAK64 b\n.weak c\n.globl statx\n"
    )
    assert check.musl_symbols(tmp_path / "zig") == {"a", "b", "c"}


def test_the_link_time_is_replaced(tmp_path: Path) -> None:
    dll = tmp_path / "_ffi.pyd"
    dll.write_bytes(bytes(0x3C) + b"\x40\0\0\0" + b"PE\0\0\x64\x86\x01\0" + b"\xff" * 8)
    set_link_time(dll, 0x01020304)
    assert dll.read_bytes()[0x40:] == b"PE\0\0\x64\x86\x01\0\4\3\2\1" + b"\xff" * 4


@pytest.mark.full
def test_facts_of_the_installed_module() -> None:
    pytest.importorskip("lief")
    from ggtok import _ffi

    found = read(Path(_ffi.__file__))
    assert found.kind == {"linux": "ELF", "win32": "PE", "darwin": "Mach-O"}[sys.platform]
    assert "PyInit__ffi" in found.exports
    assert {"PyErr_Occurred", "PyList_SetItem"} <= set(found.imports)


def check_ids(fixtures: Path) -> subprocess.CompletedProcess[str]:
    script = Path(check.__file__).parent / "check_ids.py"
    site = Path(ggtok.__file__).parents[1]
    command = [sys.executable, str(script), str(site), str(fixtures)]
    return subprocess.run(command, capture_output=True, text=True)


def test_ids_are_checked(tmp_path: Path) -> None:
    for folder in ("gguf", "golden"):
        (tmp_path / folder).mkdir()
        for path in (FIXTURES / folder).glob("spm.*"):
            shutil.copy(path, tmp_path / folder)
    done = check_ids(tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1 vocabularies, ")
    golden = json.loads((tmp_path / "golden" / "spm.json").read_text("utf-8"))
    golden["cases"][-1]["ids"][-1] += 1
    (tmp_path / "golden" / "spm.json").write_text(json.dumps(golden), "utf-8")
    done = check_ids(tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("spm: b'")
