"""job: what a user waits for: a new process that reads a text, imports the tokenizer, loads its
file and encodes the text. In ms of processor time, and MB of memory at the peak.

The file is in the format from which the tokenizer loads fastest. The times include the start of
Python, which is also a row of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from tests.bench.corpora import MB, mixed, prose, size
from tests.bench.peers import ONE, ONE_LIST, OURS, PEERS, REFERENCE
from tests.bench.process import PeerFailureError, cores, environment
from tests.bench.suite import DETAILED, Suite

_FROM_FILE = "from {module} import Tokenizer; tok = Tokenizer.from_file(path)"
# How people import and load each tokenizer.
_LOADS = {
    "ggtok": "import ggtok; tok = ggtok.load(path)",
    "gigatoken": "import gigatoken; tok = gigatoken.Tokenizer(path).backend",
    "fastokens": _FROM_FILE.format(module="fastokens"),
    "tokenizers": _FROM_FILE.format(module="tokenizers"),
    "splintr": "import splintr; tok = splintr.from_json(path)",
}
_LOAD = "from tests.bench.loaders import LOADERS; tok = LOADERS[peer](path)"
_READ = "import sys; peer, path, text = sys.argv[1:]; text = open(text, encoding='utf-8').read()"
_PEAK = "from tests.support.memory import peak; print(peak())"
_SIZES = {"60 bytes": 60, "1 MB": MB, "16 MB": 16 * MB, "64 MB": 64 * MB}
_SECONDS = 600


def job(suite: Suite) -> None:
    everything = mixed(suite.options.corpora, _SIZES["64 MB"]).text
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:2])):
        for name, n in _SIZES.items():
            if size(everything) < n or (n > 16 * MB and not suite.options.full):
                continue
            text = prose().head(n) if n < MB else everything.encode()[:n].decode(errors="ignore")
            _measure(suite, vocab, name, text, ONE_LIST if n < MB else ONE)
    empty = suite.folder / "empty.txt"
    empty.write_text("")
    row = suite.row("job", "", "", "Python alone", "ms")
    suite.measure(row, {OURS: lambda _: _run("pass", OURS, empty, empty)[0]})


def _measure(suite: Suite, vocab: str, name: str, text: str, form: str) -> None:
    peers = [peer for peer in suite.options.peers if peer != REFERENCE or size(text) < MB]
    notes = suite.agree(vocab, peers, {form: {name: [text]}})
    path = suite.folder / f"{name.replace(' ', '-')}.txt"
    path.write_text(text, encoding="utf-8", newline="")
    peaks: dict[str, list[float]] = {}

    def take(peer: str) -> float:
        script = f"{_LOADS.get(peer, _LOAD)}; ids = {PEERS[peer].calls[form]}"
        ms, peak = _run(script, peer, suite.path(peer, vocab), path)
        peaks.setdefault(peer, []).append(peak)
        return ms

    kind = "to a list" if form == ONE_LIST else "to an array"
    row = suite.row("job", vocab, name, f"import, load, encode {kind}", "ms")
    suite.measure(row, suite.each(notes, take), notes)
    suite.record(suite.row("job", vocab, name, "peak of the memory", "MB"), peaks, notes)


def _run(script: str, peer: str, path: Path, text: Path) -> tuple[float, float]:
    """Runs a script on one of the workers' cores. Returns milliseconds of processor time, and the
    peak of its memory in MB."""
    mine = os.sched_getaffinity(0) if cores(1) else set()
    if mine:
        os.sched_setaffinity(0, cores(1))
    try:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", f"{_READ}; {script}; {_PEAK}", peer, path, text],
            env=environment(1),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    finally:
        if mine:
            os.sched_setaffinity(0, mine)
    assert child.stdout is not None
    until = time.monotonic() + _SECONDS
    while True:
        pid, status, usage = os.wait4(child.pid, os.WNOHANG)
        if pid:
            break
        if time.monotonic() > until:
            child.kill()
        time.sleep(0.001)
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise PeerFailureError(f"exit status {child.returncode}")
    with child.stdout:
        kilobytes = int(child.stdout.read())
    return (usage.ru_utime + usage.ru_stime) * 1000, kilobytes * 1024 / MB
