"""Lists the sources, and runs commands that must succeed."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# Files that builds, tests or tools create. They are excluded where git can't list the sources.
NOT_SOURCES = re.compile(
    r"(^|/)(\.git|\.hypothesis|\.schemathesis|\.[a-z]+_cache|__pycache__|node_modules|build|dist"
    r"|[^/]*\.egg-info)(/|$)"
    r"|\.(so|pyd|pyc|o)$"
)


def run(*command: str | Path, cwd: Path, **env: str) -> str:
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **env}, capture_output=True)
    assert done.returncode == 0, (done.stdout + done.stderr).decode()
    return done.stdout.decode()
