"""Files whose values have other types than llama.cpp expects: what ggtok.load accepts, the other
functions read, or they raise an error of ggtok's."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
GGML = "tokenizer.ggml."
KEYS = [
    *("general.architecture", "general.name", "tokenizer.chat_template", "llama.context_length"),
    *("tokenizer.chat_template.tool_use", "tokenizer.chat_templates", "tokenizer.huggingface.json"),
    *(GGML + key for key in ("model", "pre", "tokens", "merges", "scores", "token_type")),
    *(GGML + key for key in ("bos_token_id", "unknown_token_id", "add_bos_token", "unseen")),
    *(GGML + key for key in ("precompiled_charsmap", "add_space_prefix", "token_type_count")),
]
VALUES: list[tuple[Any, str]] = [
    *((b"\xff\xfe", "str"), (b"", "str"), (b"x\0y", "str"), (7, "u32"), (-7, "i32")),
    *((1 << 63, "u64"), (True, "bool"), (float("nan"), "f64"), ([b"\xff", b"a"], "str")),
    *(([1, 2], "i32"), ([], "u8"), ([True], "bool"), ([1, 255], "u8"), ([0.5], "f32")),
]


@pytest.mark.parametrize("key", KEYS)
@pytest.mark.parametrize(
    "name",
    [
        "bpe-llama3",
        *(pytest.param(n, marks=pytest.mark.full) for n in ("spm", "wpm", "ugm", "rwkv")),
    ],
)
def test_values_of_other_types(name: str, key: str, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    for value, type_ in VALUES:
        gguf = GGUF.read(fixture(name))
        try:
            gguf.set(key, value, type_)
        except (ValueError, TypeError):
            continue
        gguf.write(path)
        try:
            vocabulary = ggtok.vocabulary(path)
        except ggtok.GGTokError:
            continue
        tok = ggtok.load(path)
        for out in ("out.gguf", "tokenizer.json", "out.tiktoken"):
            try:
                vocabulary.save(tmp_path / out, force=True)
            except ggtok.GGTokError:
                continue
            if out == "out.gguf":
                text = "Hello there, caf\u00e9"
                saved = ggtok.load(tmp_path / out)
                assert saved.encode(text, add_special=False) == tok.encode(text, add_special=False)
