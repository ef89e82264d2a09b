"""python -m tests.fuzz [TARGET ...]: fuzzes the C library, starting with the saved corpora.

    python -m tests.fuzz --seconds 60   # all targets
    python -m tests.fuzz gguf --seconds 3600 --work DIR --save

Needs clang with libFuzzer, and binutils. Runs tests/c/capi.c and then each target, with
AddressSanitizer and UndefinedBehaviorSanitizer. Targets also call the library's plain build, which
must return the same ids. Targets, inputs and findings are written to DIR (default: a temporary
folder). `DIR/fuzz_TARGET FILE` reproduces a finding, except for leaks, which are only reported.

--save replaces tests/fuzz/corpus with the smallest set of inputs that has the same coverage.
The exit status is 1 if there is a finding.
"""

from __future__ import annotations

import argparse
import random
import re
import subprocess
import sys
import tempfile
import zipfile
from hashlib import sha256
from pathlib import Path

from tests.fuzz.build import HERE, TARGETS, build, build_capi
from tests.fuzz.seeds import SEEDS
from tests.support.vocabularies import fixture

CORPUS = HERE / "corpus"
# Leaks are detected at exit, not per input: otherwise, libFuzzer would run each input that grows a
# cache twice.
OPTIONS = ("-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", "-detect_leaks=0")
MAX_LEN = {
    "gguf": 6000,
    "encode": 2000,
    "detok": 600,
    "session": 400,
    "jinja": 800,
    "chat": 400,
    "train": 1500,
}
MOST = 90_000  # size limit of a saved corpus, in bytes
LISTED = 50  # approximate size of an input's entry in the archive's directory, in bytes


def unpack(target: str, folder: Path, most: int | None = None, seed: int = 0) -> None:
    """Writes the seeds and the saved inputs (all, or `most` random ones) to files named by hash."""
    folder.mkdir(parents=True, exist_ok=True)
    inputs = list(SEEDS[target]())
    saved = CORPUS / f"{target}.zip"
    if saved.exists():
        with zipfile.ZipFile(saved) as archive:
            names = archive.namelist()
            if most is not None and most < len(names):
                names = random.Random(seed).sample(names, most)
            inputs += [archive.read(name) for name in names]
    for data in inputs:
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)


def fuzz(work: Path, target: str, seconds: int, seed: int, most: int | None) -> bool:
    """Runs a target and prints a summary; returns False if there was a finding."""
    inputs = work / "inputs" / target
    unpack(target, inputs, most, seed)
    with tempfile.TemporaryFile("w+", errors="replace") as log:
        completed = subprocess.run(
            [
                work / f"fuzz_{target}",
                *OPTIONS,
                f"-max_len={MAX_LEN[target]}",
                f"-max_total_time={seconds}",
                f"-seed={seed}",
                f"-artifact_prefix={work / target}-",
                inputs,
            ],
            stdout=log,
            stderr=subprocess.STDOUT,
        )
        log.seek(0)
        text = log.read()
    runs = re.findall(r"stat::number_of_executed_units: (\d+)", text)
    reached = re.findall(r"cov: (\d+) ft: (\d+) corp: (\S+)", text)
    cov, features, corpus = reached[-1] if reached else ("?", "?", "?")
    print(
        f"fuzz_{target}: {seconds} s, {runs[-1] if runs else '?'} executions, "
        f"{cov} edges, {features} features, corpus {corpus}"
    )
    if completed.returncode:
        print("\n".join(text.splitlines()[-60:]), file=sys.stderr)
    return completed.returncode == 0


def save(work: Path, target: str) -> None:
    """Saves a minimal set of inputs with the same coverage, shortest first, up to MOST bytes."""
    inputs = work / "inputs" / target
    with tempfile.TemporaryDirectory() as folder:
        merge = [work / f"fuzz_{target}", "-set_cover_merge=1", folder, inputs]
        subprocess.run(merge, check=True, capture_output=True)
        files = sorted(Path(folder).iterdir(), key=lambda file: (file.stat().st_size, file.name))
        CORPUS.mkdir(exist_ok=True)
        path = CORPUS / f"{target}.zip"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            kept = 0
            for file in files:
                entry = zipfile.ZipInfo(f"{kept:04}")  # fixed date: reproducible archives
                archive.writestr(entry, file.read_bytes(), zipfile.ZIP_DEFLATED)
                kept += 1
                if archive.fp is None or archive.fp.tell() + kept * LISTED > MOST:
                    break
        print(f"{path.name}: {kept} of {len(files)} inputs, {path.stat().st_size} bytes")


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.fuzz",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("targets", nargs="*", metavar="TARGET", help=", ".join(TARGETS))
    parser.add_argument("--seconds", type=int, default=60, help="for each target (default: 60)")
    parser.add_argument("--seed", type=int, default=0, help="libFuzzer's seed (default: the time)")
    parser.add_argument(
        "--inputs", type=int, metavar="N", help="begin with N of the saved inputs (default: all)"
    )
    parser.add_argument("--work", type=Path, help="keep targets, inputs and findings here")
    parser.add_argument("--save", action="store_true", help="write tests/fuzz/corpus")
    args = parser.parse_args()
    if args.save and args.inputs is not None:
        parser.error("--save would lose the inputs that --inputs leaves out")
    if unknown := set(args.targets) - set(TARGETS):
        parser.error(f"no such target: {', '.join(sorted(unknown))}")
    with tempfile.TemporaryDirectory(prefix="ggtok-fuzz-") as folder:
        work = args.work or Path(folder)
        work.mkdir(parents=True, exist_ok=True)
        build(work)
        capi = subprocess.run([build_capi(work), fixture("bpe-gpt2")], stdout=subprocess.DEVNULL)
        clean = not capi.returncode
        print(f"capi: {'ok' if clean else 'failed'}", flush=True)
        for target in args.targets or TARGETS:
            clean &= fuzz(work, target, args.seconds, args.seed, args.inputs)
            if args.save:
                save(work, target)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
