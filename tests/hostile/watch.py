"""Runs a row's inputs in child processes, and survives their crashes.

Claim files.1.
"""

from __future__ import annotations

import json
import mmap
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.hostile import TESTS
from tests.hostile.child import BOARD, WRONG
from tests.hostile.judge import OUTCOMES
from tests.hostile.table import Row

CHILD = f"{TESTS}; from tests.hostile import child; child.main(*sys.argv[1:])"
REMARKS = 5  # maximum number of remarks per row


@dataclass
class Tally:
    kind: str
    inputs: int = 0
    outcomes: list[int] = field(default_factory=lambda: [0] * len(OUTCOMES))
    wrong: int = 0  # number of outcomes that the row doesn't allow
    crashes: int = 0
    hangs: int = 0
    seconds: float = 0.0
    remarks: list[str] = field(default_factory=list)

    @property
    def vague(self) -> int:
        return self.outcomes[-1]

    @property
    def clean(self) -> bool:
        return not (self.wrong or self.crashes or self.hangs or self.vague)


def watch(row: Row, keep: Path, step: int = 1) -> Tally:
    """Runs every `step`-th input of a row. Inputs that kill the child are written to `keep`."""
    tally = Tally(row.name)
    began = time.monotonic()
    start, stop = 0, len(row)
    while start < stop:
        culprit, ending = _one_child(row, start, stop, step, tally)
        if culprit is None:
            break
        tally.inputs += 1
        if ending == "hang":
            tally.hangs += 1
        else:
            tally.crashes += 1
        keep.mkdir(parents=True, exist_ok=True)
        path = keep / f"{row.name.replace(' ', '-').replace(':', '')}-{culprit}.gguf"
        path.write_bytes(row.keep(culprit))
        tally.remarks.append(f"{ending} on {row.describe(culprit)}: {path}")
        start = culprit + step
    tally.seconds = time.monotonic() - began
    return tally


def _one_child(row: Row, start: int, stop: int, step: int, tally: Tally) -> tuple[int | None, str]:
    """Runs one child process. Returns the number of the input that killed it, or None, and how the
    process ended."""
    with (
        tempfile.NamedTemporaryFile() as file,
        tempfile.TemporaryFile() as output,
        tempfile.TemporaryFile() as errors,
    ):
        file.write(bytes(BOARD.size))
        file.flush()
        board = mmap.mmap(file.fileno(), BOARD.size)
        BOARD.pack_into(board, 0, start, *[0] * (len(OUTCOMES) + 1))
        arguments = [row.name, str(start), str(stop), str(step), file.name]
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, *arguments],
            cwd=tempfile.gettempdir(),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
        )
        ending = _until_it_ends(child, board, row.timeout)
        at, *counts = BOARD.unpack_from(board)
        for outcome in range(len(OUTCOMES)):
            tally.outcomes[outcome] += counts[outcome]
            tally.inputs += counts[outcome]
        tally.wrong += counts[WRONG - 1]
        output.seek(0)
        for i, note in map(json.loads, output.read().splitlines()):
            if len(tally.remarks) < REMARKS:
                tally.remarks.append(f"{row.describe(i)}: {note}")
        errors.seek(0)
        printed = errors.read().decode("utf-8", "replace").strip()
        if at == -1:
            if printed:  # the library must not print anything
                tally.wrong += 1
                tally.remarks.append(f"the child printed: {printed[-500:]}")
            return None, ""
        return at, f"{ending} ({printed[-300:]})" if printed and ending != "hang" else ending


def _until_it_ends(child: subprocess.Popen[bytes], board: mmap.mmap, timeout: float) -> str:
    seen, since = None, time.monotonic()
    while True:
        try:
            return f"exit status {child.wait(timeout=0.2)}"
        except subprocess.TimeoutExpired:
            pass
        now = BOARD.unpack_from(board)
        if now != seen:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since > timeout:
            child.kill()
            child.wait()
            return "hang"


def table(tallies: list[Tally]) -> Iterator[str]:
    heads = [
        "inputs",
        "loaded",
        "GGUFError",
        "VocabError",
        "other",
        "vague",
        "wrong",
        "crash",
        "hang",
    ]
    yield f"{'kind':<40}" + "".join(f"{head:>11}" for head in heads) + f"{'s':>8}"
    for t in tallies:
        numbers = [t.inputs, *t.outcomes, t.wrong, t.crashes, t.hangs]
        yield f"{t.kind:<40}" + "".join(f"{n:>11,}" for n in numbers) + f"{t.seconds:>8.1f}"
        for remark in t.remarks:
            yield f"    {remark}"


def last_line(tallies: list[Tally]) -> str:
    total = [
        sum(n)
        for n in zip(*((t.inputs, t.crashes, t.hangs, t.vague) for t in tallies), strict=True)
    ]
    return "hostile: {:,} inputs, {} crashes, {} hangs, {} vague errors".format(*total)
