"""python -m tests.adapters.real: compares transformers with llama.cpp on llama.cpp's vocabularies.

    python -m tests.adapters.real --lines 2000                   # generated lines
    python -m tests.adapters.real --lines 2000 --corpus DIR      # lines of DIR's text files
    python -m tests.adapters.real qwen2 llama-spm                # only these vocabularies

Prints for each vocabulary how many lines differ. transformers_tokenizer is compared with llama.cpp
(ids) and with ggtok (ids and offsets). AutoTokenizer, loaded from an exported folder (written with
inexact=True if necessary) and from the GGUF file, is compared with llama.cpp. The exit status is 1
if transformers_tokenizer or an exact folder differs.
"""

from __future__ import annotations

import argparse
import logging
import random
import sys
import tempfile
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ggtok
from ggtok import adapters
from ggtok.vocabularies.convert.lines import lines_for
from tests.support.llamacpp import LlamaCpp
from tests.support.vocabularies import OTHERS, REAL, real

Ids = list[list[int]]


def differ(a: Sequence[object], b: Sequence[object]) -> int:
    return sum(x != y for x, y in zip(a, b, strict=True))


def lines_of(corpus: Path | None, name: str, n: int) -> list[str]:
    if corpus is None:
        return lines_for(ggtok.vocabulary(real(name)), n)
    texts = [path.read_text("utf-8") for path in sorted(corpus.glob("*.txt"))]
    lines = [line for text in texts for line in text.split("\n") if line]
    return random.Random(1).sample(lines, n)


def ours(tok: ggtok.Tokenizer, lines: list[str], want: Ids) -> str:
    """Counts for transformers_tokenizer the lines whose ids differ from llama.cpp's (with and
    without offsets), whose ids differ from ggtok's, and whose offsets differ from ggtok's."""
    tokenizer = adapters.transformers_tokenizer(tok)
    found = tokenizer(lines, return_offsets_mapping=True)
    pairs = [tok.encode_with_offsets(line, parse_special=True, unit="char") for line in lines]
    n, m = len(tokenizer._core.before), len(tokenizer._core.after)
    spans = [list(map(tuple, offsets.tolist())) for _, offsets in pairs]
    own = [row[n : len(row) - m] for row in found["offset_mapping"]]
    return (
        f"{differ(found['input_ids'], want)} {differ(tokenizer(lines)['input_ids'], want)} "
        f"{differ(found['input_ids'], [ids for ids, _ in pairs])} "
        f"{differ(own, [row[n : len(row) - m] for row in spans])}"
    )


def exported(path: Path, lines: list[str], want: Ids) -> tuple[str, bool]:
    from transformers import AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        v, exactness = ggtok.vocabulary(path), "exact"
        try:
            v.save_pretrained(folder)
        except ggtok.VocabError as e:
            exactness = "inexact"
            try:
                v.save_pretrained(folder, inexact=True)
            except ggtok.VocabError:
                return f"refused: {e}", True
        n = differ(AutoTokenizer.from_pretrained(folder)(lines)["input_ids"], want)
        return f"{exactness}: {n}", exactness == "inexact" or not n


def from_gguf(path: Path, lines: list[str], want: Ids) -> str:
    from transformers import AutoTokenizer

    try:
        tokenizer: Any = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
        found = tokenizer(lines)["input_ids"]
        core = adapters.tokenizers_tokenizer(ggtok.load(path))._core
        added = {*core.before, *core.after}
        inner = differ(
            *([[id for id in ids if id not in added] for ids in lists] for lists in (found, want))
        )
        n = differ(found, want)
        return str(n) if n == inner else f"{n}, without BOS and EOS {inner}"
    except Exception as e:
        return f"{type(e).__name__}: {str(e).splitlines()[0][:80]}"


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.adapters.real",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", default=[*REAL, *OTHERS], metavar="NAME")
    parser.add_argument("--lines", type=int, default=2000)
    parser.add_argument("--corpus", type=Path)
    args = parser.parse_args()
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    clean = True
    print("vocabulary | transformers_tokenizer | exported | gguf_file= ", flush=True)
    with LlamaCpp() as llama:
        for name in args.names:
            path, lines = real(name), lines_of(args.corpus, name, args.lines)
            data = [line.encode() for line in lines]
            want = [list(ids) for ids in llama.load(path).tokenize_many(data, True, True)]
            mine = ours(ggtok.load(path), lines, want)
            folder, exact = exported(path, lines, want)
            clean &= exact and mine == "0 0 0 0"
            print(f"{name} | {mine} | {folder} | {from_gguf(path, lines, want)}", flush=True)
    return 0 if clean else 1


if __name__ == "__main__":
    sys.exit(main())
