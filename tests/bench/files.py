"""Encodes files of text to files of ids: ``encode_files`` compared with gigatoken and with copying.

    python -m tests.bench files                    # the texts of the other groups
    python -m tests.bench.files MODEL SOURCE...    # any files

Each round times ggtok (ids as uint32, with fsync and rename) and gigatoken (which returns ids in
memory, so the benchmark writes them, with fsync), each in a new process, and, as a lower bound,
reading the sources and copying ggtok's result with fsync. Prints the wall-clock time without
loading, CPU time and peak memory. Sources that fit in memory are in the page cache after the first
round.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from tests.bench import corpora
from tests.bench.convert import convert
from tests.bench.peers import OURS
from tests.bench.process import PeerFailureError
from tests.bench.suite import DETAILED, Suite

_END = """
import json, os, resource
used = resource.getrusage(resource.RUSAGE_SELF)
print(json.dumps([seconds, used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, n]))
"""
_GGTOK = """
import sys, time
import ggtok
tok = ggtok.load(sys.argv[1])
start = time.perf_counter()
done = tok.encode_files(
    sys.argv[3:], sys.argv[2], dtype="uint32", add_special=False, eos=False, errors="replace"
)
seconds, n = time.perf_counter() - start, done.ids
"""
_GIGATOKEN = """
import os, sys, time
import gigatoken, awkward, numpy
tok = gigatoken.Tokenizer(sys.argv[1])
start = time.perf_counter()
ids = tok.encode_files(gigatoken.TextFileSource(sys.argv[3:]))
flat = numpy.asarray(awkward.flatten(ids))
with open(sys.argv[2], "wb") as file:
    flat.astype("<u4", copy=False).tofile(file)
    os.fsync(file.fileno())
seconds, n = time.perf_counter() - start, len(flat)
"""

# Wall-clock seconds, CPU seconds, peak memory in MB, number of ids.
Sample = tuple[float, float, float, int]


def sample(script: str, *arguments: str) -> Sample:
    completed = subprocess.run(
        [sys.executable, "-c", script + _END, *arguments], capture_output=True, text=True
    )
    if completed.returncode:
        raise PeerFailureError(completed.stderr.strip().splitlines()[-1])
    seconds, cpu, memory, n = json.loads(completed.stdout.splitlines()[-1])
    return seconds, cpu, memory, n


def copied(sources: Sequence[str], result: Path, copy: Path) -> float:
    """Returns the seconds it takes to read all sources and to copy the result to disk."""
    start = time.perf_counter()
    for path in sources:
        with open(path, "rb", buffering=0) as file:
            while file.read(1 << 20):
                pass
    shutil.copyfile(result, copy)
    with copy.open("rb") as file:
        os.fsync(file.fileno())
    return time.perf_counter() - start


def files(suite: Suite) -> None:
    texts = [corpora.code(), corpora.prose(), *suite.options.corpora]
    source = suite.folder / "files.txt"
    source.write_text("".join(corpus.text for corpus in texts), "utf-8")
    size = source.stat().st_size
    for vocab in suite.vocabs(DETAILED[0]):
        out = suite.folder / f"{vocab}.ids"

        def take(script: str, peer: str, vocab: str = vocab, out: Path = out) -> float:
            out.unlink(missing_ok=True)
            Path(f"{out}.manifest.json").unlink(missing_ok=True)
            path = str(suite.path(peer, vocab))
            return size / sample(script, path, str(out), str(source))[0] / 1e6

        takers = {OURS: lambda _, take=take: take(_GGTOK, OURS)}
        if "gigatoken" in suite.options.peers:
            takers["gigatoken"] = lambda _, take=take: take(_GIGATOKEN, "gigatoken")
        suite.measure(suite.row("files", vocab, "code and prose", "file to file"), takers)
        take(_GGTOK, OURS)
        row = suite.row("files", vocab, "code and prose", "read, copy the ids")
        copying = partial(copied, [str(source)], out, suite.folder / "copy")
        suite.measure(row, {OURS: lambda _, copying=copying: size / copying() / 1e6})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path)
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--folder", help="a folder with room for the output, about twice the sources' size"
    )
    args = parser.parse_args()
    size = sum(Path(path).stat().st_size for path in args.sources)
    with tempfile.TemporaryDirectory(prefix="ggtok-bench-", dir=args.folder) as name:
        folder = Path(name)
        out, copy = folder / "ids", folder / "copy"
        vocabulary, _ = convert(args.model, folder)
        scripts = {OURS: (_GGTOK, args.model), "gigatoken": (_GIGATOKEN, vocabulary.json)}
        for _ in range(args.rounds):
            for peer, (script, path) in reversed(scripts.items()):
                for old in (out, Path(f"{out}.manifest.json")):
                    old.unlink(missing_ok=True)
                seconds, cpu, memory, n = sample(script, str(path), str(out), *args.sources)
                print(
                    f"{peer}: {seconds:.2f} s, {size / seconds / 1e6:.0f} MB/s, CPU {cpu:.1f} s, "
                    f"{memory:.0f} MB, {n} ids"
                )
            print(f"read and copy: {copied(args.sources, out, copy):.2f} s")


if __name__ == "__main__":
    main()
