"""The vocabularies for the tests: llama.cpp's own, and this project's small fixtures."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from fixtures.fetch import fetch
from ggtok.vocabularies.pre_rows import PRE_ROWS

SPM = ("llama-spm", "phi-3", "baichuan")
BPE = tuple(
    (
        "llama-bpe gpt-2 gpt-neox mpt falcon starcoder refact command-r qwen2 qwen35 "
        "deepseek-llm deepseek-coder aquila gemma-4"
    ).split()
)
REAL = SPM + BPE
WPM = "bert-bge"
UGM = "nomic-bert-moe"
OTHERS = (WPM, UGM)

# Every value of tokenizer.ggml.pre that the reference knows.
PRE_NAMES = tuple(PRE_ROWS)

# The fixtures whose ids a newer build of llama.cpp decides (tests/support/newer_llamacpp.py),
# because the reference ignores one of their keys.
NEWER = ("ugm-nfc",)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
GGUF_FOLDER = FIXTURES / "gguf"
GOLDEN_FOLDER = FIXTURES / "golden"


@cache
def real_folder() -> Path:
    return fetch()


def real(name: str) -> Path:
    """Returns the path of a vocabulary in REAL or OTHERS. The first call downloads all files."""
    return real_folder() / f"ggml-vocab-{name}.gguf"


# The vocabularies for which llama.cpp provides texts and expected ids.
INP_OUT = tuple(name for name in (*REAL, WPM) if name not in ("baichuan", "gpt-neox", "aquila"))


def inp_out(name: str) -> tuple[list[bytes], list[list[int]]]:
    """Returns texts and their ids, without added or parsed special tokens."""
    inputs = real(name).with_suffix(".gguf.inp").read_bytes()
    outputs = real(name).with_suffix(".gguf.out").read_text()
    separator = b"\n__ggml_vocab_test__\n"
    texts = inputs.removesuffix(separator).split(separator)
    ids = [[int(i) for i in line.split()] for line in outputs.splitlines()]
    assert len(texts) == len(ids)
    return texts, ids


def fixture(name: str) -> Path:
    return GGUF_FOLDER / f"{name}.gguf"


def fixture_names() -> list[str]:
    return sorted(path.stem for path in GGUF_FOLDER.glob("*.gguf"))


def reference_names() -> list[str]:
    """Returns the fixtures whose ids the reference decides."""
    return [name for name in fixture_names() if name not in NEWER]


def golden(name: str) -> dict[str, Any]:
    """Returns the reference's recorded results for a fixture."""
    data: dict[str, Any] = json.loads((GOLDEN_FOLDER / f"{name}.json").read_text("utf-8"))
    return data
