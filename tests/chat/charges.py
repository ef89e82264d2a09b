# ruff: noqa: E501
"""Measures how many instructions templates execute for each step that they are charged.

    python -m tests.chat.charges           # prints instructions for each step
    python -m tests.chat.charges --save    # writes steps.txt: the steps of each builtin

Callgrind counts the instructions of each builtin in both dialects, on each kind of large value and
with each kind of large argument, and of other constructs that loop over names and arguments.
A rendering may use 30 million steps, which should take about a second. If a construct executes far
more instructions than it is charged for, a rendering can take minutes.
"""

from __future__ import annotations

import argparse
import itertools
import re
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.c.build import build
from tests.chat import jinja_tables
from tests.chat.jinja_program import Case, render

JINJA = Path(__file__).resolve().parents[2] / "cext" / "jinja"
EACH = 400  # the maximum number of instructions per step
START = 30_000  # instructions that a rendering may use without charge, for an error, for example

# A large value of each kind: 128 kB of text, or a thousand items.
LARGE: dict[str, Any] = {
    "text": "ab c" * 32_000,
    "digits": "0" * 128_000,
    "wide": "é" * 64_000,
    "markup": "<&%{}" * 12_000,
    "ints": list(range(1000)),
    "words": [f"word {i}" for i in range(1000)],
    "floats": [i + 1 / 3 for i in range(300)],
    "texts": ["ab c" * 2000] * 20,
    "rows": [{"a": i, "word": [i]} for i in range(1000)],
    "dict": {f"key {i}": i for i in range(1000)},
    "huge": 1.7976931348623157e308,
}
_PARTS = "{% set parts %}{% for i in range(2000) %}x{{ i }}{% endfor %}{% endset %}"
_GENERATOR = "(ints | map('string'))"
_OPERANDS = [*LARGE, "parts", _GENERATOR]
_ARGUMENTS = ["text", "digits", "words", "dict", "parts"]
_USUAL = {"old": "'b'", "new": "'x'", "num": "3", "seq": "words", "fill_with": "1", "a": "1"}


class Charged(NamedTuple):
    case: Case
    kind: str
    steps: int
    instructions: int

    @property
    def each(self) -> float:
        return max(0, self.instructions - START) / max(1, self.steps)


def _argument_lists(names: str) -> Iterator[list[str]]:
    """Yields lists of arguments for these parameters: first, a list of usual values; then, lists
    in which one value is large."""

    def usual(name: str) -> str:
        return _USUAL.get(name) or jinja_tables.suitable_argument(name)

    every = names.split()
    yield [usual(name) for name in every]
    for i, large in itertools.product(range(len(every)), _ARGUMENTS):
        yield [
            *(usual(name) for name in every[:i]),
            large,
            *(usual(name) for name in every[i + 1 :]),
        ]


def _python() -> Iterator[str]:
    filters = {
        **jinja_tables.FILTERS,
        "map": "name",
        "select": "name other",
        "reject": "name other",
    }
    for name, parameters in filters.items():
        usual, *large = _argument_lists(parameters)
        for operand in _OPERANDS:
            yield f"({operand} | {name}({', '.join(usual)})) is iterable"
        for operand, arguments in itertools.product(("text", "words"), large):
            yield f"({operand} | {name}({', '.join(arguments)})) is iterable"
        yield f"texts | map('{name}') | list | length"
    for name, parameters in jinja_tables.TESTS.items():
        usual, *large = _argument_lists(parameters)
        for operand in _OPERANDS:
            yield f"{operand} is {name}({', '.join(usual)})"
        for operand, arguments in itertools.product(("text", "words"), large):
            yield f"{operand} is {name}({', '.join(arguments)})"
    kinds = {"str": "text wide", "list": "words", "dict": "dict"}
    for kind, operands in kinds.items():
        for name, parameters in jinja_tables.METHODS[kind].items():
            for operand, arguments in itertools.product(
                operands.split(), _argument_lists(parameters)
            ):
                yield f"{operand}.{name}({', '.join(arguments)}) is none"
    for operand in ("map(attribute='NAME')", "sum(attribute='NAME')", "sort(attribute='NAME')"):
        for name in ("a" * 900, "a." * 400, "0" * 900, "a," * 400):
            yield f"rows | {operand.replace('NAME', name)} | list"


def _llama() -> Iterator[str]:
    rows = (JINJA / "llama/builtins.c").read_text()
    names = sorted({*re.findall(r'^    \{"(\w+)", ON_', rows, re.MULTILINE)})
    arguments = [
        *("'a', text", "text, 'x'", "digits, 3", "parts", "2, true, true", "attribute=digits"),
        *("attribute='a'", "attribute=text", "'a', 'eq', text", "'eq', text", "default=text"),
        *("1, 9999, 2", "1, 9999999, 3", "', '", "text, text"),
    ]
    for name in names:
        for operand, argument in itertools.product(_OPERANDS[:-1], ("", "text")):
            yield f"({operand} | {name}({argument})) is none"
        for operand, argument in itertools.product(("text", "rows", "parts"), arguments):
            yield f"({operand} | {name}({argument})) is none"
    tests = (JINJA / "llama/globals.c").read_text()
    for name in re.findall(r'^    \{"test_is_(\w+)"', tests, re.MULTILINE):
        for operand in _OPERANDS[:-1]:
            yield f"{operand} is {name}"
        for operand, argument in itertools.product(("text", "words"), ("text", "words", "dict")):
            yield f"{operand} is {name}({argument})"


def _both() -> Iterator[str]:
    kinds = ("text", "digits", "words", "dict", "parts")
    for a, op, b in itertools.product(kinds, ("+", "~", "*", "%", "==", "<", "in"), (*kinds, "3")):
        yield f"({a} {op} {b}) is none"
    for a, b in itertools.product(kinds, ("text", "digits", "parts", "2:", "::-1", "1::2")):
        yield f"({a}[{b}]) is none"
    for a in _OPERANDS:
        yield f"{a} ~ ''"
        yield f"[{a}, {a}] | tojson"
        yield f"{a} | string == {a}"


def _templates() -> Iterator[str]:
    """Yields templates for constructs that aren't builtins."""
    numbers = range(400)
    yield "{{ '" + "{}" * 400 + "'.format(" + "1, " * 400 + ") }}"
    yield "{{ '" + "{x}" * 400 + "'.format(" + ", ".join(f"a{i}=1" for i in numbers) + ", x=1) }}"
    yield "{{ '%s' * 400 % (" + "1, " * 400 + ") }}"
    parameters = ", ".join(f"p{i}=0" for i in numbers)
    by_name = ", ".join(f"p{i}=1" for i in reversed(numbers))
    body = f"{{% macro m({parameters}) %}}{{{{ p1 }}}}{{% endmacro %}}"
    yield body + f"{{{{ m({by_name}) }}}}" * 5
    yield body + f"{{{{ m({'1, ' * 400}) }}}}" * 5
    yield f"{body}{{% call m({by_name}) %}}x{{% endcall %}}" * 3
    for loop in ("text", "ints", "words", "dict", "rows", "floats", "parts"):
        yield f"{{% for x in {loop} %}}{{{{ x }}}}{{{{ loop.index }}}}{{% endfor %}}"
        yield f"{{% for x in {loop} if x %}}{{% set y = x %}}{{{{ loop.last }}}}{{% endfor %}}"
    for expression in (
        "1.1 / 3",
        "1e308 * 1.7",
        "1e-308 / 7",
        "7 % 3",
        "7.5 % 1e-300",
        "2 ** 62",
        "'nan' | float",
    ):
        yield f"{{% for i in range(500) %}}{{{{ {expression} }}}}{{% endfor %}}"
    for method in ("center", "ljust", "rjust", "zfill"):
        yield f"{{{{ 'x'.{method}(120000) is none }}}}"
    for method in ("split", "rsplit", "splitlines", "strip", "title", "expandtabs"):
        yield f"{{{{ text.{method}() is none }}}}"
    for escape in ("<", "\\n", "\\\\", "é"):
        yield f"{{{{ '{escape}' * 9000 | tojson }}}}{{{{ ('{escape}' * 9000) | e }}}}{{{{ ['{escape}' * 9000] }}}}"


def cases() -> list[Case]:
    sources: list[tuple[Any, str]] = []
    for source in _python():
        sources.append(("transformers", f"{{{{ {source} }}}}"))
    for source in _llama():
        sources.append(("llama.cpp", f"{{{{ {source} }}}}"))
    for source in (*(f"{{{{ {one} }}}}" for one in _both()), *_templates()):
        sources += [("transformers", source), ("llama.cpp", source)]
    found = []
    for dialect, source in sources:
        named = {*re.findall(r"\w+", source)}
        values = {name: value for name, value in LARGE.items() if name in named}
        found.append(Case(dialect, (_PARTS if "parts" in named else "") + source, values))
    return found


def measure(program: Path, all_cases: Sequence[Case]) -> Iterator[Charged]:
    """Measures cases in batches, because their values are large."""
    for at in range(0, len(all_cases), 400):
        yield from _measure(program, all_cases[at : at + 400])


def _measure(program: Path, batch: Sequence[Case]) -> list[Charged]:
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "counts"
        command = ["valgrind", "--tool=callgrind", "--combine-dumps=yes"]
        first = Case("llama.cpp", "{{ 1 }}")  # its count includes the program's start
        command.append(f"--callgrind-out-file={file}")
        _, *renderings = render([*command, program], [first, *batch])
        counts, at = {}, -1
        for line in file.open():
            if found := re.match(r"desc: Trigger: Client Request: case (\d+)", line):
                at = int(found[1])
            elif line.startswith("desc: Trigger:"):
                at = -1
            elif line.startswith("totals: ") and at >= 0:
                counts[at] = int(line.split()[1])
    return [
        Charged(case, rendering.kind, rendering.steps, counts.get(i + 1, 0))
        for i, (case, rendering) in enumerate(zip(batch, renderings, strict=True))
    ]


STEPS = Path(__file__).with_name("steps.txt")
_NAME = re.compile(r"\| (\w+)\(|\bis (\w+)\(|\.(\w+)\(|\) is (\w+)|\{% (\w+)")


def steps_by_builtin(program: Path, all_cases: Sequence[Case]) -> str:
    """Returns a line for each builtin or other construct in each dialect, with the sum of the steps
    of its cases."""
    sums: Counter[str] = Counter()
    for at in range(0, len(all_cases), 400):
        batch = all_cases[at : at + 400]
        for case, rendering in zip(batch, render([program], batch), strict=True):
            source = case.source.replace(_PARTS, "")
            name = _NAME.search(source)
            construct = next(filter(None, name.groups())) if name else source[:24]
            sums[f"{case.dialect} {construct!r}"] += rendering.steps
    return "".join(f"{name} {steps}\n" for name, steps in sorted(sums.items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--save", action="store_true")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "jinja"
        build(program, ("-O2",), program="jinja")
        if args.save:
            STEPS.write_text(steps_by_builtin(program, cases()))
            return
        measured = sorted(measure(program, cases()), key=lambda charged: -charged.each)
    rendered = sum(charged.kind == "O" for charged in measured)
    print(f"{len(measured)} templates, {rendered} rendered")
    for charged in [charged for charged in measured if charged.each > EACH / 2][:200]:
        shown = charged.case.source.replace(_PARTS, "")
        numbers = f"{charged.each:8.0f} {charged.steps:8}"
        print(f"{numbers} {charged.kind} {charged.case.dialect} {shown[:110]}")


if __name__ == "__main__":
    main()
