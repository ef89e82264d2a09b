"""python -m tests.mutants: finds out which tests detect faults in the code, and how long they take.

    python -m tests.mutants --list --count 20       # the mutants that this seed selects
    python -m tests.mutants --costs                 # measures the time of each group of tests
    python -m tests.mutants --count 30 --lang c     # tries mutants; prints the table
    python -m tests.mutants --table                 # the table of the results so far

A mutant is one small change to the C code in cext/ or the Python code in ggtok/. It is built in a
copy of the checkout. Then the tests that reach the changed line run, first without --full and, only
if all of them pass, with it. The lines that each test reaches are measured once, with clang's
counters of basic blocks and coverage.py. The folder --work keeps these measurements, the costs and
results.jsonl, so that the next run can continue. A mutant that doesn't compile, or compiles to the
same module, is replaced by the next one.
"""

from __future__ import annotations

import argparse
import itertools
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.mutants import groups, reach
from tests.mutants.mutant import sample
from tests.mutants.sources import LANGUAGES, ROOT, mutants
from tests.mutants.table import Table
from tests.mutants.trial import Trial, commit


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seed", type=int, default=1, help="selects the mutants")
    parser.add_argument(
        "--count", type=int, default=20, help="mutants of each language (default: 20)"
    )
    parser.add_argument("--lang", choices=LANGUAGES, help="default: both")
    parser.add_argument("--list", action="store_true", help="only print the mutants")
    parser.add_argument("--costs", action="store_true", help="measure how long each group takes")
    parser.add_argument("--reach", action="store_true", help="measure again what each test reaches")
    parser.add_argument("--table", action="store_true", help="only print the table")
    parser.add_argument(
        "-n", type=int, default=1, help="number of processes that measure what tests reach"
    )
    parser.add_argument(
        "--enough", type=int, default=3, help="number of failed groups after which a trial stops"
    )
    parser.add_argument(
        "--most",
        type=int,
        default=10**6,
        help="maximum number of tests of a group, drawn at random",
    )
    parser.add_argument(
        "--minutes", type=float, default=600, help="start no mutant after this time"
    )
    parser.add_argument("--work", type=Path, default=ROOT / "build" / "mutants-work")
    parser.add_argument("--no-resume", action="store_true", help="forget earlier results")
    return parser.parse_args()


def read(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text("utf-8").splitlines()]


def try_mutants(args: argparse.Namespace, results: Path) -> None:
    known = {result["name"]: result for result in read(results)}
    end = time.time() + 60 * args.minutes
    reach.measure(args.work, args.n, args.reach)
    trial = Trial(args.work, args.enough, args.most, end)
    for language in [args.lang] if args.lang else LANGUAGES:
        tried = 0
        for mutant in sample(mutants(language), args.seed):
            if tried == args.count or time.time() > end:
                break
            result = known.get(mutant.name)
            if result is None or result["state"] == "unfinished":
                result = trial(mutant) | {"commit": commit()}
                with results.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(result) + "\n")
            tried += "plain" in result
            killers = {m: sorted(result.get(m, {}).get("failed", {})) for m in groups.MODES}
            print(f"{result['state']:10} {mutant.name} {killers}", flush=True)


def main() -> int:
    args = parse()
    if args.list:
        for language in [args.lang] if args.lang else LANGUAGES:
            for mutant in itertools.islice(sample(mutants(language), args.seed), args.count):
                print(f"{mutant.change.kind:10} {mutant.name}")
        return 0
    args.work = args.work.resolve()
    args.work.mkdir(parents=True, exist_ok=True)
    results = args.work / "results.jsonl"
    if args.no_resume:
        results.unlink(missing_ok=True)
    missing = [tool for tool in ("clang", "llvm-dwarfdump") if not shutil.which(tool)]
    if missing and not (args.costs or args.table):
        sys.exit(f"{' and '.join(missing)} not found: needed to measure what tests reach")
    if args.costs:
        groups.measure(args.work)
    elif not args.table:
        try_mutants(args, results)
    last = {result["name"]: result for result in read(results)}
    seconds, costs = (
        json.loads(path.read_text("utf-8")) if path.exists() else {}
        for path in (args.work / "seconds.json", args.work / "costs.json")
    )
    print(Table(last.values(), groups.plain_tests(ROOT), seconds, costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
