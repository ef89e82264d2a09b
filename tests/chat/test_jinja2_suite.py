"""The command that renders the templates in jinja2's tests."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS = """\
import jinja2, pytest
def test_some():
    env = jinja2.Environment(loader=jinja2.DictLoader({"a": "{{ a }}"}))
    env.get_template("a", globals={"a": 1}).render(b=object())
    assert jinja2.Template("{{ x|length }}{{ y }}").render(x=[(1, None)], y=str) != "1"
    jinja2.Template("{{ x|pprint }}").render(x={"k": 2.5})
    with pytest.raises(jinja2.TemplateSyntaxError):
        jinja2.Template("{{ 1 + }}")
    jinja2.Template("{{ %s }}")
"""


@pytest.mark.full
@pytest.mark.parametrize(("last", "status"), [("2", 0), ("range", 1)])
def test_the_command_finds_undocumented_differences(last: str, status: int, tmp_path: Path) -> None:
    """Printing an address, such as a function's, isn't a documented difference."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_some.py").write_text(TESTS.replace("%s", last))
    (tmp_path / "pyproject.toml").write_text("[tool.pytest.ini_options]\n")
    command = [sys.executable, "-m", "tests.chat.jinja2_suite", str(tmp_path)]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ran.returncode == status, ran.stderr
    assert "1 passed" in ran.stdout and "5 templates, 8 cases" in ran.stdout
    assert "2 a filter that isn't there" in ran.stdout and "1 both refuse" in ran.stdout
    assert ("{{ range }}" in ran.stdout) == bool(status)
