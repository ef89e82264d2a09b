"""Writes the reference as Markdown, from public docstrings and the command's help."""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

# The public modules, with the title of each one's page.
MODULES = {
    "ggtok": "Python",
    "ggtok.text.batches": "Texts in blocks",
    "ggtok.arrow": "Arrow",
    "ggtok.adapters": "Adapters",
    "ggtok.distributed": "Many machines",
    "ggtok.sources": "Models by name",
}
_ROLE = re.compile(r":(?:meth|func|class|attr|mod|data):`~?([^`]+)`")
_TABLE = re.compile(r"^(?:=+ )+=+\n(.*?\n)(?:=+ )+=+\n", re.MULTILINE | re.DOTALL)
_SECTION = re.compile(r"(Args|Attributes|Returns|Yields|Raises|Warns):")
_ENTRY = re.compile(r"(\*{0,2}\w+(?:, \*{0,2}\w+)*): +(.*)")


# ---- Python ----


def module_page(name: str) -> str:
    """Returns the page of a module: its docstring, and all its public names."""
    module = importlib.import_module(name)
    names = [public for public in public_names(module) if not public.startswith("__")]
    parts = [f"# {MODULES[name]}: `{name}`", markdown(module.__doc__ or "")]
    for kind in _is_function, _is_class, _is_error:
        for public in names:
            value = getattr(module, public)
            if kind(value):
                parts += described(public, value)
    if name == "ggtok":
        parts += ["## Types in signatures", f"```python\n{aliases()}\n```"]
    return "\n\n".join(parts) + "\n"


def public_names(module: ModuleType) -> list[str]:
    """Returns the names in `__all__`, or without it, the public names that the module defines."""
    own = [
        name
        for name, value in vars(module).items()
        if getattr(value, "__module__", None) == module.__name__ and not name.startswith("_")
    ]
    names: list[str] = getattr(module, "__all__", own)
    return names


def _is_function(value: object) -> bool:
    return inspect.isfunction(value)


def _is_error(value: object) -> bool:
    return inspect.isclass(value) and issubclass(value, (Exception, Warning))


def _is_class(value: object) -> bool:
    return inspect.isclass(value) and not _is_error(value)


def described(name: str, value: Any) -> Iterator[str]:
    """Yields the parts of the section about a function, or about a class and its members."""
    yield f"## {name}"
    if _is_error(value):
        bases = [f"`{base.__name__}`" for base in value.__mro__[1:-3]]
        if bases:
            yield f"Also a {', '.join(bases)}."
    elif inspect.isfunction(value):
        yield f"```python\n{signature(name, value)}\n```"
    yield markdown(inspect.getdoc(value) or "")
    if inspect.isclass(value) and not _is_error(value):
        for member, function in members(value):
            yield f"### {name}.{member}"
            if callable(function):
                yield f"```python\n{signature(member, function)}\n```"
            yield markdown(inspect.getdoc(function) or "")


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yields the public methods and properties of a class and of its bases in ggtok."""
    seen = set()
    for part in cls.__mro__:
        if not part.__module__.startswith("ggtok"):
            continue
        for name, value in vars(part).items():
            value = getattr(value, "__func__", value)
            if name.startswith("_") or name in seen:
                continue
            if inspect.isfunction(value) or isinstance(value, property):
                seen.add(name)
                yield name, value


def signature(name: str, function: Callable[..., Any]) -> str:
    """Returns a function's signature on one line, or if that is long, one line per parameter."""
    parts = []
    star = False  # whether the keyword-only parameters have begun
    found = inspect.signature(function)
    for parameter in found.parameters.values():
        if parameter.name == "self":
            continue
        if parameter.kind is parameter.KEYWORD_ONLY and not star:
            parts.append("*")
        star = star or parameter.kind in (parameter.KEYWORD_ONLY, parameter.VAR_POSITIONAL)
        raw = _Raw(parameter.annotation)
        parts.append(str(parameter.replace(annotation=raw if raw else parameter.empty)))
    returned = _Raw(found.return_annotation)
    end = f") -> {returned}" if returned else ")"
    line = f"{name}({', '.join(parts)}{end}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {part},\n" for part in parts) + end


class _Raw(str):
    """An annotation as written in the source, without the prefix `types.`."""

    def __new__(cls, annotation: Any) -> _Raw:
        if annotation is inspect.Signature.empty:
            return super().__new__(cls)
        text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
        return super().__new__(cls, text.replace("types.", ""))

    __repr__ = str.__str__


def aliases() -> str:
    """Returns the definitions of the type aliases that signatures use."""
    import ggtok

    source = (Path(ggtok.__file__).parent / "_types.py").read_text("utf-8")
    return "\n".join(
        f"{node.target.id} = {ast.unparse(node.value)}"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.AnnAssign)
        and isinstance(node.target, ast.Name)
        and node.value is not None
        and ast.unparse(node.annotation) == "TypeAlias"
    )


def markdown(doc: str) -> str:
    """Converts a docstring to Markdown: paragraphs, and lists of arguments and errors."""
    out: list[str] = []
    text = _ROLE.sub(r"`\1`", inspect.cleandoc(doc)).replace("``", "`")
    lines = _TABLE.sub(r"```text\n\1```\n", text).splitlines()
    while lines:
        line = lines.pop(0)
        head = _SECTION.fullmatch(line)
        if not head:
            out.append(line)
            continue
        body: list[str] = []
        while lines and (not lines[0] or lines[0].startswith("    ")):
            body.append(lines.pop(0)[4:])
        out += ["", f"**{head[1]}:**", "", *map(_entry, body), ""]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out)).strip()


def _entry(line: str) -> str:
    """Converts a line of a docstring's section; a line that begins an entry becomes a list item."""
    found = _ENTRY.fullmatch(line)
    return f"- `{found[1]}`: {found[2]}" if found else line


# ---- the command ----


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
    """Returns a page with the header of the C API, which contains its documentation."""
    text = (Path(__file__).resolve().parents[2] / "cext" / "ggtok.h").read_text("utf-8")
    return f"# C: `ggtok.h`\n\n```c\n{text}```\n"


# The pages of the reference, each with the function that returns it.
PAGES: dict[str, Callable[[], str]] = {
    **{f"reference/{name}.md": partial(module_page, name) for name in MODULES},
    "reference/cli.md": command_page,
    "reference/c.md": header_page,
}
