"""Compares the template engine with its references over random templates.

    python -m tests.chat.fuzz_jinja --seconds 60 [--dialect llama.cpp] [--seed 0]

`differs` decides what counts. Left out of it, as documented in docs/design/jinja.md: integers
beyond 64 bits, how functions and generators are shown, and what transformers' filters do that
are not for templates.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter

from tests.chat import jinja_references
from tests.chat.jinja_grammar import VALUES, Grammar, mutated
from tests.chat.jinja_references import Answer, own

# What jinja2 has and templates here don't.
_LEFT_OUT = re.compile(
    r"pprint|random|striptags|urlize|wordwrap|xmlattr|encode|translate|expandtabs"
)
_SHOWN = re.compile(r" at 0x|<class|<built-in|<generator|<bound|<function", re.IGNORECASE)


def template(seed: int, dialect: str) -> str:
    source = Grammar(seed, python=dialect == "transformers").template()
    return mutated(source, random.Random(seed)) if seed % 5 == 0 else source


def differs(source: str, reference: Answer, mine: Answer, dialect: str) -> bool:
    if reference[0] in "XT" or "bad_alloc" in str(reference[1]):  # it died, or doesn't end
        return False
    if dialect == "transformers":
        shown = f"{reference[1]!r}{mine[1]!r}"
        if "beyond 64 bits" in str(mine[1]) or _LEFT_OUT.search(source) or _SHOWN.search(shown):
            return False
    if reference[0] == "O" or mine[0] == "O":
        return reference[0] != mine[0] or reference[1] != mine[1]
    return False


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--dialect", choices=("llama.cpp", "transformers"), default="llama.cpp")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    llama = args.dialect == "llama.cpp"
    reference = jinja_references.LlamaCpp() if llama else jinja_references.transformers
    end, seed, different = time.monotonic() + args.seconds, args.seed, 0
    kinds: Counter[str] = Counter()
    while time.monotonic() < end:
        seed += 1
        source = template(seed, args.dialect)
        theirs, mine = reference(source, VALUES), own(source, VALUES, args.dialect)
        kinds[theirs[0] + mine[0]] += 1
        if differs(source, theirs, mine, args.dialect):
            different += 1
            print(f"seed {seed}: {source!r}\n  reference {theirs!r}\n  engine    {mine!r}")
    print(f"{seed - args.seed} templates, {different} differ; {dict(kinds)}")
    return int(different > 0)


if __name__ == "__main__":
    sys.exit(main())
