"""Runs ggtok on hostile input of every kind, in monitored child processes.

    python -m tests.hostile                     # everything: about a quarter of an hour
    python -m tests.hostile --every 100         # one input in a hundred
    python -m tests.hostile --kind limits       # only rows whose names contain "limits"
    python -m tests.hostile --large             # only texts of 1 GB and around 2^31 bytes

Each input is judged (judge.py): it is loaded and used, or rejected with a clear error, or the error
is vague. The table counts the outcomes of each kind of input; "wrong" counts outcomes that the kind
doesn't allow, such as a truncated file that loads. Inputs that crash their process, or take longer
than the row's timeout, are saved in the folder --keep. The exit status is 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from tests.hostile.table import ROWS
from tests.hostile.watch import last_line, table, watch


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.hostile", description=__doc__.split("\n")[0]
    )
    parser.add_argument("--kind", default="", help="only rows whose names contain this")
    parser.add_argument("--every", type=int, default=1, help="only every N-th input", metavar="N")
    parser.add_argument(
        "--keep",
        type=Path,
        default=Path("hostile-findings"),
        help="folder for inputs that crash or hang",
    )
    parser.add_argument("--large", action="store_true", help="only texts of 1 GB and more")
    args = parser.parse_args()
    if args.large:
        from tests.hostile.large import main as large

        return large()
    tallies = []
    for row in ROWS:
        if args.kind in row.name:
            tallies.append(watch(row, args.keep, args.every))
            for line in list(table(tallies[-1:]))[len(tallies) > 1 :]:
                print(line, flush=True)
    if not tallies:
        parser.error(f"no row's name contains {args.kind!r}: {', '.join(row.name for row in ROWS)}")
    print(last_line(tallies))
    return 0 if all(tally.clean for tally in tallies) else 1


if __name__ == "__main__":
    sys.exit(main())
