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
        n = self._fill(text, False)  # may replace the buffer
        return self._buffer[:n]


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


def _snaptokens(path: str) -> Any:
    # The first call writes a .tkz file, from which later ones load faster.
    return importlib.import_module("snaptokens").Tokenizer.from_file(path, tkz_cache=True)


def _splintr(path: str) -> Any:
    return importlib.import_module("splintr").from_json(path)


def _ranks(path: str) -> tuple[str, dict[bytes, int], dict[str, int]]:
    """Returns the pattern, the ranks and the special tokens in a file of convert.py."""
    with open(path, "rb") as file:
        pattern, special, *lines = file.read().split(b"\n")
    ranks = {}
    for line in lines:
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    return pattern.decode(), ranks, json.loads(special)


def _tiktoken(path: str) -> Any:
    pattern, ranks, special = _ranks(path)
    return importlib.import_module("tiktoken").Encoding(
        "bench", pat_str=pattern, mergeable_ranks=ranks, special_tokens=special
    )


def _riptoken(path: str) -> Any:
    pattern, ranks, special = _ranks(path)
    return importlib.import_module("riptoken").CoreBPE(ranks, special, pattern)


def _sentencepiece(path: str) -> Any:
    return importlib.import_module("sentencepiece").SentencePieceProcessor(model_file=path)


LOADERS: dict[str, Callable[[str], Any]] = {
    "ggtok": _ggtok,
    "gigatoken": _gigatoken,
    "fastokens": _from_file("fastokens"),
    "tokenizers": _from_file("tokenizers"),
    "snaptokens": _snaptokens,
    "splintr": _splintr,
    "tiktoken": _tiktoken,
    "riptoken": _riptoken,
    "sentencepiece": _sentencepiece,
    "llama.cpp": LlamaCppTokenizer,
}
