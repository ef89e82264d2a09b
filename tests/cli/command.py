"""Runs the command in the tests' process or in a separate one."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.support.vocabularies import fixture

BPE = str(fixture("bpe-gpt2"))
LLAMA3 = str(fixture("bpe-llama3"))
QWEN2 = str(fixture("bpe-qwen2"))  # a model whose loading causes warnings
SPM = str(fixture("spm"))


class Result:
    """A command's exit status, its output, and its lines on standard error by kind."""

    def __init__(self, status: int, out: bytes, err: bytes) -> None:
        self.status, self.out = status, out
        lines = err.decode().splitlines()
        self.warnings = [line for line in lines if line.startswith("ggtok: warning: ")]
        self.hints = [line for line in lines if line.startswith("ggtok: hint: ")]
        self.notes = [line for line in lines if line.startswith("ggtok: note: ")]
        others = {*self.warnings, *self.hints, *self.notes}
        self.errors = [line for line in lines if line not in others]


COMMAND = (sys.executable, "-m", "ggtok")


def spawn(
    argv: Sequence[str], cwd: Path, stdin: bytes = b"", **env: str
) -> subprocess.CompletedProcess[bytes]:
    """Runs a command line in a separate process, outside the source folder."""
    return subprocess.run(
        [*COMMAND, *argv],
        input=stdin,
        capture_output=True,
        cwd=cwd,
        env={**os.environ, **env},
    )
