"""Installs a wheel in an empty folder, for a Python of the wheel's platform, and runs check_ids.py
there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from tools.wheels.build import ROOT, BuildError, call
from tools.wheels.pythons import NotHere, Python, find, from_command
from tools.wheels.targets import Target

MINUTES = 10  # time limit, since an emulator may hang


def run(wheel: Path, target: Target, work: Path, command: str | None = None) -> tuple[bool, str]:
    """Returns whether nothing failed, and a text that says what ran, or why nothing could run.
    `command` is the command of the Python to use, if the user gave one."""
    try:
        python = from_command(target, command) if command else find(target, work)
        return True, _run(wheel, python, work / target.name)
    except NotHere as reason:
        return True, f"not run: {reason}"
    except (BuildError, subprocess.TimeoutExpired) as failure:
        print(f"{target.name}: {failure}", file=sys.stderr)
        return False, "FAILED"


def _run(wheel: Path, python: Python, folder: Path) -> str:
    site = folder / "site"
    shutil.rmtree(site, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    pip += ["--target", str(site), "--no-compile", *python.pip]
    call(*pip, wheel, *python.requirements)
    script = Path(__file__).parent / "check_ids.py"
    words = [python.path(path) for path in (script, site, ROOT / "fixtures")]
    done = subprocess.run(
        [*python.command, "-I", "-S", "-W", "ignore", *words],
        cwd=folder,
        env={**os.environ, **python.environment},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=60 * MINUTES,
    )
    if done.returncode:
        raise BuildError(f"exit status {done.returncode}\n{done.stdout}{done.stderr}")
    return f"{done.stdout.strip()} ({python.name})"
