"""Measures work as a number of steps, counted by tests/c/work.c: the same on every machine."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

# The factor by which work may grow when the input is four times as long. Linear growth gives 4,
# n log n slightly more, and quadratic growth 16.
LINEAR = 5.5


@dataclass(frozen=True)
class Work:
    """The steps for loading a file and for encoding each text, and the number of ids per text."""

    load: int
    encode: list[int]
    n_ids: list[int]


class Measure(Protocol):
    """A function that loads a file, or its bytes, and encodes texts, with the options of work.c."""

    def __call__(self, gguf: bytes | Path, *texts: bytes, options: str = "") -> Work: ...


def measure(program: Path, folder: Path) -> Measure:
    def run(gguf: bytes | Path, *texts: bytes, options: str = "") -> Work:
        if isinstance(gguf, bytes):
            (folder / "model.gguf").write_bytes(gguf)
            gguf = folder / "model.gguf"
        paths = [folder / f"{i}.txt" for i in range(len(texts))]
        for path, text in zip(paths, texts, strict=True):
            path.write_bytes(text)
        command = [program, *options.split(), gguf, *paths]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        first, *rows = done.stdout.splitlines()
        pairs = [(int(steps), int(n)) for steps, n in map(str.split, rows)]
        return Work(int(first), [steps for steps, _ in pairs], [n for _, n in pairs])

    return run
