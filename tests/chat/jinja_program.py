"""Runs the C program tests/c/jinja.c, which measures renderings."""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggtok.native import jinja

DIALECTS: tuple[jinja.Dialect, ...] = ("llama.cpp", "transformers")


class Case(NamedTuple):
    dialect: jinja.Dialect
    source: str
    values: Mapping[str, Any] | bytes = MappingProxyType({})  # a mapping, or JSON as bytes


class Rendering(NamedTuple):
    """The result and cost of a rendering.

    Attributes:
        kind: O, E or C, as in jinja_references, or J for malformed JSON.
        stack: bytes of stack.
        text: at most 200 bytes of the text or error.
    """

    kind: str
    steps: int
    stack: int
    text: str


class CrashError(Exception):
    """The program crashed on `case`, or a rendering modified its template; `report` has the
    program's errors."""

    def __init__(self, case: Case | None, report: str) -> None:
        super().__init__(case, report)
        self.case, self.report = case, report


def render(
    program: Sequence[str | Path], cases: Sequence[Case], stack: int = 512, steps: int = 0
) -> list[Rendering]:
    """Renders cases on a thread with `stack` kilobytes of stack and a budget of `steps` (0: the
    usual budget). `program` is the command. Raises CrashError."""
    request = []
    for case in cases:
        values = case.values
        variables = values if isinstance(values, bytes) else json.dumps(dict(values)).encode()
        source = case.source.encode()
        request.append(b"%d %d %d\n" % (DIALECTS.index(case.dialect), len(variables), len(source)))
        request += [variables, source]
    command = [*map(str, program), str(stack), str(steps)]
    environment = {**os.environ, "LD_BIND_NOW": "1"}  # look up symbols at start, not during a case
    completed = subprocess.run(
        command, input=b"".join(request), capture_output=True, env=environment
    )
    renderings, text = [], completed.stdout
    while text:
        kind, steps, used, n, text = text.split(b" ", 4)
        shown, text = text[: int(n)], text[int(n) + 1 :]
        renderings.append(
            Rendering(kind.decode(), int(steps), int(used), shown.decode(errors="replace"))
        )
    if completed.returncode or len(renderings) < len(cases):
        report = completed.stderr.decode(errors="replace")
        wrote = re.match(r"case (\d+) wrote", report)
        at = int(wrote[1]) if wrote else len(renderings)
        raise CrashError(cases[at] if at < len(cases) else None, report)
    return renderings
