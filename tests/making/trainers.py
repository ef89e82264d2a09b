"""python -m tests.making.trainers: compares merges with those of trainers outside the tests' extra.

    python -m tests.making.trainers --texts 300              # makes a virtual environment for them
    python -m tests.making.trainers --python VENV/bin/python # uses this environment

Trains on real text, and on random texts in which pairs are equally frequent, overlap, or occur in
runs. Prints a row for each trainer; the exit status is 1 if any merges differ. (test_train.py tests
against Hugging Face's and SentencePiece's trainers, and a naive one.)
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import venv
import warnings
from collections.abc import Callable
from pathlib import Path

import ggtok
from ggtok.inspect.parity.texts import CODE, PROSE

PACKAGES = ("gigatoken==0.10.0", "gigabpe==0.1.0", "rustbpe==0.1.0", "bpeasy==0.1.6")
MOST = 300  # merges to train on a random text

# Reads pairs of a text and its number of merges; writes the tokens of each merge, in hex.
READER = r"""
import json, os, sys, tempfile
pattern = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
characters = printable + [b for b in range(256) if b not in printable]
known = {chr(b if i < len(printable) else 0x100 + i - len(printable)): b
         for i, b in enumerate(characters)}

def gigatoken(text, n):
    import gigatoken
    return [a + b for a, b in gigatoken.train_bpe(text.encode(), 257 + n, ["<|endoftext|>"])[1]]

def gigabpe(text, n):
    import gigabpe
    seen = {b for b in text.encode()}
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        file.write(text.encode())
        file.flush()
        merges = gigabpe.train_bpe([file.name], len(seen) + 1 + n, threads=2,
                                   special_tokens=["<|endoftext|>"], pretokenizer="bytelevel")[1]
    return [bytes(known[c] for c in a + b) for a, b in merges]

def lines(text):
    return iter(text.splitlines(True))

def rustbpe(text, n):
    import rustbpe
    t = rustbpe.Tokenizer()
    t.train_from_iterator(lines(text), 256 + n, pattern=pattern)
    return [bytes(token) for token, rank in t.get_mergeable_ranks() if rank >= 256]

def bpeasy(text, n):
    import bpeasy
    ranks = bpeasy.train_bpe(lines(text), pattern, 10**6, 256 + n)
    return [bytes(t) for t, rank in sorted(ranks.items(), key=lambda x: x[1]) if rank >= 256]

train = {f.__name__: f for f in (gigatoken, gigabpe, rustbpe, bpeasy)}[sys.argv[1]]
found = [[t.hex() for t in train(*text)] for text in json.load(sys.stdin)]
print("\n" + json.dumps(found))  # after what they print themselves
"""

# For each trainer, the options with which ggtok produces the same merges.
OPTIONS: dict[str, dict[str, object]] = {
    "gigatoken": {"documents": "whole"},
    "gigabpe": {"alphabet": "seen"},
    "rustbpe": {"rule": "bytes"},
    "bpeasy": {"rule": "bytes"},
}


def environment(work: Path) -> Path:
    """Returns the Python interpreter that has the trainers."""
    python = work / "bin" / "python"
    if not python.exists():
        venv.create(work, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", *PACKAGES]
        subprocess.run(command, check=True, stdout=sys.stderr)
    return python


def random_text(chooser: random.Random) -> str:
    """Returns words with few letters, runs and line ends, and in some cases real text."""
    kinds: list[Callable[[], str]] = [
        lambda: "".join(chooser.choices("ab", k=chooser.randint(1, 40))),
        lambda: "".join(chooser.choices("abcd ", k=chooser.randint(1, 60))),
        lambda: chooser.choice("aé世") * chooser.randint(1, 30),
        lambda: "".join(chooser.choices("ab é世", k=chooser.randint(1, 30))),
        lambda: chooser.choice([*PROSE, *CODE]).replace("\r", ""),
    ]
    parts = [chooser.choice(kinds)() for _ in range(chooser.randint(1, 8))]
    # Some trainers treat other characters than \n as line ends.
    text = chooser.choice(" \n").join(parts)
    return "".join(c for c in text if c == "\n" or c.isprintable()) + "\n"


def made(v: ggtok.Vocabulary) -> list[str]:
    return [(left + right).hex() for left, right in v.merges]


def compare(name: str, python: Path, texts: list[tuple[str, int]]) -> int:
    """Counts the texts whose merges differ."""
    options: dict[str, object] = {"pre": "gpt-2", "min_frequency": 1, **OPTIONS[name]}
    expected = []
    asked = []
    for text, most in texts:
        tokens = made(ggtok.train(text, 257 + most, **options))[:most]  # type: ignore[arg-type]
        expected.append(tokens)
        asked.append([text, len(tokens)])
    done = subprocess.run(
        [str(python), "-c", READER, name],
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{name:<12}{done.stderr.strip().splitlines()[-1]}")
        return len(texts)
    found = json.loads(done.stdout.splitlines()[-1])
    differ = [i for i, tokens in enumerate(expected) if tokens != found[i]]
    merges = sum(map(len, expected))
    print(f"{name:<12}{len(texts)} texts, {merges} merges, {len(differ)} texts differ")
    for i in differ[:3]:
        print(f"    {texts[i][0][:200]!r}")
    return len(differ)


def main() -> int:
    assert __doc__
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--python", type=Path, help="an interpreter that has the trainers")
    parser.add_argument("--texts", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    warnings.simplefilter("ignore", ggtok.VocabWarning)
    chooser = random.Random(args.seed)
    real = "\n".join([*PROSE, *CODE]).replace("\r", "") + "\n"
    texts = [(real, 1000), *((random_text(chooser), MOST) for _ in range(args.texts))]
    with tempfile.TemporaryDirectory() as work:
        python = args.python or environment(Path(work))
        return 1 if sum(compare(name, python, texts) for name in OPTIONS) else 0


if __name__ == "__main__":
    sys.exit(main())
