"""Files with odd values: llama.cpp and ggtok load and reject the same files.

If both load a file, all facts about the vocabulary are compared. Three differences are allowed:
llama.cpp may crash (docs/exactness.md), it may reject a file with a character above U+10FFFF in a
token, or of a model that it can't run, and it doesn't read a key of newer builds. Big-endian files
are skipped, and so are files without a vocabulary, because llama.cpp reads keys in them that have
nothing to do with tokens.
"""

from __future__ import annotations

import atexit
import tempfile
from functools import cache
from pathlib import Path

import ggtok
from ggtok.inspect.parity import process
from tests import parity
from tests.hostile.judge import GGUF_ERROR, LOADED, VAGUE, VOCAB_ERROR, Verdict
from tests.hostile.kinds import KINDS, Input
from tests.hostile.rows import ANY, Row
from tests.support import llamacpp

STEP = 11  # only every 11th input is tried, because the reference is slow
SECONDS = 5.0  # the reference's timeout for one input
NEWER_KEY = "tokenizer.ggml.normalizer.nfc"
ALLOWED_REJECTIONS = ("invalid codepoint", "unknown model architecture")


class Agreement(Row):
    def __init__(self) -> None:
        super().__init__(
            "odd files, against llama.cpp", allowed=ANY, sample=150, memory=0, timeout=120
        )

    @cache  # noqa: B019 (there is only one instance)
    def _inputs(self) -> list[tuple[int, int]]:
        return [
            (k, i)
            for k, kind in enumerate(KINDS)
            if kind.agrees
            for i in range(0, len(kind), STEP)
            if not KINDS[k][i].description.startswith(("none", "big-endian"))
        ]

    def __len__(self) -> int:
        return len(self._inputs())

    def input(self, i: int) -> Input:
        k, j = self._inputs()[i]
        return KINDS[k][j]

    def judge(self, i: int) -> Verdict:
        return agreement(self.input(i).data)

    def describe(self, i: int) -> str:
        return self.input(i).description

    def keep(self, i: int) -> bytes:
        return self.input(i).data


@cache
def reference() -> tuple[llamacpp.LlamaCpp, Path]:
    process.REQUEST_SECONDS = SECONDS
    llama = llamacpp.LlamaCpp()
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    atexit.register(llama.close)
    return llama, Path(folder.name) / "odd.gguf"


def agreement(data: bytes) -> Verdict:
    llama, path = reference()
    path.write_bytes(data)
    try:
        tok, ours = parity.load(path), "loads it"
        verdict = Verdict(LOADED)
    except ggtok.GGTokError as error:
        tok, ours = None, f"rejects it ({error})"
        verdict = Verdict(GGUF_ERROR if isinstance(error, ggtok.GGUFError) else VOCAB_ERROR)
    try:
        vocab = llama.load(path)
        if tok is None:
            vocab.free()
            if NEWER_KEY in ours:
                return verdict
            return Verdict(VAGUE, f"llama.cpp loads it, ggtok {ours}")
        result = parity.Result("")
        parity.compare_vocabulary(vocab, tok, result)
        vocab.free()
        return Verdict(VAGUE, "; ".join(result.shown)) if result.differences else verdict
    except llamacpp.LlamaCppDied:
        return verdict
    except llamacpp.LlamaCppError as error:
        if tok is None or any(reason in str(error) for reason in ALLOWED_REJECTIONS):
            return verdict
        return Verdict(VAGUE, f"ggtok loads it, llama.cpp rejects it ({error})")
