"""The command line for fuzzers written in Python."""

from __future__ import annotations

import argparse
from collections.abc import Callable

# A function of a seed and a number of seconds that returns how many inputs were tried, how many of
# these were accepted, and how many findings there were.
Fuzz = Callable[[int, float], tuple[int, int, int]]


def main(prog: str, description: str | None, fuzz: Fuzz) -> int:
    parser = argparse.ArgumentParser(
        prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    n, accepted, findings = fuzz(args.seed, args.seconds)
    print(f"{n} inputs, {accepted} accepted, {findings} findings in {args.seconds} s")
    return 1 if findings else 0
