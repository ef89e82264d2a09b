"""Prepares docstrings for mkdocstrings, which reads Markdown: roles of Sphinx become code, tables
become text, and a description of several arguments is repeated for each of them."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Module, Object

_ROLE = re.compile(r":(?:meth|func|class|attr|mod|data):`~?([^`]+)`")
_TABLE = re.compile(r"^(?:=+ )+=+\n(.*?\n)(?:=+ )+=+$", re.MULTILINE | re.DOTALL)
_SEVERAL = re.compile(r"^    (\*{0,2}\w+(?:, \*{0,2}\w+)+)(:(?: .*|)(?:\n {8,}.*)*)$", re.MULTILINE)


class Markdown(Extension):
    def on_package(self, *, pkg: Module, **_: Any) -> None:
        _convert(pkg)


def _convert(found: Object) -> None:
    if found.docstring:
        text = _ROLE.sub(r"`\1`", found.docstring.value).replace("``", "`")
        text = _SEVERAL.sub(_repeated, text)
        found.docstring.value = _TABLE.sub(r"```text\n\1```", text)
    for member in found.members.values():
        if not member.is_alias:
            _convert(member)


def _repeated(entry: re.Match[str]) -> str:
    return "\n".join(f"    {name}{entry[2]}" for name in entry[1].split(", "))
