"""Computes how much stack the template engine's recursion needs, from gcc's call graph.

    python -m tests.chat.stack

A function enters a level by calling jinja_enter. `worst` finds the cycle of calls that needs the
most stack per level; a cycle that enters no level would be unbounded recursion. The parser is
excluded, since its levels are fewer and larger; tests measure its stack.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

JINJA = Path(__file__).resolve().parents[2] / "cext" / "jinja"
PARSER = "parser.c"
ENTERS = "ggtok_jinja_fail_depth"  # a function that the inline jinja_enter calls
RETURN_ADDRESS = 8  # bytes


def _rules(fields: str) -> tuple[str, re.Pattern[str]]:
    """Returns the files with the dialects' tables of rules, and a pattern for the functions in
    these fields of the tables."""
    pattern = rf"^    \.(?:{fields.replace(' ', '|')}) = (\w+),$"
    return "llama/eval python/exec", re.compile(pattern, re.MULTILINE)


_ROWS = re.compile(r'^    \{"[^"]+", [^{}]*?(?:", )?(\w+), \w[\w |]*\},$', re.MULTILINE)
_LLAMA_ROWS = re.compile(r'^    \{"[^"]+", [\w |]+,\s+(\w+),\s+(?:NULL|"[^"]*")\},$', re.MULTILINE)
# Calls through pointers. For the names of callers: files, and a pattern that finds in them the
# functions that may be called.
POINTERS = {
    "ggtok_jinja_eval": _rules("name"),
    "eval_nested": _rules(
        "binary sign truth attribute item slice call filter test concat missing set_key"
    ),
    "ggtok_jinja_truth_of": _rules("truth"),
    "compile": _rules("lex plan_scopes"),
    "render_output": _rules("render"),
    "settle ggtok_jinja_capture exec_if": _rules("settle"),
    "open_block": _rules("open_frame"),
    "filter_chain": _rules("filter"),
    "output_sum": _rules("binary output"),
    "ggtok_jinja_exec": _rules("output set loop macro call_block scope"),
    "ggtok_jinja_llama_call_block exec_call_block": _rules("output"),
    "ggtok_jinja_python_apply": ("python/builtins", _ROWS),
    "eval_filter ggtok_jinja_llama_invoke": ("llama/builtins llama/globals", _LLAMA_ROWS),
    "eval_test select_items": ("llama/globals", _LLAMA_ROWS),
    "merge_sort": ("python/list", re.compile(r"^static bool (goes_before|less)\(", re.MULTILINE)),
    "less ggtok_stl_sort ggtok_jinja_llama_sort": (
        "llama/list",
        re.compile(r"^static bool (less_\w+)\(", re.MULTILINE),
    ),
    "ggtok_jinja_protect": ("", re.compile("$^")),  # what it calls never calls it
}
# Calls that can't close a cycle, and why.
HARMLESS = {
    (
        "core/strftime:expand_text",
        "core/strftime:expand",
    ): "the expansion of a composite format has no composite formats",
}


class Graph(NamedTuple):
    stack: dict[str, int]
    calls: dict[str, set[str]]
    levels: set[str]


def read(folder: Path, cc: str = "gcc", flags: tuple[str, ...] = ("-O2", "-fPIC")) -> Graph:
    """Compiles the engine's files to the folder, and reads their call graphs."""
    stack: dict[str, int] = {}
    calls: dict[str, set[str]] = defaultdict(set)
    for source in sorted(JINJA.rglob("*.c")):
        if source.name == PARSER:
            continue
        object_file = folder / f"{_key(source).replace('/', '-')}.o"
        command = [cc, "-std=c11", *flags, f"-I{JINJA.parent}", "-fcallgraph-info=su"]
        command += ["-c", str(source), "-o", str(object_file)]
        subprocess.run(command, check=True, env={**os.environ, "CCACHE_DISABLE": "1"})
        _read_graph(source, object_file.with_suffix(".ci").read_text(), stack, calls)
    levels = {name for name, called in calls.items() if ENTERS in called}
    for caller, name in HARMLESS:
        calls[caller].discard(name)
    return Graph(stack, {name: called & stack.keys() for name, called in calls.items()}, levels)


def _key(source: Path) -> str:
    return source.relative_to(JINJA).with_suffix("").as_posix()


def _read_graph(
    source: Path, graph: str, stack: dict[str, int], calls: dict[str, set[str]]
) -> None:
    def named(title: str) -> str:
        _, colon, function = title.rpartition(":")
        return f"{_key(source)}:{function}" if colon else function

    for title, size in re.findall(r'title: "([^"]+)" label: "[^"]*?(\d+) bytes', graph):
        stack[named(title)] = int(size) + RETURN_ADDRESS
    for caller, called in re.findall(r'sourcename: "([^"]+)" targetname: "([^"]+)"', graph):
        if called != "__indirect_call":
            calls[named(caller)].add(named(called))
            continue
        callees = _behind_pointers(named(caller))
        calls[named(caller)] |= callees


def _behind_pointers(caller: str) -> set[str]:
    function = re.sub(r"\..*", "", caller.rpartition(":")[2])  # drop suffixes such as .part.0
    rows = [row for callers, row in POINTERS.items() if function in callers.split()]
    if not rows:
        raise LookupError(f"{caller} calls through a pointer: which functions?")
    files, pattern = rows[0]
    found = set()
    for file in files.split():
        for name in pattern.findall((JINJA / f"{file}.c").read_text()):
            found.add(name if name.startswith("ggtok_") else f"{file}:{name}")
    return found


def worst(graph: Graph) -> tuple[float, list[str]]:
    """Returns the most stack per level that a cycle of calls needs, in bytes, and that cycle."""
    low, high, cycle = 0.0, float(sum(graph.stack.values())), []
    while high - low > 1:
        middle = (low + high) / 2
        if found := _cycle_over(graph, middle):
            low, cycle = middle, found
        else:
            high = middle
    return high, cycle


def _cycle_over(graph: Graph, each: float) -> list[str]:
    """Returns a cycle that needs more than `each` bytes per level, or an empty list."""
    weight = {name: size - each * (name in graph.levels) for name, size in graph.stack.items()}
    longest = dict.fromkeys(graph.stack, 0.0)
    before: dict[str, str] = {}
    last = ""
    for _ in range(len(graph.stack) + 1):
        last = ""
        for caller, called in graph.calls.items():
            if caller not in longest:
                continue
            for name in called:
                if longest[caller] + weight[name] > longest[name] + 1e-6:
                    longest[name] = longest[caller] + weight[name]
                    before[name], last = caller, name
        if not last:
            return []
    for _ in range(len(graph.stack)):
        last = before[last]
    cycle = [last]
    while before[cycle[-1]] != last:
        cycle.append(before[cycle[-1]])
    return cycle[::-1]


def main() -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        graph = read(Path(folder))
    each, cycle = worst(graph)
    print(f"{each:.0f} bytes for each level at most")
    for name in cycle:
        print(f"  {graph.stack[name]:5} {name}{' (a level)' if name in graph.levels else ''}")


if __name__ == "__main__":
    main()
