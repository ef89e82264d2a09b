"""Checks a wheel without running it. Each check returns the faults that it found, as sentences."""

from __future__ import annotations

import base64
import csv
import hashlib
import io
import json
import re
import subprocess
import sys
import sysconfig
import tempfile
import zipfile
from collections.abc import Collection, Iterable
from fnmatch import fnmatch
from pathlib import Path

from tools.wheels import api, binary
from tools.wheels.binary import Binary
from tools.wheels.build import ROOT
from tools.wheels.targets import ABI_TAG, PYTHON_TAG, Target

INITIALIZER = "PyInit__ffi"
# zig's linker adds the last two to macOS libraries.
EXPORTS = {INITIALIZER, "__dso_handle", "_mh_dylib_header"}
_COMPILED = re.compile(r"\.(so|dylib|pyd|dll|a|lib)\b")


def tags(wheel: Path, target: Target) -> list[str]:
    """Checks the file's name and the tags in its metadata."""
    faults = []
    if not wheel.name.endswith(f"-{target.tag}.whl"):
        faults.append(f"its name is not ...-{target.tag}.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (n for n in archive.namelist() if n.endswith(".dist-info/WHEEL"))
        lines = archive.read(name).decode().splitlines()
    found = {line.removeprefix("Tag: ") for line in lines if line.startswith("Tag: ")}
    expected = {f"{PYTHON_TAG}-{ABI_TAG}-{tag}" for tag in target.tags}
    if found != expected:
        faults.append(f"its tags are {', '.join(sorted(found))}")
    if "Root-Is-Purelib: false" not in lines:
        faults.append("it is marked as pure Python")
    return faults


def contents(wheel: Path, target: Target) -> list[str]:
    """Checks that the wheel has one compiled module, and that RECORD has the digest of every
    file."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    faults = []
    compiled = sorted(name for name in files if _COMPILED.search(name))
    if compiled != [f"ggtok/{target.module}"]:
        faults.append(f"its compiled files are {', '.join(compiled) or 'none'}")
    if "ggtok/py.typed" not in files:
        faults.append("it lacks ggtok/py.typed")
    (record,) = (name for name in files if name.endswith(".dist-info/RECORD"))
    rows = {row[0]: row[1] for row in csv.reader(io.StringIO(files[record].decode()))}
    for name, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        if name != record and rows.get(name) != f"sha256={digest}":
            faults.append(f"RECORD lacks the digest of {name}")
    return faults


def module(
    found: Binary, target: Target, stable: Collection[str], libc: Collection[str] = ()
) -> list[str]:
    """Checks the module's format, and the symbols that it imports and exports.

    `stable` are the symbols in Python's stable ABI, and `libc` the symbols of the C library if they
    have no versions.
    """
    faults = list(found.faults)
    if (found.kind, found.machine) != (target.kind, target.machine):
        faults.append(f"it is {found.kind} for {found.machine}")
    if found.oldest != target.oldest:
        faults.append(f"it is for macOS {'.'.join(map(str, found.oldest))}")
    for library in found.libraries:
        if not any(fnmatch(library, allowed) for allowed in target.libraries):
            faults.append(f"it needs {library}")
    if INITIALIZER not in found.exports or not found.exports <= EXPORTS:
        faults.append(f"it exports {', '.join(sorted(found.exports)) or 'nothing'}")
    for name, where in sorted(found.imports.items()):
        if where == "python3.dll" or (not where and name not in libc):
            if name not in stable:
                faults.append(f"it needs {name}, which neither Python's stable ABI nor libc has")
        elif name.startswith(("Py", "_Py")):
            faults.append(f"it looks for {name} in {where}")
    return faults


# Symbols in zig's musl that are missing from musl 1.2.0, the oldest version for musllinux_1_2.
NEWER_MUSL = set(
    """
    _Fork gettid preadv2 pthread_getname_np pwritev2 qsort_r reallocarray statx tcgetwinsize
    tcsetwinsize
    """.split()
)


def musl_symbols(zig: Path) -> set[str]:
    """Returns the symbols of musl 1.2.0 for 64-bit processors."""
    stub = (zig.parent / "lib" / "libc" / "musl" / "libc.S").read_text()
    stub = re.sub(r"^#ifdef TIME32\n.*?^#endif$", "", stub, flags=re.MULTILINE | re.DOTALL)
    names = re.findall(r"^(?:\.globl|\.weak|WEAK\w*) (\w+)$", stub, re.MULTILINE)
    return set(names) - NEWER_MUSL


def machine_paths(work: Path) -> set[str]:
    """Returns this machine's paths that must not occur in a wheel."""
    folders = {ROOT, work.resolve(), Path(tempfile.gettempdir()), Path.home()}
    folders |= {Path(sys.prefix), Path(sys.base_prefix), Path(sysconfig.get_path("include"))}
    return {f"{path}/" for path in folders - {Path("/"), Path("/usr"), Path("/usr/local")}}


def paths(wheel: Path, forbidden: Iterable[str]) -> list[str]:
    """Checks that no file in the wheel contains a path of this machine."""
    wanted = [path.encode() for path in forbidden]
    faults = []
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            data = archive.read(name)
            faults += [f"{name} names {path.decode()}" for path in wanted if path in data]
    return faults


def abi3audit(wheel: Path) -> list[str]:
    command = [sys.executable, "-m", "abi3audit", "--strict", "--report", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        return [f"abi3audit: {done.stderr.strip()}"]
    (specs,) = json.loads(done.stdout)["specs"].values()
    results = [row["result"] for row in specs["wheel"]]
    if len(results) != 1 or not results[0]["is_abi3"]:
        return ["abi3audit found no module with the stable ABI"]
    return [f"abi3audit: {name}" for name in results[0]["non_abi3_symbols"]]


def auditwheel(wheel: Path, target: Target) -> list[str]:
    """Checks that the wheel's tags include the most compatible tag that auditwheel allows."""
    command = [sys.executable, "-m", "auditwheel", "show", str(wheel)]
    done = subprocess.run(command, capture_output=True, text=True)
    words = " ".join(done.stdout.split())
    tag = re.search(r'consistent with the following platform tag: "(\w+)"', words)
    if not tag:
        return [f"auditwheel: {words} {done.stderr.strip()}"]
    return [] if tag[1] in target.tags else [f"auditwheel would tag it {tag[1]}"]


def check(wheel: Path, target: Target, zig: Path, work: Path) -> list[str]:
    faults = tags(wheel, target) + contents(wheel, target) + paths(wheel, machine_paths(work))
    faults += abi3audit(wheel)
    if target.kind == "ELF":
        faults += auditwheel(wheel, target)
    with tempfile.TemporaryDirectory() as folder, zipfile.ZipFile(wheel) as archive:
        found = binary.read(Path(archive.extract(f"ggtok/{target.module}", folder)))
    libc = musl_symbols(zig) if target.libc == "musl" else ()
    return faults + module(found, target, api.functions() | api.data(), libc)
