"""Compiles the fuzz targets: the library with sanitizers, beside its plain build."""

from __future__ import annotations

import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.fuzz.seeds import take_words_as_they_are
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture, fixture_names

HERE = Path(__file__).resolve().parent
CEXT = HERE.parents[1] / "cext"
LIBRARY = [path for path in sorted(CEXT.rglob("*.c")) if path.parent.name != "python"]
TARGETS = ("gguf", "encode", "detok", "session", "jinja", "train")
BASE = "bpe-gpt2"  # the vocabulary that every pre-tokenizer is tried on

SANITIZERS = ("-fsanitize=fuzzer-no-link,address,undefined", "-fno-sanitize-recover=all")


def build(out: Path, cc: str = "clang", flags: tuple[str, ...] = SANITIZERS) -> None:
    """Writes fuzz_TARGET for each target to the folder `out`."""
    library = [cc, "-std=c11", "-g", "-O1", *flags, f"-I{CEXT}"]
    words = GGUF.read(fixture("ugm"))
    take_words_as_they_are(words)
    vocabularies = [*map(fixture, fixture_names()), words.write(out / "words.gguf")]
    paths = ", ".join(f'"{path}"' for path in vocabularies)
    harness = [*library, f"-DFIXTURES={paths}", f'-DBASE="{fixture(BASE)}"']
    objects = _compile(library, LIBRARY, out / "library")
    # Small caches. Comparisons would take half of the time, and texts need no magic numbers.
    session = [*library, "-DGGTOK_TEST_SMALL", "-fno-sanitize-coverage=trace-cmp"]
    small = _compile(session, LIBRARY, out / "small")
    objects_of = {"fuzz_session": small, "fuzz_train": small}
    plain = _plain([cc, "-std=c11", "-O1", "-DGGTOK_TEST_PLAIN", f"-I{CEXT}"], out / "plain")
    sources = [HERE / name for name in ("fuzz.c", "gguf_parts.c")]
    sources += [HERE / f"fuzz_{target}.c" for target in TARGETS]
    made = dict(zip(sources, _compile(harness, sources, out / "harness"), strict=True))
    shared = [made.pop(source) for source in sources[:2]]
    link = [flag.replace("fuzzer-no-link", "fuzzer") for flag in flags]
    for source, object_ in made.items():
        tested = objects_of.get(source.stem, objects)
        _run(cc, *link, object_, *shared, *tested, plain, "-lm", "-o", out / source.stem)


def build_capi(out: Path, cc: str = "clang", flags: tuple[str, ...] = SANITIZERS) -> Path:
    """The C program of tests/c that calls the whole API, with the library's objects that `build`
    left in the folder."""
    command = [cc, "-std=c11", "-g", "-O1", *flags, f"-I{CEXT}"]
    own = _compile(command, [HERE.parent / "c" / "capi.c"], out / "harness")
    link = [flag.replace("fuzzer-no-link,", "") for flag in flags]
    objects = sorted((out / "library").glob("*.o"))
    _run(cc, *link, *own, *objects, "-lm", "-pthread", "-o", out / "capi")
    return out / "capi"


def _plain(command: list[str], folder: Path) -> Path:
    """The plain build as one object, all names of which begin with plain_."""
    objects = _compile(command, LIBRARY, folder)
    joined, names = folder / "joined.o", folder / "names"
    _run("ld", "-r", "-o", joined, *objects)
    listed = subprocess.run(["nm", "-g", "--defined-only", joined], check=True, capture_output=True)
    symbols = [line.split()[-1] for line in listed.stdout.decode().splitlines()]
    names.write_text("".join(f"{symbol} plain_{symbol}\n" for symbol in symbols))
    _run("objcopy", f"--redefine-syms={names}", joined)
    return joined


def _compile(command: list[str], sources: list[Path], folder: Path) -> list[Path]:
    folder.mkdir(parents=True, exist_ok=True)
    objects = [folder / f"{source.parent.name}_{source.stem}.o" for source in sources]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(lambda s, o: _run(*command, "-c", s, "-o", o), sources, objects))
    return objects


def _run(*command: str | Path) -> None:
    subprocess.run([str(word) for word in command], check=True)
