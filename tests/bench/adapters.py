"""python -m tests.bench.adapters FOLDER: compares transformers_tokenizer's speed with
PreTrainedTokenizerFast's.

    python -m tests.bench.adapters FOLDER                 # 1000 lines of the folder's *.txt files
    python -m tests.bench.adapters FOLDER qwen2 bert-bge

Prints the median of five calls in milliseconds, and the ratio; ids are compared first.
"""

from __future__ import annotations

import argparse
import logging
import random
import statistics
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ggtok
from ggtok import adapters
from tests.support.vocabularies import real

PADDED: dict[str, Any] = {"padding": True, "truncation": True, "max_length": 128}
CALLS: dict[str, dict[str, Any]] = {
    "ids": {},
    "padded": PADDED,
    "tensors": {**PADDED, "return_tensors": "np"},
    "offsets": {"return_offsets_mapping": True},
}


def median(call: Callable[[], object]) -> float:
    times = []
    for _ in range(6):  # the first call fills the caches
        start = time.perf_counter()
        call()
        times.append(1000 * (time.perf_counter() - start))
    return statistics.median(times[1:])


def load_both(name: str) -> tuple[Any, Any]:
    import transformers

    ours = adapters.transformers_tokenizer(ggtok.load(real(name)))
    with tempfile.TemporaryDirectory() as folder:
        ggtok.vocabulary(real(name)).save_pretrained(folder)
        fast = transformers.AutoTokenizer.from_pretrained(folder)
    if ours.pad_token is None:
        ours.pad_token = fast.pad_token = ours.eos_token or ours.unk_token
    return ours, fast


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench.adapters",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("folder", type=Path)
    names = ["gpt-2", "llama-bpe", "qwen2", "llama-spm", "bert-bge"]
    parser.add_argument("names", nargs="*", default=names, metavar="NAME")
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    texts = [path.read_text("utf-8") for path in sorted(args.folder.glob("*.txt"))]
    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    lines = random.Random(1).sample(lines, 1000)
    for name in args.names:
        ours, fast = load_both(name)
        for case, options in CALLS.items():
            mine, theirs = ours(lines, **options), fast(lines, **options)
            if [*map(list, mine["input_ids"])] != [*map(list, theirs["input_ids"])]:
                print(f"{name}, {case}: ids differ")
                return 1
            a, b = (median(lambda: each(lines, **options)) for each in (ours, fast))  # noqa: B023
            print(f"{name}, {case}: {a:.1f} and {b:.1f} ms, {b / a:.1f} times", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
