"""Renders the templates in jinja2's tests with jinja2, set up as in transformers, and with the
engine's transformers dialect.

    pip download --no-deps --no-binary jinja2 jinja2 && tar xzf jinja2-*.tar.gz
    python -m tests.chat.jinja2_suite jinja2-3.1.6

The argument is jinja2's source distribution. Its tests (which also need trio) are run to record
each template's source and variables. Both engines get only variables that are plain data. `KINDS`
lists the documented differences (docs/design/jinja.md); the exit status is 1 if there are others.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jinja2
import pytest
from jinja2.defaults import DEFAULT_NAMESPACE

from tests.chat import jinja_references
from tests.chat.jinja_references import Answer, ggtok_answer
from tests.support import samples

Case = tuple[str, dict[str, Any]]


# Documented differences, each with patterns for ggtok's error message and for the template.
KINDS = {
    "a statement that isn't there": (
        "unknown statement '(autoescape|block|extends|from|import|include)'",
        "",
    ),
    "a filter that isn't there": (
        "no filter named '(pprint|random|striptags|urlize|wordwrap|xmlattr)'",
        "",
    ),
    "a method that isn't there": ("'format_map' is undefined", ""),
    "'format' of safe text": ("'format' of safe text", ""),
    "'urlencode' of lists and dicts": ("'urlencode' of (dict|list)", ""),
    "integers beyond 64 bits": ("integers beyond 64 bits", ""),
    "private attributes of undefined values": ("' is undefined", r"\._"),
    "letters in names": ("unexpected character", "[^\x00-\x7f]"),
}


def kind_of(source: str, theirs: Answer, mine: Answer) -> str:
    if theirs == mine:
        return "the same text"
    if theirs[0] != "O" and mine[0] != "O":
        return "both refuse"
    for kind, (message, contents) in KINDS.items():
        if mine[0] != "O" and re.search(message, str(mine[1])) and re.search(contents, source):
            return kind
    return "other"


class NotPlainError(Exception):
    """A value that isn't plain data."""


def _plain(value: Any) -> Any:
    if type(value) in (str, int, float, bool, type(None)):
        return value
    if type(value) in (list, tuple):
        return type(value)(_plain(item) for item in value)
    if type(value) is dict:
        return {_plain(key): _plain(item) for key, item in value.items()}
    raise NotPlainError


def _variables(variables: Mapping[str, Any]) -> dict[str, Any]:
    plain = {}
    for name, value in variables.items():
        try:
            plain[name] = _plain(value)
        except NotPlainError:
            continue
    return plain


@contextmanager
def _recorded(cases: dict[str, Case]) -> Iterator[None]:
    """Records each template that jinja2 compiles, and the variables with which it is rendered."""
    compile, from_code = jinja2.Environment.compile, jinja2.Template.from_code.__func__
    new_context = jinja2.Template.new_context
    sources: dict[Any, str] = {}  # template sources by code object

    def note(source: str, variables: dict[str, Any]) -> None:
        cases.setdefault(repr((source, variables)), (source, variables))

    def recording_compile(self: Any, source: Any, *args: Any, **options: Any) -> Any:
        if not isinstance(source, str):
            return compile(self, source, *args, **options)
        note(source, {})
        code = compile(self, source, *args, **options)
        sources[code] = source
        return code

    def recording_from_code(cls: Any, environment: Any, code: Any, *args: Any) -> Any:
        template = from_code(cls, environment, code, *args)
        template._recorded = sources.get(code)
        return template

    def recording_new_context(self: Any, vars: Any = None, *args: Any) -> Any:
        if getattr(self, "_recorded", None) is not None:
            globals_ = {k: v for k, v in self.globals.items() if k not in DEFAULT_NAMESPACE}
            note(self._recorded, _variables({**globals_, **(vars or {})}))
        return new_context(self, vars, *args)

    patch = pytest.MonkeyPatch()
    patch.setattr(jinja2.Environment, "compile", recording_compile)
    patch.setattr(jinja2.Template, "from_code", classmethod(recording_from_code))
    patch.setattr(jinja2.Template, "new_context", recording_new_context)
    with patch.context():
        yield
    patch.undo()


def collect(folder: Path) -> list[Case]:
    """Returns the templates that the tests in `folder` compile, with the variables that they
    use."""
    cases: dict[str, Case] = {}
    options = [
        "-q",
        "-p",
        "no:xdist",
        "-p",
        "no:cacheprovider",
        "-c",
        str(folder / "pyproject.toml"),
    ]
    with _recorded(cases):
        pytest.main([*options, str(folder / "tests")])
    return list(cases.values())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chat.jinja2_suite")
    parser.add_argument("folder", type=Path)
    cases = collect(parser.parse_args().folder)
    kinds: Counter[str] = Counter()
    for source, variables in cases:
        theirs = jinja_references.transformers(source, variables)
        mine = ggtok_answer(source, variables, "transformers")
        kind = kind_of(source, theirs, mine)
        kinds[kind] += 1
        if kind == "other":
            print(f"{source!r} {variables!r}\n  reference {theirs!r}\n  engine    {mine!r}")
    print(f"{len({source for source, _ in cases})} templates, {len(cases)} cases")
    for kind, n in kinds.most_common():
        print(f"{n:6} {kind}")
    return int(kinds["other"] > 0)


if __name__ == "__main__":
    samples.FULL = True
    sys.exit(main())
