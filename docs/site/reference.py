"""The pages of the reference: modules, the command's help, the C header."""

from __future__ import annotations

import ast
import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[2]
# The public modules, with the title of each one's page.
MODULES = {
    "ggtok": "Python",
    "ggtok.text.batch_encoding": "Texts in blocks",
    "ggtok.arrow": "Arrow",
    "ggtok.adapters": "Adapters",
    "ggtok.distributed": "Many machines",
    "ggtok.sources": "Models by name",
}


def module_page(name: str) -> str:
    """Returns the page of a module: mkdocstrings writes its docstring and those of its names."""
    options = json.dumps({"members": public_names(importlib.import_module(name))})
    page = f"# {MODULES[name]}: `{name}`\n\n::: {name}\n    options: {options}\n"
    return page + (f"\n## Types in signatures\n\n{aliases()}\n" if name == "ggtok" else "")


def aliases() -> str:
    """Returns the type aliases that signatures use, which exist only for type checkers."""
    source = (ROOT / "ggtok" / "_types.py").read_text("utf-8")
    found = [
        f"{node.target.id} = {ast.unparse(node.value)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
        and ast.unparse(node.annotation) == "TypeAlias"
    ]
    return "```python\n" + "\n".join(found) + "\n```"


def public_names(module: ModuleType) -> list[str]:
    """Returns the names in `__all__`, or without it, the public names that the module defines."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    names: list[str] = getattr(module, "__all__", own)
    return [name for name in names if not name.startswith("__")]


def command_page() -> str:
    """Returns a page with the output of --help, for the command and for each subcommand."""
    from ggtok.cli import commands

    top = subprocess.run(
        [sys.executable, "-m", "ggtok", "--help"], stdout=subprocess.PIPE, check=True
    )
    parts = ["# The command: `ggtok`", "What `--help` prints.", _text(top.stdout.decode())]
    environment = dict(os.environ)
    os.environ |= {"COLUMNS": "90", "NO_COLOR": "1"}  # argparse reads these
    try:
        for name in commands.SUMMARIES:
            parser = commands.parser(name)
            parts += [f"## {name}", _text(parser.format_help())]
    finally:
        os.environ.clear()
        os.environ |= environment
    return "\n\n".join(parts) + "\n"


def _text(printed: str) -> str:
    return f"```text\n{printed}```"


def header_page() -> str:
    """Returns a page with the headers of the C API, which contain its documentation."""
    names = ("ggtok.h", "ggtok_chat.h", "ggtok_sample.h", "ggtok_trace.h", "ggtok_train.h")
    texts = [(name, (ROOT / "cext" / name).read_text("utf-8")) for name in names]
    return "# C\n\n" + "\n".join(f"## `{name}`\n\n```c\n{text}```\n" for name, text in texts)


# The pages of the reference, each with the function that returns it.
PAGES: dict[str, Callable[[], str]] = {
    **{f"reference/{name}.md": partial(module_page, name) for name in MODULES},
    "reference/cli.md": command_page,
    "reference/c.md": header_page,
}
