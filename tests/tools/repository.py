"""A git repository to test tools/token_budget.py on."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.vocabularies import fixture

ROOT = Path(__file__).resolve().parents[2]
MODEL = fixture("bpe-llama3")


class Repository:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.git("init", "-q", "-b", "main")

    def git(self, *args: str) -> str:
        names = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", *names, *args], cwd=self.root, capture_output=True, check=True, text=True
        )
        return done.stdout.strip()

    def commit(self, files: dict[str, bytes | None]) -> str:
        for name, data in files.items():
            path = self.root / name
            if data is None:
                path.unlink()
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "m")
        return self.git("rev-parse", "HEAD")

    def run(self, **env: str) -> subprocess.CompletedProcess[str]:
        script = ROOT / "tools" / "token_budget.py"
        outputs = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary"}
        paths = {name: str(self.root.parent / file) for name, file in outputs.items()}
        return subprocess.run(
            [sys.executable, script],
            cwd=self.root,
            env={**os.environ, "PYTHONPATH": str(ROOT), "MODEL": str(MODEL), **paths, **env},
            capture_output=True,
            text=True,
            check=False,
        )
