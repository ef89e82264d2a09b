"""The C library by itself: a C program, compiled against ggtok.h alone."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FIXTURE = ROOT / "fixtures" / "gguf" / "bpe-gpt2.gguf"
COMPILER = os.environ.get("CC") or shutil.which("cc")


@pytest.mark.skipif(
    sys.platform == "win32" or not COMPILER, reason="needs a C compiler named cc or in $CC"
)
def test_c_program(tmp_path: Path) -> None:
    program = tmp_path / "capi"
    build = [sys.executable, str(ROOT / "tests" / "capi" / "build.py"), str(program)]
    subprocess.run(build, check=True)
    done = subprocess.run([str(program), str(FIXTURE)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "ok\n"), done.stdout + done.stderr
