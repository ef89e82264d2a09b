"""Reads facts from a compiled module in the formats ELF, PE and Mach-O."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Binary:
    kind: str  # the format: ELF, PE or Mach-O
    machine: str
    libraries: tuple[str, ...]  # libraries that the module links to
    exports: frozenset[str]
    imports: dict[str, str]  # each symbol's library or version, or ""
    faults: tuple[str, ...] = ()  # properties that a module should not have
    oldest: tuple[int, ...] = field(default=())  # Mach-O: the oldest supported version of macOS


def read(path: Path) -> Binary:
    import lief

    lief.logging.disable()
    parsed: Any = lief.parse(str(path))
    if isinstance(parsed, lief.ELF.Binary):
        return _elf(parsed)
    if isinstance(parsed, lief.PE.Binary):
        return _pe(parsed)
    if isinstance(parsed, lief.MachO.Binary):
        return _macho(parsed)
    raise ValueError(f"{path} is no ELF, PE or Mach-O file")


def _elf(elf: Any) -> Binary:
    from lief.ELF import DynamicEntry, Segment

    imports = {}
    for symbol in (symbol for symbol in elf.dynamic_symbols if symbol.name and not symbol.shndx):
        version = symbol.symbol_version
        known = version is not None and version.has_auxiliary_version
        imports[symbol.name] = version.symbol_version_auxiliary.name if known else ""
    tags = {entry.tag for entry in elf.dynamic_entries}
    wrong = {
        "it has a run path": tags & {DynamicEntry.TAG.RPATH, DynamicEntry.TAG.RUNPATH},
        "it has text relocations": tags & {DynamicEntry.TAG.TEXTREL},
        "its stack is executable": not elf.has_nx,
        "its relocations stay writable": Segment.TYPE.GNU_RELRO
        not in {segment.type for segment in elf.segments},
    }
    return Binary(
        "ELF",
        {"X86_64": "x86_64", "AARCH64": "aarch64"}.get(elf.header.machine_type.name, "?"),
        tuple(elf.libraries),
        frozenset(symbol.name for symbol in elf.dynamic_symbols if symbol.shndx),
        imports,
        tuple(fault for fault, found in wrong.items() if found),
    )


def _pe(pe: Any) -> Binary:
    from lief.PE import OptionalHeader

    imports = {
        entry.name: library.name.lower() for library in pe.imports for entry in library.entries
    }
    export = pe.get_export()
    flags = OptionalHeader.DLL_CHARACTERISTICS
    has = pe.optional_header.has
    wrong = {
        "it has debug data": pe.has_debug,
        "it loads at a fixed address": not has(flags.DYNAMIC_BASE),
        "its stack is executable": not has(flags.NX_COMPAT),
    }
    return Binary(
        "PE",
        {"AMD64": "amd64", "ARM64": "arm64"}.get(pe.header.machine.name, "?"),
        tuple(name.lower() for name in pe.libraries),
        frozenset(entry.name for entry in export.entries) if export else frozenset(),
        imports,
        tuple(fault for fault, found in wrong.items() if found),
    )


FLAT_LOOKUP = -2  # the ordinal of a symbol that is looked up in all loaded libraries


def _macho(macho: Any) -> Binary:
    machine = {"X86_64": "x86_64", "ARM64": "arm64"}.get(macho.header.cpu_type.name, "?")
    # The first of `libraries` is the module's own name.
    own = [command for command in macho.commands if command.command.name == "ID_DYLIB"]
    libraries = [library.name for library in macho.libraries if library.command.name != "ID_DYLIB"]
    imports = {
        binding.symbol.name.removeprefix("_"): ""
        if binding.library_ordinal == FLAT_LOOKUP
        else libraries[binding.library_ordinal - 1]
        for binding in macho.bindings
    }
    minimum = macho.build_version.minos if macho.has_build_version else macho.version_min.version
    wrong = {
        "its name is a path": any("/" in command.name for command in own),
        "it has no signature, which arm64 demands": machine == "arm64"
        and not macho.has_code_signature,
    }
    return Binary(
        "Mach-O",
        machine,
        tuple(libraries),
        frozenset(symbol.name.removeprefix("_") for symbol in macho.exported_symbols),
        imports,
        tuple(fault for fault, found in wrong.items() if found),
        tuple(minimum[:2]),
    )


def set_link_time(pe: Path, seconds: int) -> None:
    """Replaces the time at which the linker ran, so that the same sources produce the same file."""
    data = bytearray(pe.read_bytes())
    (header,) = struct.unpack_from("<I", data, 0x3C)
    struct.pack_into("<I", data, header + 8, seconds)
    pe.write_bytes(data)
