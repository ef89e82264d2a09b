"""Times encoding an Arrow column of texts into a column of ids, and the same via Python lists.

    python -m tests.bench.arrow [--rounds N]

Needs pyarrow and tokenizers. The vocabulary is gpt-2's, which both ggtok and tokenizers can read.
Every measurement starts and ends with a pyarrow column; if a library doesn't support Arrow, the
time includes the conversion to and from Python objects. First checks that the ids agree. Prints MB
of text per second of processor time, the best of several rounds; the texts are already cached.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import pyarrow as pa

import ggtok
from tests.bench.corpora import MB, cut, prose
from tests.support.vocabularies import real

SIZES = {"lines of 60 bytes": 60, "documents of 4 kB": 4096}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    tok = ggtok.load(real("gpt-2"))
    ways = {**ours(tok), **theirs()}
    print("|", "|".join(["", *ways]), "|")
    for name, size in SIZES.items():
        text = prose().head(2 * MB)
        column = pa.array(cut(text, size))
        want = ways["Arrow to Arrow"](column)
        best = dict.fromkeys(ways, 0.0)
        for way, run in ways.items():
            assert pa.array(run(column)).equals(want), way
        for _ in range(options.rounds):
            for way, run in ways.items():
                began = time.process_time()
                run(column)
                seconds = time.process_time() - began
                best[way] = max(best[way], len(text.encode()) / MB / seconds)
        print("|", "|".join([name, *(f"{speed:.0f}" for speed in best.values())]), "|")


def ours(tok: ggtok.Tokenizer) -> dict[str, Callable[[Any], Any]]:
    kind = pa.large_list(pa.int32())

    def arrays(column: Any) -> Any:
        ids, offsets = tok.encode_batch_arrays(column.to_pylist(), threads=1)
        return pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(ids))

    return {
        "Arrow to Arrow": lambda c: pa.array(tok.encode_batch_arrow(c, threads=1)),
        "list of str to arrays": arrays,
        "list of str to lists": lambda c: pa.array(
            tok.encode_batch(c.to_pylist(), threads=1), kind
        ),
    }


def theirs() -> dict[str, Callable[[Any], Any]]:
    try:
        import tokenizers
    except ImportError:
        return {}
    from tempfile import NamedTemporaryFile

    with NamedTemporaryFile(suffix=".json") as file:
        ggtok.vocabulary(real("gpt-2")).save(file.name)
        other = tokenizers.Tokenizer.from_file(file.name)
    kind = pa.large_list(pa.int32())

    def lists(column: Any) -> Any:
        encodings = other.encode_batch_fast(column.to_pylist(), add_special_tokens=False)
        return pa.array([encoding.ids for encoding in encodings], kind)

    return {f"tokenizers {tokenizers.__version__}": lists}


if __name__ == "__main__":
    main()
