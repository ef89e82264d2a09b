"""Compares the template engine with its references on random templates.

    python -m tests.chat.fuzz_jinja --seconds 60 [--dialect llama.cpp] [--seed 0]
    python -m tests.chat.fuzz_jinja --sanitize --seconds 3600

With --sanitize, the engine runs under AddressSanitizer and UndefinedBehaviorSanitizer (including
casts from floats to integers), on the same templates and on each builtin with each kind of value.
Results aren't compared.

`differs` decides which differences count. It ignores the differences that docs/design/jinja.md
documents: integers beyond 64 bits, how functions and generators are printed, and features of
transformers' filters that are useless in templates.
"""

from __future__ import annotations

import argparse
import itertools
import random
import re
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from ggtok.native import jinja
from tests.c.build import SANITIZERS, build
from tests.chat import jinja_references, jinja_tables
from tests.chat.jinja_grammar import VALUES, Grammar, mutated
from tests.chat.jinja_program import Case, CrashError, render
from tests.chat.jinja_references import Answer, ggtok_answer

# Features of jinja2 that ggtok's engine lacks.
_UNSUPPORTED = re.compile(
    r"pprint|random|striptags|urlize|wordwrap|xmlattr|encode|translate|expandtabs"
)
# jinja2 inserts constants that it has computed into Python code, where nan and inf aren't defined.
_FOLDED = re.compile(r"NameError: name '(nan|inf)'")
_SHOWN = re.compile(r" at 0x|<class|<built-in|<generator|<bound|<function", re.IGNORECASE)


def template(seed: int, dialect: str) -> str:
    source = Grammar(seed, python=dialect == "transformers").template()
    return mutated(source, random.Random(seed)) if seed % 5 == 0 else source


def differs(source: str, reference: Answer, mine: Answer, dialect: str) -> bool:
    if reference[0] in "XT" or "bad_alloc" in str(reference[1]):  # the reference crashed or hung
        return False
    if dialect == "transformers":
        shown = f"{reference[1]!r}{mine[1]!r}"
        if _FOLDED.search(str(reference[1])):
            return False
        if "beyond 64 bits" in str(mine[1]) or _UNSUPPORTED.search(source) or _SHOWN.search(shown):
            return False
    if reference[0] == "O" or mine[0] == "O":
        return reference[0] != mine[0] or reference[1] != mine[1]
    return False


_FLAGS = (*SANITIZERS, "-fsanitize=float-cast-overflow")
_BATCH, _STEPS = 300, 300_000  # templates per process; a small step budget, as sanitizers are slow


def sanitized(seed: int, seconds: float, dialect: jinja.Dialect, program: Path) -> int:
    """Prints each template that crashes the program, and how many were tried; returns the number of
    crashes."""
    end, found, kinds = time.monotonic() + seconds, 0, Counter[str]()
    table = jinja_tables.every(dialect)
    while time.monotonic() < end:
        sources = list(itertools.islice(table, _BATCH))
        while len(sources) < _BATCH:
            seed += 1
            sources.append(template(seed, dialect))
        cases = [Case(dialect, source, VALUES) for source in sources]
        while cases:
            try:
                kinds.update(one.kind for one in render([program], cases, 512, _STEPS))
                cases = []
            except CrashError as e:
                if e.case is None:
                    raise
                found += 1
                print(f"{e.case.source!r}\n{e.report[:3000]}", flush=True)
                cases = cases[cases.index(e.case) + 1 :]
    print(f"{sum(kinds.values())} templates, {found} findings; {dict(kinds)}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dialect", choices=("llama.cpp", "transformers"), default="llama.cpp")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sanitize", action="store_true")
    args = parser.parse_args()
    if args.sanitize:
        with tempfile.TemporaryDirectory() as folder:
            program = Path(folder) / "jinja"
            build(program, _FLAGS, program="jinja")
            return int(sanitized(args.seed, args.seconds, args.dialect, program) > 0)
    llama = args.dialect == "llama.cpp"
    reference = jinja_references.LlamaCpp() if llama else jinja_references.transformers
    end, seed, different = time.monotonic() + args.seconds, args.seed, 0
    kinds: Counter[str] = Counter()
    while time.monotonic() < end:
        seed += 1
        source = template(seed, args.dialect)
        theirs, mine = reference(source, VALUES), ggtok_answer(source, VALUES, args.dialect)
        kinds[theirs[0] + mine[0]] += 1
        if differs(source, theirs, mine, args.dialect):
            different += 1
            print(f"seed {seed}: {source!r}\n  reference {theirs!r}\n  engine    {mine!r}")
    print(f"{seed - args.seed} templates, {different} differ; {dict(kinds)}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
