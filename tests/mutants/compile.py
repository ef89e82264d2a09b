"""python -m tests.mutants.compile HOW: compiles the C module in this copy of the checkout, in
place.

HOW is "plain", or "reach", which adds a counter to each basic block, and tests/mutants/reach.c.
"""

from __future__ import annotations

import sys

from tests.c import build

COUNTERS = "-fsanitize-coverage=inline-8bit-counters,pc-table,no-prune"


def main(how: str) -> None:
    objects = build.ROOT / "build" / "mutants" / how
    out = build.ROOT / "ggtok" / "_ffi.abi3.so"
    if how == "reach":
        command = build.command_of((COUNTERS, "-fno-sanitize-link-runtime"), "clang")
        more = [build.ROOT / "tests" / "mutants" / "reach.c"]
        build.build_module(out, command, objects, more)
    else:
        build.build_module(out, build.command_of(("-fPIC",)), objects)


if __name__ == "__main__":
    main(sys.argv[1])
