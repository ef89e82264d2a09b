"""Loads each tokenizer in peers.py from its file."""

from __future__ import annotations

import base64
import ctypes
import importlib
import json
import warnings
from collections.abc import Callable
from typing import Any


class LlamaCppTokenizer:
    """llama.cpp's tokenizer, called through ctypes, with a buffer that all calls reuse."""

    def __init__(self, path: str) -> None:
        from tests.support.llamacpp import _Worker

        global _llama_cpp  # the library, shared by all vocabularies
        _llama_cpp = _llama_cpp or _Worker()
        self._worker, self._path = _llama_cpp, path
        self._vocab = _llama_cpp.vocab(path)
        self._buffer = (ctypes.c_int32 * 16)()

    def close(self) -> None:
        self._worker.free(self._path)

    def _fill(self, text: str, parse_special: bool) -> int:
        data = text.encode()
        if len(self._buffer) < len(data) + 16:
            self._buffer = (ctypes.c_int32 * (len(data) + 16))()
        n: int = self._worker.lib.llama_tokenize(
            self._vocab, data, len(data), self._buffer, len(self._buffer), False, parse_special
        )
        if n < 0:
            raise RuntimeError("llama.cpp: more tokens than bytes")
        return n

    def encode(self, text: str, parse_special: bool = False) -> memoryview:
        """Returns the ids in the buffer: valid until the next call."""
        n = self._fill(text, parse_special)
        return memoryview(self._buffer).cast("B")[: 4 * n].cast("i")

    def encode_list(self, text: str) -> list[int]:
        return self._buffer[: self._fill(text, False)]


_llama_cpp: Any = None


def _ggtok(path: str) -> Any:
    import ggtok

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(path)


def _gigatoken(path: str) -> Any:
    # Returns the Rust object, since its Python wrapper would cost time in each call.
    return importlib.import_module("gigatoken").Tokenizer(path).backend


def _from_file(module: str) -> Callable[[str], Any]:
    return lambda path: importlib.import_module(module).Tokenizer.from_file(path)


def _splintr(path: str) -> Any:
    return importlib.import_module("splintr").from_json(path)


def _tiktoken(path: str) -> Any:
    with open(path, "rb") as file:
        pattern, special, *lines = file.read().split(b"\n")
    ranks = {}
    for line in lines:
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return importlib.import_module("tiktoken").Encoding(
        "bench",
        pat_str=pattern.decode(),
        mergeable_ranks=ranks,
        special_tokens=json.loads(special),
    )


def _sentencepiece(path: str) -> Any:
    return importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=path)


LOADERS: dict[str, Callable[[str], Any]] = {
    "ggtok": _ggtok,
    "gigatoken": _gigatoken,
    "fastokens": _from_file("fastokens"),
    "tokenizers": _from_file("tokenizers"),
    "splintr": _splintr,
    "tiktoken": _tiktoken,
    "sentencepiece": _sentencepiece,
    "llama.cpp": LlamaCppTokenizer,
}
