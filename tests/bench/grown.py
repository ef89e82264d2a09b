"""RWKV and PLaMo vocabularies of realistic size, made from nomic-bert-moe's tokens.

No real vocabularies of these types are available. The fixtures are unsuitable for benchmarks: their
tokens have only a letter or two, so a tokenizer mostly writes ids.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.patch import GGUF
from tests.support.vocabularies import fixture, real

GROWN = ("rwkv-65k", "plamo2-100k", "plamo3-100k")

_SPECIALS, _PLAMO, _RWKV = 4, 100_000, 65_000
_NORMAL, _UNKNOWN, _BYTE = 1, 2, 6


def grow(folder: Path) -> dict[str, Path]:
    """Writes the vocabularies and returns their paths by name."""
    source = GGUF.read(real("nomic-bert-moe"))
    texts = source.strings("tokenizer.ggml.tokens")
    pieces: dict[bytes, float] = {}  # scores by text, with spaces instead of space marks
    scores = source.array("tokenizer.ggml.scores")
    for text, score in list(zip(texts, scores, strict=True))[_SPECIALS:_PLAMO]:
        assert isinstance(score, float)
        pieces.setdefault(text.replace("▁".encode(), b" "), score)
    pieces.pop(b"", None)
    names = [b"<0x%02X>" % byte for byte in range(256)]
    paths = {}
    for model in ("plamo2", "plamo3"):
        gguf = GGUF.read(fixture(model))
        tokens = [b"<unk>", *pieces, *names]
        types = [_UNKNOWN] + [_NORMAL] * len(pieces) + [_BYTE] * len(names)
        gguf.set("tokenizer.ggml.scores", [0.0, *pieces.values(), *([0.0] * len(names))], "f32")
        paths[f"{model}-100k"] = _write(gguf, tokens, types, folder / f"{model}.gguf")
    gguf = GGUF.read(fixture("rwkv"))
    escaped = (p.replace(b"\\", b"\\\\").replace(b"\n", b"\\n") for p in list(pieces)[:_RWKV])
    tokens = [b"<s>", *(b"\\x%02x" % byte for byte in range(256))]
    tokens += [text for text in escaped if len(text) > 1]
    gguf.remove("tokenizer.ggml.scores")
    paths["rwkv-65k"] = _write(
        gguf, list(dict.fromkeys(tokens)), [_NORMAL] * len(tokens), folder / "rwkv.gguf"
    )
    return paths


def _write(gguf: GGUF, tokens: list[bytes], types: list[int], path: Path) -> Path:
    gguf.set("tokenizer.ggml.tokens", tokens, "str")
    gguf.set("tokenizer.ggml.token_type", types, "i32")
    gguf.write(path)
    return path
