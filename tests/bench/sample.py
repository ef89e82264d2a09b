"""The group `sample`: MB/s of random segmentations of lines of prose, in one thread.

Compares ggtok with the library of each rule: tokenizers for dropout, SentencePiece for alpha.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ggtok
from tests.bench.corpora import prose
from tests.bench.loaders import LOADERS
from tests.bench.peers import OURS
from tests.bench.suite import Suite
from tests.support.vocabularies import UGM

_BYTES = 300_000
_VALUES = {"dropout": 0.1, "alpha": 0.1}
# For each vocabulary, the rule, and the library that has it.
_CASES = {
    "llama-bpe": ("dropout", "tokenizers"),
    "gpt-2": ("dropout", "tokenizers"),
    "llama-spm": ("alpha", "sentencepiece"),
    UGM: ("alpha", "sentencepiece"),
}


def sample(suite: Suite) -> None:
    os.environ["RAYON_NUM_THREADS"] = "1"
    lines = [line for line in prose().head(_BYTES).splitlines() if line]
    size = sum(len(line.encode()) for line in lines)
    for vocab in suite.vocabs(*_CASES):
        rule, peer = _CASES[vocab]
        tok = ggtok.load(suite.gguf(vocab))
        calls: dict[str, Callable[[list[str]], object]] = {OURS: partial(_sample_ours, tok, rule)}
        if peer in suite.options.peers:
            other = LOADERS[peer](str(suite.path(peer, vocab)))
            calls[peer] = partial(_SAMPLERS[peer], other)
        row = suite.row("sample", vocab, "prose", f"{rule} {_VALUES[rule]}")
        suite.measure(row, {name: _speed(call, lines, size) for name, call in calls.items()})


def _sample_ours(tok: ggtok.Tokenizer, rule: str, lines: list[str]) -> object:
    return tok.sample_batch_arrays(lines, **{rule: _VALUES[rule]}, seed=1, threads=1)


def _sample_tokenizers(tok: Any, lines: list[str]) -> object:
    tok.model.dropout = _VALUES["dropout"]
    return [encoding.ids for encoding in tok.encode_batch_fast(lines)]


def _sample_sentencepiece(tok: Any, lines: list[str]) -> object:
    options = {"enable_sampling": True, "alpha": _VALUES["alpha"], "nbest_size": -1}
    return tok.encode(lines, num_threads=1, **options)


_SAMPLERS = {"tokenizers": _sample_tokenizers, "sentencepiece": _sample_sentencepiece}


def _speed(
    call: Callable[[list[str]], object], lines: list[str], size: int
) -> Callable[[int], float]:
    def take(_: int) -> float:
        start = time.perf_counter()
        call(lines)
        return size / 1e6 / (time.perf_counter() - start)

    return take
