"""Builds the wheels of every platform on one Linux machine, checks them, and runs them.

    python -m tools.wheels                       # all, to dist/
    python -m tools.wheels --only windows-amd64 macosx-arm64 -o wheels

docs/design/builds.md describes each platform. Needs the extra "wheels".
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from tools.wheels.build import Builder, BuildError
from tools.wheels.check import check
from tools.wheels.run import run
from tools.wheels.targets import BY_NAME, TARGETS, Target


@dataclass
class Result:
    target: Target
    wheel: Path | None
    checks: str
    ran: str
    good: bool = False


def make(target: Target, builder: Builder, with_run: bool, python: str | None) -> Result:
    try:
        wheel = builder.build(target)
    except BuildError as failure:
        print(f"{target.name}: {failure}", file=sys.stderr)
        return Result(target, None, "not built", "not run")
    faults = check(wheel, target, builder.zig, builder.work)
    for fault in faults:
        print(f"{target.name}: {fault}", file=sys.stderr)
    if faults:
        return Result(target, wheel, f"{len(faults)} FAILED", "not run: checks failed")
    if not with_run:
        return Result(target, wheel, "passed", "not run: --no-run", good=True)
    good, ran = run(wheel, target, builder.work, python)
    return Result(target, wheel, "passed", ran, good)


def table(results: list[Result]) -> str:
    lines = ["| wheel | kB | checks | run |", "|---|---|---|---|"]
    for result in results:
        name = result.wheel.name if result.wheel else result.target.name
        size = f"{result.wheel.stat().st_size / 1000:.0f}" if result.wheel else ""
        lines.append(f"| {name} | {size} | {result.checks} | {result.ran} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tools.wheels",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--list", action="store_true", help="print the platforms and exit")
    parser.add_argument(
        "--only",
        nargs="+",
        choices=sorted(BY_NAME),
        metavar="PLATFORM",
        help="the platforms to build (default: all)",
    )
    parser.add_argument(
        "-o", "--out", type=Path, default=Path("dist"), metavar="DIR", help="default: dist"
    )
    parser.add_argument(
        "-j", "--jobs", type=int, default=2, metavar="N", help="platforms at a time (default: 2)"
    )
    parser.add_argument(
        "--run",
        action=argparse.BooleanOptionalAction,
        default=True,
        help="run each wheel where this machine can (default: yes)",
    )
    parser.add_argument(
        "--python",
        action="append",
        default=[],
        metavar="PLATFORM=COMMAND",
        help="the command of a Python that runs the wheels of this platform",
    )
    args = parser.parse_args()
    pythons = dict(text.partition("=")[::2] for text in args.python)
    if unknown := pythons.keys() - BY_NAME.keys():
        parser.error(f"--python: unknown platform {', '.join(sorted(unknown))} (--list has them)")
    if args.list:
        print("\n".join(f"{target.name:20} {target.tag}" for target in TARGETS))
        return 0
    targets = [BY_NAME[name] for name in args.only] if args.only else TARGETS
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ggtok-wheels-") as folder:
        try:
            builder = Builder(Path(folder), args.out.resolve())
        except BuildError as failure:
            print(failure, file=sys.stderr)
            return 2
        except ModuleNotFoundError as missing:
            print(f'{missing.name} is not installed: pip install ".[wheels]"', file=sys.stderr)
            return 2
        with ThreadPoolExecutor(args.jobs) as pool:
            futures = [
                pool.submit(make, t, builder, args.run, pythons.get(t.name)) for t in targets
            ]
            results = [future.result() for future in futures]
    print(table(results))
    return 0 if all(result.good for result in results) else 1


if __name__ == "__main__":
    sys.exit(main())
