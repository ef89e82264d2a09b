"""Runs the steps of action.yml on a temporary repository, as GitHub runs a composite action."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.support.vocabularies import fixture
from tests.tools.repository import Repository

yaml = pytest.importorskip("yaml")

pytestmark = pytest.mark.timeout(1200)  # the first test that runs builds ggtok
MODEL = "model.gguf"
# How GitHub runs `shell: bash`: https://docs.github.com/actions
BASH = ("bash", "--noprofile", "--norc", "-eo", "pipefail")


@dataclass
class Ran:
    status: int = 0
    out: str = ""
    outputs: dict[str, str] = field(default_factory=dict)
    summary: str = ""


class Runner:
    """The part of GitHub's runner that a composite action needs."""

    def __init__(self, action: Path, repository: Repository, temp: Path) -> None:
        self.action, self.repository, self.temp = action, repository, temp
        self.definition: dict[str, Any] = yaml.safe_load((action / "action.yml").read_text())
        self.is_installed = False
        temp.mkdir()

    def run(self, event: dict[str, Any], **inputs: str) -> Ran:
        """Runs the steps until one fails. `inputs` are the values of `with:` in the workflow. The
        first step, which installs ggtok, is left out once it has succeeded."""
        context: dict[str, Any] = {"github": {"event": event}, "inputs": {}, "steps": {}}
        declared = self.definition["inputs"]
        assert inputs.keys() <= declared.keys()
        for name, row in declared.items():
            assert name in inputs or not row.get("required")
            context["inputs"][name] = evaluated(inputs.get(name, row.get("default", "")), context)
        ran = Ran()
        for i, step in enumerate(self.definition["runs"]["steps"]):
            if i == 0 and self.is_installed:
                continue
            assert step.keys() <= {"run", "shell", "env", "id"}
            assert step["shell"] == "bash"
            assert "${{" not in step["run"]  # otherwise an input could inject a command
            ran.status, outputs = self._step(step, context, ran)
            context["steps"][step.get("id", "")] = {"outputs": outputs}
            if ran.status:
                return ran
            self.is_installed = True
        for name, row in self.definition["outputs"].items():
            ran.outputs[name] = evaluated(row["value"], context)
        return ran

    def _step(
        self, step: dict[str, Any], context: dict[str, Any], ran: Ran
    ) -> tuple[int, dict[str, str]]:
        files = {
            name: self.temp / name.lower() for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")
        }
        for file in files.values():
            file.write_bytes(b"")
        script = self.temp / "script.sh"
        script.write_text(step["run"])
        folder = os.path.dirname(sys.executable)
        environment = {
            **{n: v for n, v in os.environ.items() if not n.startswith(("PYTHON", "GITHUB_"))},
            "PATH": f"{folder}{os.pathsep}{os.environ['PATH']}",
            # The first step builds and installs ggtok, which is faster without optimization.
            "CFLAGS": "-O0",
            "PIP_COMPILE": "0",
            "RUNNER_TEMP": str(self.temp),
            "GITHUB_ACTION_PATH": str(self.action),
            **{name: str(path) for name, path in files.items()},
            **{name: evaluated(value, context) for name, value in step.get("env", {}).items()},
        }
        done = subprocess.run(
            [*BASH, script],
            cwd=self.repository.root,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        ran.out += done.stdout
        ran.summary += files["GITHUB_STEP_SUMMARY"].read_text()
        rows = files["GITHUB_OUTPUT"].read_text().splitlines()
        return done.returncode, dict(row.split("=", 1) for row in rows)


def evaluated(text: str, context: dict[str, Any]) -> str:
    """Returns the text with its expressions evaluated; supports only paths and ||."""

    def value(match: re.Match[str]) -> str:
        for path in match[1].split("||"):
            found: Any = context
            for name in path.strip().split("."):
                found = found.get(name) if isinstance(found, dict) else None
            if found:
                return str(found)
        return ""

    return re.sub(r"\$\{\{(.*?)\}\}", value, text)


@pytest.fixture(scope="module")
def runner(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    folder = tmp_path_factory.mktemp("action") / "with a space"
    (folder / "repository").mkdir(parents=True)
    repository = Repository(folder / "repository")
    shutil.copy(fixture("bpe-llama3"), repository.root / MODEL)
    repository.commit({"prompt.md": b"one", ".gitignore": b"model.gguf\n"})
    return Runner(checkout, repository, folder / "temp")


def test_a_pull_request_is_counted(runner: Runner) -> None:
    repository = runner.repository
    base = repository.commit({"code.py": b"x = 1"})
    repository.commit({"prompt.md": b"one two three", "$(touch ran).md": b"new"})
    event = {"pull_request": {"base": {"sha": base}}, "before": "unused"}
    ran = runner.run(event, model=MODEL, budget="1k")
    assert ran.status == 0, ran.out
    assert "| prompt.md | " in ran.summary
    assert "| $(touch ran).md | 0 | " in ran.summary
    assert "code.py" not in ran.summary  # the file didn't change
    tokens, increase = int(ran.outputs["tokens"]), int(ran.outputs["increase"])
    assert 0 < increase < tokens < 1000
    assert ran.summary in ran.out

    over = runner.run(event, model=MODEL, budget=str(tokens - 1))
    assert (over.status, over.outputs) == (1, {})
    assert (
        f"::error::the changed files have {tokens} tokens; the budget is {tokens - 1}" in over.out
    )
    more = runner.run(event, model=MODEL, **{"max-increase": str(increase - 1)})
    assert more.status == 1
    assert f"::error::the change adds {increase} tokens" in more.out
    assert runner.run(event, model=MODEL, **{"max-increase": str(increase)}).status == 0
    only = runner.run(event, model=MODEL, paths="*.py\ndocs/**", budget="1")
    assert (only.status, only.outputs["tokens"]) == (0, "0")


def test_pushes_are_counted(runner: Runner) -> None:
    before = runner.repository.commit({"a.md": b"one"})
    runner.repository.commit({"a.md": b"one two"})
    ran = runner.run({"before": before}, model=MODEL)
    assert ran.status == 0, ran.out
    assert ran.summary.count("a.md") == 1
    first = runner.run({"before": "0" * 40}, model=MODEL)
    assert first.status == 0, first.out
    assert "a.md" in first.summary and "prompt.md" in first.summary


def test_inputs_are_never_commands(runner: Runner) -> None:
    for text in ("$(touch ran)", "`touch ran`", "'; touch ran; '", "--output=ran", "\ntouch ran"):
        for name in ("model", "paths", "budget", "max-increase", "base"):
            runner.run({}, **{"model": MODEL, name: text})
    assert not (runner.repository.root / "ran").exists()
    ran = runner.run({}, model="missing.gguf")
    assert ran.status == 2
    assert ran.out.startswith("::error::")
