"""Typing tests: mypy --strict checks this file; nothing runs it."""

from __future__ import annotations

import mmap
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ggtok

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from typing_extensions import assert_type


def loading(mapped: mmap.mmap) -> None:
    assert_type(ggtok.load("model.gguf"), ggtok.Tokenizer)
    ggtok.load(Path("model.gguf"), pre="llama-bpe")
    ggtok.load(b"GGUF", pre_patterns=[r"\w+"])
    ggtok.load(bytearray())
    ggtok.load(memoryview(b""))
    ggtok.load(mapped)
    with open("model.gguf", "rb") as file:
        ggtok.load(file)
    ggtok.load("user/repo:Q8_0", overrides={"a": False, "b": 1, "c": 0.5, "d": "text"})
    ggtok.load("model.gguf", overrides={"a": None})  # type: ignore[dict-item]
    ggtok.load(3)  # type: ignore[arg-type]
    ggtok.load("model.gguf", "llama-bpe")  # type: ignore[call-arg]


def encoding(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.encode("text"), list[int])
    assert_type(tok.encode(b"text", add_special=False, parse_special=True), list[int])
    tok.encode(memoryview(b"text"))
    tok.encode(None)  # type: ignore[arg-type]
    assert_type(tok.count("text"), int)
    assert_type(tok.encode_array("text"), NDArray[np.int32])
    assert_type(tok.encode_batch(["a", b"b"], threads=2), list[list[int]])
    assert_type(
        tok.encode_batch_arrays(text for text in ("a", "b")),
        tuple[NDArray[np.int32], NDArray[np.int64]],
    )


def chat(tok: ggtok.Tokenizer) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    assert_type(tok.apply_chat_template(messages, tools=[{}], thinking=True), str)
    assert_type(tok.apply_chat_template(messages, clock=datetime.now), str)
    assert_type(tok.encode_chat(messages, add_generation_prompt=False), list[int])
    assert_type(tok.encode_chat(messages, return_assistant_mask=True), tuple[list[int], list[bool]])
    tok.apply_chat_template("Hi")  # type: ignore[arg-type]


def decoding(tok: ggtok.Tokenizer, array: NDArray[np.int32]) -> None:
    assert_type(tok.decode([1, 2]), str)
    assert_type(tok.decode(array, remove_special=True, errors="strict"), str)
    assert_type(tok.decode_bytes(iter([1, 2]), unparse_special=False), bytes)
    tok.decode("text")  # type: ignore[arg-type]


def tokens(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.token_to_piece(1, lstrip=1, special=False), bytes)
    assert_type(tok.text_to_token("a"), int | None)
    assert_type(tok.text_to_token(b"a"), int | None)
    assert_type(tok.token_text(1), bytes)
    assert_type(tok.token_score(1), float)
    assert_type(tok.token_attr(1), ggtok.TokenAttr)
    assert_type(tok.token_attr(1) & ggtok.TokenAttr.CONTROL, ggtok.TokenAttr)
    assert_type(tok.is_eog(1), bool)
    assert_type(tok.is_control(1), bool)
    assert_type(tok.eog_ids, frozenset[int])
    assert_type(tok.suppress_tokens, tuple[int, ...])
    assert_type(tok.bos_id, int | None)
    assert_type(tok.fim_sep_id, int | None)


def vocabulary(tok: ggtok.Tokenizer) -> None:
    assert_type(tok.n_tokens, int)
    assert_type(len(tok), int)
    assert_type(tok.vocab_type, str)
    assert_type(tok.model, str)
    assert_type(tok.pre, str | None)
    assert_type(tok.add_bos, bool)
    assert_type(tok.metadata, Mapping[str, str | int | float | bool])
    assert_type(tok.chat_template, str | None)
    assert_type(tok.chat_templates, dict[str, str])
    tok.n_tokens = 3  # type: ignore[misc]


def errors(error: Any) -> None:
    try:
        ggtok.load("model.gguf")
    except ggtok.UnknownPreTokenizerError as e:
        assert_type(e.name, str | None)
        assert_type(e.suggestions, tuple[str, ...])
    except ggtok.GGUFError as e:
        assert_type(e.key, str | None)
        assert_type(e.offset, int | None)
    except ggtok.FileError as e:
        assert_type(e.errno, int | None)
    except ggtok.GGTokError:
        pass
