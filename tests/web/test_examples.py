"""The examples of docs/javascript.md."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.web.hosts import NODE_NEEDED, ROOT, WASM, node

JS = ROOT / "web" / "js"
PAGE = (ROOT / "docs" / "javascript.md").read_text("utf-8")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """Returns a copy of what the package needs of a checkout."""
    made = tmp_path / "ggtok"
    shutil.copytree(JS, made / "web" / "js", ignore=shutil.ignore_patterns("*.wasm"))
    (made / "ggtok" / "page").mkdir(parents=True)
    shutil.copy(WASM, made / "ggtok" / "page")
    return made


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """Returns a project's folder with the page's Node example."""
    made = tmp_path / "app"
    made.mkdir()
    shutil.copy(ROOT / "fixtures" / "chat.gguf", made)
    [code] = re.findall(r'```js\n(import \{ load \} from "ggtok";.*?)```', PAGE, re.DOTALL)
    (made / "app.mjs").write_text(code, "utf-8")
    (made / "package.json").write_text('{"name": "app", "private": true}')
    return made


def output(app: Path) -> str:
    command = node()
    if not command:
        pytest.skip(NODE_NEEDED)
    done = subprocess.run([command, "app.mjs"], cwd=app, capture_output=True, encoding="utf-8")
    return done.stdout + done.stderr


def test_the_node_example(app: Path, checkout: Path) -> None:
    """Runs the example with the package linked as npm links it."""
    shutil.copy(WASM, checkout / "web" / "js")
    (app / "node_modules").mkdir()
    (app / "node_modules" / "ggtok").symlink_to(checkout / "web" / "js")
    [expected] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert output(app) == expected


def test_a_package_without_its_module(app: Path, checkout: Path) -> None:
    (app / "node_modules").mkdir()
    (app / "node_modules" / "ggtok").symlink_to(checkout / "web" / "js")
    assert "run 'npm run prepare' in the folder web/js" in output(app)


@pytest.mark.full
@pytest.mark.skipif(not shutil.which("npm"), reason="needs npm")
def test_npm_installs_the_package_from_a_checkout(app: Path, checkout: Path) -> None:
    """The page's command makes the example work, without a network."""
    [command] = re.findall(r"^(npm install \S+)", PAGE, re.MULTILINE)
    words = [*command.split(), "--offline", "--no-audit", "--no-fund"]
    subprocess.run(words, cwd=app, check=True, capture_output=True)
    [expected] = re.findall(r"```text\n(.*?)```", PAGE, re.DOTALL)
    assert output(app) == expected
