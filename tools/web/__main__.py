"""Writes the generated files in ggtok/page/; with --check, compares them instead."""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from tools.web import module, page

OUT = module.ROOT / "ggtok" / "page"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.web", description=__doc__)
    parser.add_argument(
        "--check",
        action="store_true",
        help="exit with status 1 if a committed file differs from what the sources produce",
    )
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        out = work / "out"
        out.mkdir()
        try:
            module.build(out / "ggtok.wasm", work)
            page.build(out / "ggtok.wasm", out)
        except module.BuildError as failure:
            print(failure, file=sys.stderr)
            return 2
        except ModuleNotFoundError as missing:
            print(f'{missing.name} is not installed: pip install ".[web]"', file=sys.stderr)
            return 2
        differ = 0
        for built in sorted(out.iterdir()):
            kept = OUT / built.name
            data = built.read_bytes()
            same = kept.is_file() and kept.read_bytes() == data
            if args.check and not same:
                print(f"{kept.relative_to(module.ROOT)}: differs from its sources")
                differ += 1
            if not args.check and not same:
                OUT.mkdir(exist_ok=True)
                kept.write_bytes(data)
            print(f"{kept.relative_to(module.ROOT)}: {len(data):,} bytes")
    if differ:
        print("run `python -m tools.web` and commit what it writes", file=sys.stderr)
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
