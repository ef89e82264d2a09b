"""The files to mutate: all source files except generated files."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from tests.mutants import c_code, python_code
from tests.mutants.mutant import Mutant

ROOT = Path(__file__).resolve().parents[2]
LANGUAGES = {
    "c": (c_code.changes, "cext", (".c", ".h")),
    "python": (python_code.changes, "ggtok", (".py",)),
}


def files(language: str) -> list[Path]:
    _, folder, suffixes = LANGUAGES[language]
    return [
        path
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes and "DO NOT EDIT" not in path.read_text("utf-8")[:400]
    ]


def mutants(language: str) -> Iterator[Mutant]:
    """Yields all mutants for a language, in the order of files and lines."""
    changes = LANGUAGES[language][0]
    for path in files(language):
        source = path.read_bytes()
        for change in changes(source):
            old = source[change.start : change.end].decode()
            column = change.start - source.rfind(b"\n", 0, change.start)
            yield Mutant(path.relative_to(ROOT).as_posix(), old, column, change)
