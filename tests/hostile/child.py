"""The child process: judges inputs START, START + STEP, ... of a row.

    python -m tests.hostile.child ROW START STOP STEP BOARD

BOARD is a file that this process and its parent both map. It contains the number of the current
input and the count of each outcome, so that nothing is lost if this process dies. Notes on inputs
are written to standard output as JSON lines.
"""

from __future__ import annotations

import json
import mmap
import struct
import sys
import warnings

from tests.hostile.judge import OUTCOMES, VAGUE, Verdict

try:
    import resource
except ImportError:  # Windows
    resource = None  # type: ignore[assignment]

# The number of the current input, the count of each outcome, and the count of wrong outcomes.
BOARD = struct.Struct(f"<q{len(OUTCOMES) + 1}q")
WRONG = len(OUTCOMES) + 1


def limit_memory(more: int) -> None:
    """Limits this process to `more` additional bytes of memory. An input that makes ggtok request
    more gets a MemoryError, which counts as vague."""
    if resource is None or sys.platform != "linux":
        return
    with open("/proc/self/statm") as statm:
        now = int(statm.read().split()[0]) * mmap.PAGESIZE
    resource.setrlimit(resource.RLIMIT_AS, (now + more, now + more))


def main(name: str, start: str, stop: str, step: str, board_path: str) -> None:
    from tests.hostile.table import row_of

    row = row_of(name)
    with open(board_path, "r+b") as file:
        board = mmap.mmap(file.fileno(), BOARD.size)
    counts = memoryview(board).cast("q")
    warnings.simplefilter("ignore")
    if row.memory:
        limit_memory(row.memory)
    for i in range(int(start), int(stop), int(step)):
        counts[0] = i
        try:
            verdict = row.judge(i)
        except Exception as error:
            verdict = Verdict(VAGUE, f"{type(error).__name__}: {error}")
        counts[1 + verdict.outcome] += 1
        wrong = verdict.outcome not in row.allowed
        counts[WRONG] += wrong
        if verdict.note or wrong:
            note = verdict.note or f"{OUTCOMES[verdict.outcome]!r} isn't an allowed outcome"
            print(json.dumps([i, note]), flush=True)
    counts[0] = -1  # the row is done


if __name__ == "__main__":
    main(*sys.argv[1:])
