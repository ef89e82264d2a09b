"""Compiles cext/ to ggtok.wasm, with zig as the C compiler."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
TARGET = ("-target", "wasm32-wasi", "-mexec-model=reactor")
COMPILE = (
    *("-std=c11", "-O3", "-DNDEBUG", "-fvisibility=hidden", "-ffunction-sections", "-Wall"),
    # The template engine uses setjmp. Node before version 24 supports only this older encoding of
    # exceptions.
    *("-mexception-handling", "-mllvm", "-wasm-enable-sjlj", "-mllvm", "-wasm-use-legacy-eh=true"),
    *("-msimd128", "-D__SSE2__"),
    "-D_WASI_EMULATED_PROCESS_CLOCKS",
)
LINK = (
    "-lwasi-emulated-process-clocks",
    "-Wl,--gc-sections",
    "-Wl,--strip-all",
    "-Wl,-z,stack-size=1048576",
    "-Wl,--max-memory=2147483648",  # addresses below 2 GB are never negative in JavaScript
)


class BuildError(Exception):
    """A tool is missing or failed; the message says which, and contains its output."""


def call(*command: str | Path, cwd: Path = ROOT) -> str:
    """Runs a command and returns its output."""
    done = subprocess.run(
        [str(word) for word in command],
        cwd=cwd,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    if done.returncode:
        printed = "\n".join(done.stdout.splitlines()[-30:])
        raise BuildError(f"{' '.join(map(str, command))} failed:\n{printed}")
    return done.stdout


def sources() -> list[Path]:
    """Returns the C sources, relative to the root: the library, of which the linker leaves out what
    exports.c doesn't call, such as training and threads."""
    found = [path.relative_to(ROOT) for path in sorted((ROOT / "cext").rglob("*.c"))]
    library = [path for path in found if path.parts[1] != "python"]
    return [*library, Path("web/wasm/exports.c")]


def build(out: Path, work: Path) -> None:
    """Writes the module to `out`, and object files to the folder `work`."""
    import ziglang

    library = Path(ziglang.__file__).parent
    zig = (library / "zig", "cc", *TARGET)
    setjmp = library / "lib/libc/wasi/libc-top-half/musl/src/setjmp/wasm32/rt.c"
    # Hide this machine's paths; otherwise the module would depend on the folder of the checkout.
    maps = (f"-ffile-prefix-map={ROOT}=.", f"-ffile-prefix-map={library}=zig")
    include = ("-I", "web/wasm", "-I", "cext")
    objects = {work / f"{i}.o": path for i, path in enumerate((*sources(), setjmp))}

    def compile(item: tuple[Path, Path]) -> None:
        call(*zig, *COMPILE, *maps, *include, "-c", item[1], "-o", item[0])

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(compile, objects.items()))
    tag = work / "tag.o"
    call(*zig, "-c", "web/wasm/tag.s", "-o", tag)
    call(*zig, *LINK, *objects, tag, "-o", out)
