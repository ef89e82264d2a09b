"""Finds and runs the examples in the README and in docs/, and renders them with their output.

A `python` block is a session with `>>>` prompts, or a program that prints nothing; a `console`
block is a session with `$` prompts. All blocks on a page run in order in one folder, which
`surroundings` fills. A comment before a block can change this: `<!-- file: NAME -->` means that the
block is that file's contents; `<!-- not run: WHY -->` means that it can't be run here.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import traceback
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from fixtures.build import CHAT, CHAT_TEMPLATE
from tests.support.vocabularies import fixture

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TUTORIAL = ROOT / "docs" / "tutorial.md"
# Pages whose examples need other files, with the tests that run them.
ELSEWHERE = {
    "docs/constrained.md": "tests/adapters/test_docs.py",
    "docs/integrations.md": "tests/adapters/test_integrations.py",
    "docs/training.md": "tests/making/test_docs.py",
    "docs/coming-from.md": "tests/docs/test_coming_from.py",
}
OTHERS = [ROOT / name for name in ("CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")]

_BLOCK = re.compile(
    r"(?:^<!-- (?:not run: (?P<why>[^\n]+)|file: (?P<file>\S+)) -->\n)?"
    r"^```(?P<language>\w*)\n(?P<text>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
TEMPLATE = CHAT_TEMPLATE  # the template in chat.gguf
MESSAGES = [{"role": "user", "content": "What is <|eot_id|>?"}]
HOME = "/home/you"  # replaces the temporary folder's name in output
# Environment variables with which examples would find this machine's models and folders.
_PLACES = re.compile("HF_.*|GGTOK_.*|LLAMA_CACHE|OLLAMA_.*|PYTHONWARNINGS|XDG_.*")


class Block(NamedTuple):
    language: str
    text: str
    why_not: str  # why the block isn't run; "" if it is
    file: str  # the name of the file that the block contains, or ""
    begin: int  # the text's offset on the page
    line: int


def blocks(page: Path) -> list[Block]:
    """Returns all fenced blocks on a page."""
    text = page.read_text("utf-8")
    return [
        Block(
            found["language"],
            found["text"],
            found["why"] or "",
            found["file"] or "",
            found.start("text"),
            text.count("\n", 0, found.start("text")),
        )
        for found in _BLOCK.finditer(text)
    ]


def surroundings(folder: Path, page: Path | None = None) -> None:
    """Creates the files that a page's examples use; docs/README.md lists them."""
    _commands(folder)
    if page == TUTORIAL:  # its examples create all other files themselves
        shutil.copy(CHAT, folder / "model.gguf")
        return
    shutil.copy(fixture("bpe-llama3"), folder / "model.gguf")
    shutil.copy(CHAT, folder / "chat.gguf")
    (folder / "messages.json").write_text(json.dumps(MESSAGES))
    (folder / "prompt.txt").write_text("Hello, world\n")


def _commands(folder: Path) -> None:
    """Creates a folder `bin` with the commands `ggtok` and `python`, which run this interpreter."""
    (folder / "bin").mkdir()
    for name, options in {"ggtok": " -m ggtok", "python": ""}.items():
        command = folder / "bin" / name
        command.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)}{options} "$@"\n')
        command.chmod(0o755)


def run_page(page: Path, folder: Path, also: str = "") -> list[tuple[Block, str]]:
    """Runs a page's blocks in `folder`, the current folder, including those marked as not run for
    the reason `also`. Returns each block that was run, and the text that it should have: its code
    with the actual output."""
    names: dict[str, Any] = {}
    results = []
    for block in blocks(page):
        if block.why_not not in ("", also):
            continue
        if block.file:
            (folder / block.file).write_text(block.text, "utf-8")
            continue
        if block.language == "python":
            shown = _run_python(block.text, names)
        elif block.language == "console":
            shown = _run_console(block.text, folder)
        else:
            continue
        results.append((block, shown.replace(str(folder), HOME)))
    return results


def _run_python(text: str, names: dict[str, Any]) -> str:
    """Runs a session or a program. Returns the session as an interpreter would show it, or the
    program, followed by its output."""
    if not text.startswith(">>>"):
        return text + _evaluate(text, names, "exec")
    shown = []
    at = 0
    lines = text.splitlines(keepends=True)
    for example in doctest.DocTestParser().get_examples(text):
        first, *rest = example.source.splitlines(keepends=True)
        shown += [line for line in lines[at : example.lineno] if not line.strip()]
        shown += [f">>> {first}", *(f"... {line}" if line.strip() else "...\n" for line in rest)]
        shown.append(_evaluate(example.source, names))
        at = example.lineno + 1 + len(rest) + example.want.count("\n")
    return "".join(shown)


def _evaluate(source: str, names: dict[str, Any], mode: str = "single") -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out), warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            exec(compile(source, "<example>", mode), names)
        except Exception as error:
            last = traceback.format_exception_only(type(error), error)
            out.write("Traceback (most recent call last):\n    ...\n" + "".join(last))
    return out.getvalue()


def _run_console(text: str, folder: Path) -> str:
    """Runs commands and returns them with their output, including standard error, as a terminal
    shows them."""
    shown = []
    commands = re.findall(r"^\$ (?:.*\\\n)*.*$", text, re.MULTILINE)
    env = {name: value for name, value in os.environ.items() if not _PLACES.fullmatch(name)}
    env |= {"HOME": str(folder), "PATH": f"{folder / 'bin'}:{env['PATH']}"}
    for command in commands:
        completed = subprocess.run(
            ["bash", "-c", command.removeprefix("$ ")],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=env,
        )
        printed = completed.stdout.decode()
        shown.append(f"{command}\n{printed}" + "\n" * (printed[-1:] not in ("", "\n")))
    return "".join(shown)
