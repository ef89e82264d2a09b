"""job: what a user waits for: a new process that reads a text, imports the tokenizer, loads its
file and encodes the text. In ms of processor time, and MB of memory at the peak.

The file is in the format from which the tokenizer loads fastest. The times include the start of
Python, which is also a row of its own.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.bench.corpora import MB, cut, mixed, prose, size
from tests.bench.peers import ONE, ONE_LIST, OURS, PEERS, REFERENCE
from tests.bench.process import PeerFailureError, cores, environment
from tests.bench.results import Row
from tests.bench.suite import DETAILED, OTHER_IDS, Suite

_FROM_FILE = "from {module} import Tokenizer; tok = Tokenizer.from_file(path)"
# How people import and load each tokenizer.
_LOADS = {
    "ggtok": "import ggtok; tok = ggtok.load(path)",
    "gigatoken": "import gigatoken; tok = gigatoken.Tokenizer(path).backend",
    "fastokens": _FROM_FILE.format(module="fastokens"),
    "tokenizers": _FROM_FILE.format(module="tokenizers"),
    "snaptokens": (
        "from snaptokens import Tokenizer; tok = Tokenizer.from_file(path, tkz_cache=True)"
    ),
    "splintr": "import splintr; tok = splintr.from_json(path)",
}
_LOAD = "from tests.bench.loaders import LOADERS; tok = LOADERS[peer](path)"
_READ = "import sys; peer, path, text = sys.argv[1:]; text = open(text, encoding='utf-8').read()"
_PEAK = "from tests.support.memory import peak; print(peak())"
_HASH = "from tests.bench.worker import flat; from zlib import crc32; print(crc32(flat(ids)))"
_SIZES = {"60 bytes": 60, "1 MB": MB, "16 MB": 16 * MB, "64 MB": 64 * MB}
# Only with --corpus DIR, and for tokenizers at least 0.4 times as fast as the fastest with 64 MB.
_LARGE = "1 GB", 1000 * MB
_SECONDS = 600


def job(suite: Suite) -> None:
    everything = mixed(suite.options.corpora, _LARGE[1] if suite.options.full else 16 * MB).text
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:2])):
        rows: list[Row] = []
        for name, n in _SIZES.items():
            if size(everything) < n or (n > 16 * MB and not suite.options.full):
                continue
            text = prose().head(n) if n < MB else cut(everything[:n], n, 1)[0]
            rows.append(_measure(suite, vocab, name, text, ONE_LIST if n < MB else ONE))
        if size(everything) > _LARGE[1] - 4:  # a character may be cut off
            _measure_large(suite, vocab, everything, rows[-1])
    empty = suite.folder / "empty.txt"
    empty.write_text("")
    row = suite.row("job", "", "", "Python alone", "ms")
    suite.measure(row, {OURS: lambda _: _run("print(0)", OURS, empty, empty)[0]})


def _measure(suite: Suite, vocab: str, name: str, text: str, form: str) -> Row:
    peers = [peer for peer in suite.options.peers if peer != REFERENCE or size(text) < MB]
    notes = suite.agree(vocab, peers, {form: {name: [text]}})
    return _time(suite, vocab, name, text, form, notes)


def _measure_large(suite: Suite, vocab: str, text: str, smaller: Row) -> None:
    """Adds the rows of the largest size, for tokenizers fast with the size before it."""
    name = _LARGE[0]
    times = {peer: ms for peer in smaller.cells if (ms := smaller.best(peer))}
    fast = [peer for peer, ms in times.items() if ms <= 2.5 * min(times.values())]
    path = _write(suite, name, text)
    hashes: dict[str, int] = {}
    notes: dict[str, str] = {}
    for peer in [OURS, *(peer for peer in fast if peer != OURS)]:
        script = f"{_script(peer, ONE)}; {_HASH}"
        try:
            hashes[peer] = _run(script, peer, suite.path(peer, vocab), path)[1]
            notes[peer] = "" if hashes[peer] == hashes[OURS] else OTHER_IDS
        except PeerFailureError as error:
            notes[peer] = str(error)
    _time(suite, vocab, name, text, ONE, notes)


def _time(
    suite: Suite, vocab: str, name: str, text: str, form: str, notes: Mapping[str, str]
) -> Row:
    path = _write(suite, name, text)
    peaks: dict[str, list[float]] = {}

    def take(peer: str) -> float:
        script = f"{_script(peer, form)}; {_PEAK}"
        ms, peak = _run(script, peer, suite.path(peer, vocab), path)
        peaks.setdefault(peer, []).append(peak * 1024 / MB)
        return ms

    kind = "to a list" if form == ONE_LIST else "to an array"
    row = suite.row("job", vocab, name, f"import, load, encode {kind}", "ms")
    rounds = min(3, suite.options.rounds) if name == _LARGE[0] else None
    suite.measure(row, suite.each(notes, take), notes, rounds)
    suite.record(suite.row("job", vocab, name, "peak of the memory", "MB"), peaks, notes)
    return row


def _write(suite: Suite, name: str, text: str) -> Path:
    path = suite.folder / f"{name.replace(' ', '-')}.txt"
    path.write_text(text, encoding="utf-8", newline="")
    return path


def _script(peer: str, form: str) -> str:
    return f"{_LOADS.get(peer, _LOAD)}; ids = {PEERS[peer].calls[form]}"


def _run(script: str, peer: str, path: Path, text: Path) -> tuple[float, int]:
    """Runs a script on one of the workers' cores. Returns milliseconds of processor time, and the
    number that the script prints."""
    mine = os.sched_getaffinity(0) if cores(1) else set()
    if mine:
        os.sched_setaffinity(0, cores(1))
    try:
        child = subprocess.Popen(
            [sys.executable, "-W", "ignore", "-c", f"{_READ}; {script}", peer, path, text],
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
    if child.returncode == -signal.SIGKILL:
        reason = "time" if time.monotonic() > until else "memory"
        raise PeerFailureError(f"too little {reason}")
    if child.returncode:
        raise PeerFailureError(f"exit status {child.returncode}")
    with child.stdout:
        printed = int(child.stdout.read())
    return (usage.ru_utime + usage.ru_stime) * 1000, printed
