"""Installs a wheel, a source distribution and a folder, each in an empty environment.

As for a user after `pip install`, the tests run outside the checkout and without extras.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from ggtok.cli.commands import SUMMARIES
from tests.package.running import NOT_SOURCES, ROOT, run
from tests.support.vocabularies import fixture

MODULES = sorted(
    ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
    for path in (ROOT / "ggtok").rglob("*.py")
)
SOURCES = ["wheel", "source distribution", "folder"]


def test_the_wheel_has_the_package_and_no_more(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    sources = [path for path in (ROOT / "ggtok").rglob("*") if path.suffix in (".py", ".pyi")]
    sources += (ROOT / "ggtok" / "page").glob("*.*")
    expected = {path.relative_to(ROOT).as_posix() for path in sources} | {"ggtok/py.typed"}
    found = {name for name in names if ".dist-info/" not in name}
    (module,) = found - expected
    assert re.fullmatch(r"ggtok/_ffi\.[\w.-]+", module)
    assert found >= expected


def test_the_source_distribution_has_all_sources(checkout: Path, sdist: Path) -> None:
    """The source distribution contains everything that building and testing the package needs."""
    with tarfile.open(sdist) as archive:
        names = {member.name.partition("/")[2] for member in archive if member.isfile()}
    files = [path for path in checkout.rglob("*") if path.is_file()]
    sources = {path.relative_to(checkout).as_posix() for path in files}
    sources = {name for name in sources if not NOT_SOURCES.search(name)}
    missing = sources - names
    assert {name for name in missing if not name.startswith((".github/", ".git"))} == set()


class Installed:
    """A virtual environment with ggtok and its dependencies, and a working folder."""

    def __init__(self, folder: Path, source: Path) -> None:
        self.cwd = folder / "work"
        self.cwd.mkdir()
        run(sys.executable, "-m", "venv", folder / "env", cwd=folder)
        scripts = folder / "env" / ("Scripts" if sys.platform == "win32" else "bin")
        self.python = scripts / "python"
        self.command = scripts / "ggtok"
        run(self.python, "-m", "pip", "install", "-q", "--no-compile", source, cwd=folder)
        for name, path in {"model": fixture("bpe-llama3"), "chat": CHAT}.items():
            shutil.copy(path, self.cwd / f"{name}.gguf")
        (self.cwd / "messages.json").write_text('[{"role": "user", "content": "Hi"}]')
        (self.cwd / "request.json").write_text('{"messages": [{"role": "user", "content": "Hi"}]}')
        (self.cwd / "text").mkdir()
        (self.cwd / "text" / "a.txt").write_text("Hello, world\n" * 50)
        (self.cwd / "text" / "skipped.log").write_text("Hello")
        (self.cwd / "text" / ".gitignore").write_text("*.log\n")

    def run(self, *command: str | Path, status: int = 0) -> str:
        words = [str(word) for word in command]
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        env["GGTOK_CACHE"] = str(self.cwd / "cache")
        done = subprocess.run(words, cwd=self.cwd, env=env, capture_output=True, text=True)
        assert done.returncode == status, done.stdout + done.stderr
        assert "Traceback" not in done.stderr
        return done.stdout + done.stderr


CHAT = ROOT / "fixtures" / "chat.gguf"


@pytest.fixture(scope="module", params=SOURCES)
def installed(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Installed:
    fixtures = {"wheel": "wheel", "source distribution": "sdist", "folder": "checkout"}
    source: Path = request.getfixturevalue(fixtures[request.param])
    return Installed(tmp_path_factory.mktemp("installed"), source)


# Modules that may need a package from an extra, by the beginning of their names. The code that
# imports such a module checks for the package first.
NEED = {
    "ggtok.adapters.transformers_class": {"transformers"},
    "ggtok.server.": {"httptools", "httpx2", "orjson", "starlette", "uvicorn"},
    "ggtok.sources.connect": {"httpcore2"},
    "ggtok.sources.http": {"httpx2"},
}

IMPORT = """
import importlib, sys
for name in sys.argv[1:]:
    try:
        importlib.import_module(name)
    except ImportError as error:
        print(name, error.name)
"""


def test_every_module_is_imported(installed: Installed) -> None:
    names = [name for name in MODULES if not name.endswith("__main__")]
    failed = installed.run(installed.python, "-c", IMPORT, *names).splitlines()
    for name, package in map(str.split, failed):
        assert any(name.startswith(start) and package in NEED[start] for start in NEED), name
    assert "ggtok.server.application starlette" in failed


@pytest.mark.parametrize(
    "code",
    [
        "from ggtok import *",
        "import ggtok; help(ggtok)",
        "import ggtok, inspect; inspect.getmembers(ggtok)",
        "import ggtok; [getattr(ggtok, name) for name in dir(ggtok)]",
    ],
)
def test_the_package_can_be_inspected(installed: Installed, code: str) -> None:
    installed.run(installed.python, "-W", "error", "-c", code)


# The main use of each subcommand, and part of its output. The order matters, because some commands
# read the output of earlier ones.
JOBS: dict[str, tuple[list[str], str]] = {
    "tokenize": (["model.gguf", "Hello, world", "--ids"], "[662, 39, 523, 75, 78, 11,"),
    "detokenize": (["model.gguf", "39", "72"], "Hi"),
    "inspect": (["model.gguf"], "llama-bpe"),
    "chat": (["chat.gguf", "messages.json"], "<|start_header_id|>user"),
    "prompts": (["chat.gguf", "request.json", "request.json"], "tokens kept, 0 lost"),
    "encode": (["model.gguf", "text", "-o", "ids.bin"], "ids.bin"),
    "count": (["model.gguf", "text", "--json"], '"text/a.txt"'),
    "stats": (["model.gguf", "text/a.txt"], "Latin"),
    "truncate": (["model.gguf", "-n", "5", "text/a.txt"], "Hello"),
    "chunks": (["model.gguf", "-n", "100", "text/a.txt"], "text/a.txt"),
    "explain": (["model.gguf", "Hello"], "rule of llama3"),
    "merges": (["model.gguf", "330"], "rank 74"),
    "export": (["model.gguf", "--to", "tokenizer.json"], "tokenizer.json"),
    "convert": (["tokenizer.json", "-o", "converted.gguf"], "680 tokens"),
    "edit": (["model.gguf", "--pre", "qwen2", "-o", "edited.gguf"], "llama-bpe -> qwen2"),
    "doctor": (["chat.gguf"], "GGT201"),
    "diff": (["model.gguf", "converted.gguf"], "eos_id"),
    "extract": (["model.gguf", "extracted.gguf"], "extracted.gguf"),
    "train": (["text/a.txt", "--vocab-size", "300", "-o", "trained.gguf"], "trained.gguf"),
    "list": ([], ""),
    "cache": (["ls"], ""),
    "parity": (["model.gguf"], "pip install"),  # the command needs llama.cpp
    "view": (["model.gguf", "-o", "page.html"], "page.html"),
    "serve": (["model.gguf"], "pip install 'ggtok[serve]'"),
    "completion": (["bash"], "pip install 'ggtok[completion]'"),
    "help": (["tokenize"], "usage: ggtok tokenize"),
}
STATUS = {"diff": 1, "parity": 2, "serve": 2, "completion": 2}


def test_every_subcommand_does_its_job(installed: Installed) -> None:
    assert set(JOBS) == set(SUMMARIES)
    for name, (words, printed) in JOBS.items():
        shown = installed.run(installed.command, name, *words, status=STATUS.get(name, 0))
        assert printed in shown, name
        assert "Traceback" not in shown and "ModuleNotFoundError" not in shown, name
        installed.run(installed.command, name, "--help")
    assert "skipped.log" not in installed.run(installed.command, "count", "model.gguf", "text")
    assert "complete" in installed.run(installed.command, "encode", "--verify", "ids.bin")
    assert (installed.cwd / "ids.bin").stat().st_size > 50 * len("Hello, world") / 2
    assert "Hello" in installed.run(installed.command, "tokenize", "trained.gguf", "Hello")
    first, second = (
        installed.run(installed.command, "-q", "tokenize", model, "Hello", "--ids")
        for model in ("converted.gguf", "extracted.gguf")
    )
    assert json.loads(first) == json.loads(second)


def test_type_checkers_see_its_types(installed: Installed) -> None:
    code = (
        "import ggtok, pathlib; print((pathlib.Path(ggtok.__file__).parent / 'py.typed').exists())"
    )
    assert installed.run(installed.python, "-c", code) == "True\n"
