"""Compiles the fuzz targets: the library with sanitizers, linked with the plain build."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.c.build import command_of, object_of
from tests.fuzz.seeds import enable_ugm_fast_path
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture, fixture_names

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"
LIBRARY = [path for path in sorted(CEXT.rglob("*.c")) if path.parent != CEXT / "python"]
BLIND = "-fno-sanitize-coverage=trace-cmp"
READERS = ("chat", "gguf", "jinja", "vocab")
TARGETS = ("gguf", "encode", "detok", "session", "jinja", "chat", "train")
BASE = "bpe-gpt2"  # the vocabulary used for all pre-tokenizers

SANITIZERS = ("-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=all")


def build(out: Path, cc: str = "clang", flags: tuple[str, ...] = SANITIZERS) -> None:
    """Writes fuzz_TARGET to the folder `out` for each target."""
    library = [cc, "-g1", "-O1", *flags]
    fast_ugm = GGUF.read(fixture("ugm"))
    enable_ugm_fast_path(fast_ugm)
    vocabularies = [*map(fixture, fixture_names()), fast_ugm.write(out / "words.gguf")]
    paths = ", ".join(f'"{path}"' for path in vocabularies)
    harness = [*library, f"-DFIXTURES={paths}", f'-DBASE="{fixture(BASE)}"']
    objects = _library(library, out)
    # With small caches, little text is enough to fill and grow them.
    small = _library([*library, "-DGGTOK_TEST_SMALL"], out)
    objects_of = {"fuzz_session": small, "fuzz_train": small}
    plain = _plain(command_of(["-DGGTOK_TEST_PLAIN"]), out)
    sources = [HERE / name for name in ("fuzz.c", "gguf_parts.c")]
    sources += [HERE / f"fuzz_{target}.c" for target in TARGETS]
    compiled = dict(zip(sources, _compile([*harness, BLIND], sources, out), strict=True))
    shared = [compiled.pop(source) for source in sources[:2]]
    link = [flag.replace("fuzzer-no-link", "fuzzer") for flag in flags]
    for source, object_ in compiled.items():
        tested = objects_of.get(source.stem, objects)
        _run(cc, *link, object_, *shared, *tested, plain, "-lm", "-o", out / source.stem)


def build_capi(out: Path, cc: str = "clang", flags: tuple[str, ...] = SANITIZERS) -> Path:
    """Links tests/c/capi.c, which calls the whole API, with the object files that `build`
    compiled."""
    command = [cc, "-g1", "-O1", *flags]
    own = _compile(command, [HERE.parent / "c" / "capi.c"], out)
    link = [flag.replace("fuzzer-no-link,", "") for flag in flags]
    _run(cc, *link, *own, *_library(command, out), "-lm", "-pthread", "-o", out / "capi")
    return out / "capi"


def _library(command: list[str], out: Path) -> list[Path]:
    """Compiles the library's object files. Comparisons are traced only in the parsers, so that the
    fuzzer learns keywords and magic numbers; in the other files, tracing would take half of the
    time."""
    readers = [source for source in LIBRARY if source.relative_to(CEXT).parts[0] in READERS]
    others = [source for source in LIBRARY if source not in readers]
    return _compile(command, readers, out) + _compile([*command, BLIND], others, out)


def _plain(command: list[str], out: Path) -> Path:
    """Compiles the plain build to one object file, and adds the prefix plain_ to all its
    symbols."""
    objects = _compile(command, LIBRARY, out)
    joined, names = out / "plain.o", out / "plain.names"
    _run("ld", "-r", "-o", joined, *objects)
    listed = subprocess.run(["nm", "-g", "--defined-only", joined], check=True, capture_output=True)
    symbols = [line.split()[-1] for line in listed.stdout.decode().splitlines()]
    names.write_text("".join(f"{symbol} plain_{symbol}\n" for symbol in symbols))
    _run("objcopy", f"--redefine-syms={names}", joined)
    return joined


def _compile(command: list[str], sources: list[Path], out: Path) -> list[Path]:
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(lambda source: object_of(source, command, out / "objects"), sources))


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)
