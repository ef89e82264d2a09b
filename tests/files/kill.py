"""Kills runs of ``encode_files`` with SIGKILL at random moments, and resumes them.

python -m tests.files.kill MODEL SOURCE... [--kills N] [--checkpoint BYTES] [--format F]

Encodes the sources once without interruption and once with N kills, compares all files, and prints
how much work was done twice. The tests run a small variant.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ggtok
from ggtok.corpora import run

# The code of a child process, which sets size limits and then encodes.
_CHILD = """
import json, sys
import ggtok
from ggtok.corpora import run
model, sources, out, options, sizes = json.loads(sys.argv[1])
for name, value in sizes.items():
    setattr(run, name, value)
ggtok.load(model).encode_files(sources, out, **options)
"""


def child(
    model: str, sources: Sequence[str], out: Path, options: dict[str, Any], sizes: dict[str, int]
) -> subprocess.Popen[bytes]:
    arguments = json.dumps([model, list(sources), str(out), options, sizes])
    return subprocess.Popen([sys.executable, "-c", _CHILD, arguments])


def killed(
    model: str,
    sources: Sequence[str],
    folder: Path,
    options: dict[str, Any],
    sizes: dict[str, int],
    kills: int,
    seed: int = 0,
) -> list[int]:
    """Encodes to ``folder/o`` with this number of kills; returns how many bytes of ids each kill
    lost."""
    r = random.Random(seed)
    out = folder / "o"
    partial, journal = Path(f"{out}.partial"), Path(f"{out}.journal")
    whole = folder.parent / "whole" / "o"
    total = whole.stat().st_size
    # The output sizes at which to kill the run, in ascending order, so that all are reached.
    moments = sorted(r.randrange(total) for _ in range(kills))
    lost = []
    for moment in moments:
        process = child(model, sources, out, options, sizes)
        while process.poll() is None and size(partial) < moment:
            time.sleep(0.0005)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
            lost.append(size(partial) - checkpointed(journal))
    process = child(model, sources, out, options, sizes)
    assert process.wait() == 0
    return lost


def size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:
        return 0


def checkpointed(journal: Path) -> int:
    """Returns the size of the file with the ids at the last checkpoint."""
    done = 0
    for line in journal.read_bytes().splitlines(keepends=True):
        entry = json.loads(line[9:]) if line.endswith(b"\n") else {}
        if "checkpoint" in entry:
            done = entry["checkpoint"]["data"][0]
    return done


def compare(
    model: str,
    sources: Sequence[str],
    folder: Path,
    options: dict[str, Any],
    sizes: dict[str, int],
    kills: int,
    seed: int = 0,
) -> list[int]:
    """Runs once with and once without kills in `folder`, and asserts that all files are equal;
    returns how many bytes each kill lost."""
    for name in ("whole", "killed"):
        (folder / name).mkdir()
    process = child(model, sources, folder / "whole" / "o", options, sizes)
    assert process.wait() == 0
    lost = killed(model, sources, folder / "killed", options, sizes, kills, seed)
    names = sorted(os.listdir(folder / "whole"))
    assert sorted(os.listdir(folder / "killed")) == names
    for name in names:
        command = ["cmp", str(folder / "whole" / name), str(folder / "killed" / name)]
        subprocess.run(command, check=True)
    return lost


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model")
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--checkpoint", type=int, default=run.CHECKPOINT)
    parser.add_argument("--format", default="raw")
    parser.add_argument("--folder", help="for the output, 3 times as large as the sources")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    args = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="ggtok-kill-", dir=args.folder))
    try:
        options = {"format": args.format, "errors": "replace"}
        sizes = {"CHECKPOINT": args.checkpoint}
        kills = args.kills
        lost = compare(args.model, args.sources, folder, options, sizes, kills, args.seed)
    finally:
        shutil.rmtree(folder)
    print(f"seed {args.seed}: {len(lost)} kills of {kills}; the files are equal")
    shown = ", ".join(f"{n / 1e6:.1f}" for n in lost)
    print(f"MB of ids done again after each: {shown}; a checkpoint is {args.checkpoint / 1e6:.1f}")


if __name__ == "__main__":
    ggtok.__version__  # noqa: B018
    main()
