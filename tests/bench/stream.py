"""The group `stream`: MB/s for a text that is split into chunks of 512 tokens, and us per id for
ids that are decoded one by one.

Compares ggtok with tokenizers: with its DecodeStream, and with its encoding with offsets, which is
only the first step of splitting a text into chunks. (Counting each chunk's tokens would take more
time.)
"""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any

import ggtok
from tests.bench.corpora import MB, prose
from tests.bench.loaders import LOADERS
from tests.bench.peers import OURS
from tests.bench.suite import DETAILED, Suite

OTHER = "tokenizers"
_IDS = 20_000
_TOKENS = 512


def stream(suite: Suite) -> None:
    text = prose().head(MB)
    for vocab in suite.vocabs(*(DETAILED if suite.options.full else DETAILED[:1])):
        tok = ggtok.load(suite.gguf(vocab))
        other = None
        if OTHER in suite.options.peers:
            other = LOADERS[OTHER](str(suite.path(OTHER, vocab)))
        ids = tok.encode(text, add_special=False)[:_IDS]
        chunks: dict[str, Callable[[], object]] = {OURS: partial(tok.chunks, text, _TOKENS)}
        streams: dict[str, Callable[[], object]] = {OURS: partial(_feed_ours, tok, ids)}
        if other is not None:
            chunks[OTHER] = partial(_offsets, other, text)
            streams[OTHER] = partial(_feed_theirs, other, ids)
        speed = suite.row("stream", vocab, "prose", f"chunks of {_TOKENS} tokens", "MB/s")
        suite.measure(
            speed, {k: _mb_a_second(run, len(text.encode())) for k, run in chunks.items()}
        )
        each = suite.row("stream", vocab, "prose", "decoded one by one, an id", "us")
        suite.measure(each, {peer: _us_each(run, len(ids)) for peer, run in streams.items()})


def _feed_ours(tok: ggtok.Tokenizer, ids: list[int]) -> str:
    stream = tok.stream_decoder()
    feed = stream.feed
    return "".join([feed(id) for id in ids]) + stream.finish()


def _offsets(tok: Any, text: str) -> object:
    return tok.encode(text).offsets


def _feed_theirs(tok: Any, ids: list[int]) -> str:
    from tokenizers.decoders import DecodeStream

    step = DecodeStream(skip_special_tokens=False).step
    return "".join([step(tok, id) or "" for id in ids])


def _seconds(run: Callable[[], object]) -> float:
    run()
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def _mb_a_second(run: Callable[[], object], size: int) -> Callable[[int], float]:
    return lambda _: size / 1e6 / _seconds(run)


def _us_each(run: Callable[[], object], n: int) -> Callable[[int], float]:
    return lambda _: _seconds(run) * 1e6 / n
