"""Compares the speed of trainers, each in a separate process, after comparing their merges.

    python -m tests.bench.train --peers VENV/bin/python CORPUS.txt ... --sizes 32000 100000

PEERS is an interpreter with tokenizers==0.23.3, gigatoken, gigabpe, rustbpe and
sentencepiece==0.2.3, which conflict with the tests' requirements. Each row is the best of --runs:
wall-clock seconds, and by how much the process's peak memory grew; both include reading the file. A
row is flagged if its merges differ from ggtok's, since its time is then meaningless.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

_BEFORE = """
import hashlib, json, os, resource, sys, time
path, size, threads = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
os.environ["RAYON_NUM_THREADS"] = os.environ["TOKENIZERS_PARALLELISM_THREADS"] = str(threads)
def mapped():
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = iter(range(0x100, 0x200))
    return {b: chr(b if b in printable else next(others)) for b in range(256)}
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
"""

_AFTER = """
merges = merges()
digest = hashlib.sha256(json.dumps(merges).encode()).hexdigest()
print(json.dumps({"seconds": seconds, "memory": used, "merges": len(merges), "digest": digest}))
"""

_TIMED = """
before, began = peak(), time.perf_counter()
{work}
seconds, used = time.perf_counter() - began, peak() - before
"""


@dataclass(frozen=True)
class Trainer:
    """A trainer: code to import it, code to time, and code that returns its merges as strings."""

    name: str
    rule: str
    imports: str
    work: str
    merges: str
    ours: bool = False

    def code(self) -> str:
        timed = _TIMED.format(work=self.work)
        return "\n".join([_BEFORE, self.imports, timed, self.merges, _AFTER])


_GGTOK = """
import pathlib, ggtok
from ggtok.vocabularies import train as _
"""
_TOKENS = """
def merges():
    c = mapped()
    return [["".join(c[b] for b in part) for part in pair] for pair in v.merges]
"""
_PIECES = """
def merges():
    return pieces
"""

# For trainers that don't report merges: code that returns their new tokens, in order.
_NEW_TOKENS = """
def merges():
    return [token.hex() for token in {}]
"""
_PATTERN = r"""
pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
"""

TRAINERS = [
    Trainer(
        "ggtok",
        "huggingface",
        _GGTOK,
        "v = ggtok.train(pathlib.Path(path), size, pre='gpt-2', min_frequency=1, threads=threads)",
        _TOKENS,
        ours=True,
    ),
    Trainer(
        "tokenizers",
        "huggingface",
        "from tokenizers import Tokenizer, models, pre_tokenizers, trainers\n"
        "t = Tokenizer(models.BPE())\n"
        "t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)\n"
        "trainer = trainers.BpeTrainer(vocab_size=size, special_tokens=['<|endoftext|>'],\n"
        "    initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)",
        "t.train([path], trainer)",
        "def merges():\n    return json.loads(t.to_str())['model']['merges']",
    ),
    Trainer(
        "ggtok",
        "huggingface, whole",
        _GGTOK,
        "v = ggtok.train(pathlib.Path(path), size, pre='gpt-2', min_frequency=1, threads=threads,\n"
        "    documents='whole')",
        _TOKENS,
        ours=True,
    ),
    Trainer(
        "gigatoken",
        "huggingface, whole",
        "import gigatoken, pathlib",
        "t = gigatoken.train_bpe(pathlib.Path(path).read_bytes(), size, ['<|endoftext|>'])",
        "def merges():\n"
        "    c = mapped()\n"
        "    return [[''.join(c[b] for b in part) for part in pair] for pair in t[1]]",
    ),
    Trainer(
        "ggtok",
        "sentencepiece",
        _GGTOK,
        "v = ggtok.train(pathlib.Path(path), size, model='spm', min_frequency=1, threads=threads)",
        "pieces = [t.decode() for t in v.texts]\n" + _PIECES,
        ours=True,
    ),
    Trainer(
        "sentencepiece",
        "sentencepiece",
        "import io, sentencepiece",
        "o = io.BytesIO()\n"
        "sentencepiece.SentencePieceTrainer.train(input=path, model_writer=o, vocab_size=size,\n"
        "    model_type='bpe', normalization_rule_name='identity', minloglevel=4,\n"
        "    remove_extra_whitespaces=False, allow_whitespace_only_pieces=True,\n"
        "    byte_fallback=True, max_sentence_length=1 << 30, num_threads=threads,\n"
        "    character_coverage=1.0)",
        "p = sentencepiece.SentencePieceProcessor(model_proto=o.getvalue())\n"
        "pieces = [p.id_to_piece(i) for i in range(p.get_piece_size())]\n" + _PIECES,
    ),
    Trainer(
        "ggtok",
        "bytes",
        _GGTOK,
        "v = ggtok.train(pathlib.Path(path), size + 1, pre='gpt-2', rule='bytes',\n"
        "    min_frequency=1, threads=threads)",
        _NEW_TOKENS.format("[left + right for left, right in v.merges]"),
        ours=True,
    ),
    Trainer(
        "rustbpe",
        "bytes",
        _PATTERN + "import rustbpe",
        "t = rustbpe.Tokenizer()\n"
        "t.train_from_iterator(open(path, newline=''), size, pattern=pattern)",
        _NEW_TOKENS.format(
            "[bytes(token) for token, rank in t.get_mergeable_ranks() if rank >= 256]"
        ),
    ),
    Trainer(
        "bpeasy",
        "bytes",
        _PATTERN + "import bpeasy",
        "t = bpeasy.train_bpe(open(path, newline=''), pattern, 10**6, size)",
        _NEW_TOKENS.format(
            "[bytes(t) for t, rank in sorted(t.items(), key=lambda x: x[1]) if rank >= 256]"
        ),
    ),
    Trainer(
        "ggtok",
        "huggingface, seen",
        _GGTOK,
        "v = ggtok.train(pathlib.Path(path), size, pre='gpt-2', min_frequency=1, threads=threads,\n"
        "    alphabet='seen')",
        _TOKENS,
        ours=True,
    ),
    Trainer(
        "gigabpe",
        "huggingface, seen",
        "import gigabpe",
        "t = gigabpe.train_bpe([path], size, special_tokens=['<|endoftext|>'], threads=threads,\n"
        "    pretokenizer='bytelevel')",
        "def merges():\n    return [list(pair) for pair in t[1]]",
    ),
]


def run(trainer: Trainer, python: str, corpus: Path, size: int, threads: int) -> dict[str, object]:
    """Runs a trainer once in a new process."""
    with tempfile.NamedTemporaryFile("w", suffix=".py") as file:
        file.write(trainer.code())
        file.flush()
        completed = subprocess.run(
            [python, file.name, str(corpus), str(size), str(threads)],
            capture_output=True,
            text=True,
            env={**os.environ, "RAYON_NUM_THREADS": str(threads)},
        )
    if completed.returncode:
        return {"error": completed.stderr.strip().splitlines()[-1:] or ["killed"]}
    result: dict[str, object] = json.loads(completed.stdout.splitlines()[-1])
    return result


def best(results: list[dict[str, object]]) -> dict[str, object]:
    good = [r for r in results if "error" not in r]
    return min(good, key=lambda r: float(str(r["seconds"]))) if good else results[0]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("corpora", nargs="+", type=Path, metavar="CORPUS.txt")
    parser.add_argument("--peers", default=sys.executable, help="the peers' interpreter")
    parser.add_argument("--sizes", nargs="+", type=int, default=[32_000])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--runs", type=int, default=1)
    parser.add_argument("--only", nargs="+", help="rules")
    args = parser.parse_args()
    differ = 0
    for corpus in args.corpora:
        for size in args.sizes:
            for threads in args.threads:
                size_mb = corpus.stat().st_size / 1e6
                print(f"\n{corpus.name}, {size_mb:.0f} MB, {size} tokens, {threads} threads")
                trainers = [t for t in TRAINERS if not args.only or t.rule in args.only]
                # Alternate between trainers, so that a slow phase of the machine affects
                # all of them.
                rounds = [
                    [
                        run(t, sys.executable if t.ours else args.peers, corpus, size, threads)
                        for t in trainers
                    ]
                    for _ in range(args.runs)
                ]
                ours: dict[str, dict[str, object]] = {}
                for trainer, results in zip(trainers, zip(*rounds, strict=True), strict=True):
                    r = best(list(results))
                    if trainer.ours:
                        ours[trainer.rule] = r
                    elif "digest" in r and r["digest"] != ours[trainer.rule].get("digest"):
                        r["error"] = ["other merges"]
                        differ += 1
                    print(f"  {trainer.rule:<20}{trainer.name:<15}{_row(r)}", flush=True)
    return 1 if differ else 0


def _row(r: dict[str, object]) -> str:
    text = ""
    if "seconds" in r:
        text = f"{float(str(r['seconds'])):8.2f} s {int(str(r['memory'])) / 1e6:8.0f} MB"
    return text + (f"  {r['error']}" if "error" in r else "")


if __name__ == "__main__":
    sys.exit(main())
