"""python -m tests.bench [GROUP ...]: times ggtok against llama.cpp and other tokenizers.

    python -m tests.bench                                  # a quick look, two minutes
    python -m tests.bench encode --vocab qwen2 --peer gigatoken
    python -m tests.bench --full --corpus DIR --out DIR    # everything, hours

Groups: job, encode, fresh, corpora, batch, load, prompts, memory, worst, threads, models,
offsets, pre, chat, files, stream (described in groups.py, job.py, fresh.py and files.py).
`pip install -e ".[bench]"` installs the other tokenizers; the report lists the missing ones.

All tokenizers are converted from the same GGUF file (convert.py), and each runs in a separate
process on one core. Ids are compared in other processes before anything is timed. Each round takes
one sample of every tokenizer, so that a slow minute of the machine affects all of them. The best
and median samples are printed; the JSON file has all samples.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.bench import corpora, groups, machine, plot, report
from tests.bench.chat import chat
from tests.bench.files import files
from tests.bench.fresh import batch, fresh
from tests.bench.fresh import corpora as whole_corpora
from tests.bench.grown import GROWN
from tests.bench.job import job
from tests.bench.offsets import offsets
from tests.bench.peers import OURS, PEERS
from tests.bench.pre import pre
from tests.bench.process import PeerFailureError, cores
from tests.bench.sample import sample
from tests.bench.stream import stream
from tests.bench.suite import Options, Suite, installed
from tests.support.vocabularies import OTHERS, REAL, fixture_names

GROUPS = {
    "encode": groups.encode,
    "fresh": fresh,
    "corpora": whole_corpora,
    "batch": batch,
    "load": groups.load,
    "prompts": groups.prompts,
    "job": job,
    "memory": groups.memory,
    "worst": groups.worst,
    "threads": groups.threads,
    "models": groups.models,
    "offsets": offsets,
    "pre": pre,
    "chat": chat,
    "files": files,
    "stream": stream,
    "sample": sample,
}
QUICK = ("encode", "load", "prompts", "job")


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--vocab", action="append", default=[], help="repeatable")
    parser.add_argument("--peer", action="append", default=[], help="repeatable")
    parser.add_argument("--rounds", type=int, help="default: 3, with --full 7")
    parser.add_argument("--corpus", type=Path, help="a folder of *.txt to take texts from")
    parser.add_argument("--out", type=Path, help="write bench.json, bench.md and plots here")
    parser.add_argument("--full", action="store_true", help="all groups, all cases")
    args = parser.parse_args()
    for kind, names, available in (
        ("group", args.groups, GROUPS),
        ("peer", args.peer, PEERS),
        ("vocabulary", args.vocab, (*REAL, *OTHERS, *fixture_names(), *GROWN)),
    ):
        if unknown := sorted(set(names) - set(available)):
            parser.error(
                f"no such {kind}: {', '.join(unknown)} (there are: {', '.join(available)})"
            )
    if args.corpus and not args.corpus.is_dir():
        parser.error(f"no such folder: {args.corpus}")
    return args


def _document(suite: Suite, missing: list[str], seconds: float) -> dict[str, Any]:
    options = suite.options
    texts = [corpora.prose(), corpora.code(), *options.corpora, corpora.mixed(options.corpora)]
    return {
        "machine": machine.machine(),
        "versions": {peer: machine.version(peer) for peer in options.peers} | suite.versions,
        "missing": missing,
        "corpora": [corpus.describe() for corpus in texts],
        "options": {
            "rounds": options.rounds,
            "full": options.full,
            "at_least_ms": options.at_least / 1e6,
            "llama_cpp_bytes": options.slow_bytes,
        },
        "seconds": round(seconds, 1),
        "notes": suite.notes,
    }


def main() -> int:
    args = _arguments()
    here, missing = installed()
    if OURS in missing:
        raise SystemExit("ggtok is not installed")
    peers = [p for p in here if not args.peer or p in args.peer or p == OURS]
    missing = [p for p in missing if not args.peer or p in args.peer]
    for peer in missing:
        print(f"{peer}: not installed", file=sys.stderr)
    more = corpora.folder(args.corpus) if args.corpus else []
    rounds = args.rounds or (7 if args.full else 3)
    load_average = machine.machine().get("load_average_before")
    if workers := cores(1):
        # Keeps this process off the workers' cores, unless there are no other cores.
        os.sched_setaffinity(0, os.sched_getaffinity(0) - set(workers) or set(workers))
    for number in (signal.SIGINT, signal.SIGTERM):  # a background job ignores SIGINT otherwise
        signal.signal(number, signal.default_int_handler)
    started = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="ggtok-bench-") as folder:
        suite = Suite(Options(args.vocab, peers, rounds, args.full, more), Path(folder))
        try:
            for name in args.groups or (GROUPS if args.full else QUICK):
                before = len(suite.rows)
                GROUPS[name](suite)
                seconds = time.monotonic() - started
                print(
                    f" {name}: {len(suite.rows) - before} rows, {seconds:.0f} s so far",
                    file=sys.stderr,
                )
        except KeyboardInterrupt:
            print(" interrupted; the results so far follow", file=sys.stderr)
        except PeerFailureError as error:
            print(f" {error}; the results so far follow", file=sys.stderr)
    document = _document(suite, missing, time.monotonic() - started)
    document["machine"]["load_average_before"] = load_average
    print(report.terminal(document, suite.rows))
    if args.out:
        report.write(args.out, document, suite.rows)
        if not plot.plot(args.out, document, suite.rows):
            print(
                "no plot: matplotlib is missing, or no result is of encode, models or threads",
                file=sys.stderr,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
