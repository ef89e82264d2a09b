"""The child process of originals.py, in which a package reads sources and encodes lines."""

from __future__ import annotations

import json
import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ggtok.base.concurrency import read_frame

Encode = Callable[[Sequence[str]], list[list[int]]]


def main(arguments: Sequence[str]) -> None:
    """Answers requests to read a source or to encode lines, until the end of input."""
    name = arguments[0]
    seconds, memory, most = map(int, arguments[1:])
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    devnull = os.open(os.devnull, os.O_RDWR)  # discards the package's output
    for descriptor in range(3):
        os.dup2(devnull, descriptor)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent terminates this process
    _limit(seconds, memory)
    encode: Encode | None = None
    while True:
        try:
            what, argument = read_frame(requests)
        except EOFError:
            return
        answer: dict[str, Any] = {}
        try:
            if what == "read":
                encode = READERS[name](argument)
            else:
                assert encode is not None
                answer["ids"] = encode(argument)
        except BaseException as e:  # includes panics of Rust
            answer["error"] = str(e)[:1000] or type(e).__name__
        data = json.dumps(answer).encode()
        if len(data) > most:
            data = json.dumps({"error": "too many ids"}).encode()
        answers.write(struct.pack("<Q", len(data)) + data)
        answers.flush()


def _limit(seconds: int, memory: int) -> None:
    """Limits processor time and memory, if the system supports it."""
    try:
        import resource
    except ImportError:
        return
    for kind, most in ((resource.RLIMIT_CPU, seconds), (resource.RLIMIT_CORE, 0)):
        resource.setrlimit(kind, (most, most))
    if sys.platform.startswith("linux"):  # others count reserved memory, or have no limit
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


# ---- packages ----


def _tokenizers(document: str) -> Encode:
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_str(document)
    tokenizer.no_truncation()
    tokenizer.no_padding()

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [tokenizer.encode(line, add_special_tokens=False).ids for line in lines]

    return encode


def _sentencepiece(model: bytes) -> Encode:
    from sentencepiece import SentencePieceProcessor

    processor = SentencePieceProcessor(model_proto=model)
    return lambda lines: [list(processor.encode(line)) for line in lines]


def _tiktoken(document: dict[str, Any]) -> Encode:
    from tiktoken import Encoding

    encoding = Encoding(
        "source",
        pat_str=document["pattern"],
        mergeable_ranks=document["ranks"],
        special_tokens=document["special"],
    )
    return lambda lines: [encoding.encode(line, allowed_special="all") for line in lines]


def _transformers(folder: str) -> Encode:
    from transformers import AutoTokenizer

    for name in "tokenizer_config.json", "config.json":
        _check_class(os.path.join(folder, name))
    tokenizer = AutoTokenizer.from_pretrained(
        folder, trust_remote_code=False, local_files_only=True
    )

    def encode(lines: Sequence[str]) -> list[list[int]]:
        return [list(tokenizer(line, add_special_tokens=False)["input_ids"]) for line in lines]

    return encode


def _check_class(path: str) -> None:
    """Raises ValueError for a class that isn't a tokenizer, which might load a model's weights."""
    try:
        with open(path, encoding="utf-8") as file:
            name = json.load(file).get("tokenizer_class")
    except FileNotFoundError:
        return
    if name is not None and not name.removesuffix("Fast").endswith(("Tokenizer", "Backend")):
        raise ValueError(f"tokenizer_class {name!r} is not a tokenizer")


READERS: dict[str, Callable[[Any], Encode]] = {
    "tokenizers": _tokenizers,
    "sentencepiece": _sentencepiece,
    "tiktoken": _tiktoken,
    "transformers": _transformers,  # reads a folder
}
