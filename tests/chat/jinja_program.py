"""The C program tests/c/jinja.c: what renderings take."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from ggtok import _jinja

DIALECTS: tuple[_jinja.Dialect, ...] = ("llama.cpp", "transformers")


class Case(NamedTuple):
    dialect: _jinja.Dialect
    source: str
    values: Mapping[str, Any] = MappingProxyType({})


class Took(NamedTuple):
    """kind: O, E or C, as in jinja_references; stack: bytes of it; text: at most 200 bytes."""

    kind: str
    steps: int
    stack: int
    text: str


def render(program: Sequence[str | Path], cases: Iterable[Case], stack: int = 512) -> list[Took]:
    """What each took, on a thread with so many kilobytes of stack. `program`: how it is run."""
    told = b""
    for case in cases:
        variables, source = json.dumps(dict(case.values)).encode(), case.source.encode()
        told += b"%d %d %d\n" % (DIALECTS.index(case.dialect), len(variables), len(source))
        told += variables + source
    command = [*map(str, program), str(stack)]
    done = subprocess.run(command, input=told, capture_output=True)
    took, text = [], done.stdout
    while text:
        kind, steps, used, n, text = text.split(b" ", 4)
        shown, text = text[: int(n)], text[int(n) + 1 :]
        took.append(Took(kind.decode(), int(steps), int(used), shown.decode(errors="replace")))
    assert done.returncode == 0, (done.returncode, done.stderr[-3000:], took[-1:])
    return took
