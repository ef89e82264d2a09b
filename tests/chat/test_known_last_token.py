"""encode_chat(messages, known=(n, ids)) if ids end with a token that the template doesn't write."""

from __future__ import annotations

from typing import Any

import pytest

from ggtok import load
from ggtok.chat import prompt_ids
from ggtok.chat.prompt import Prompt
from tests.chat.requests import says, user
from tests.support.patch import GGUF, add_tokens
from tests.support.vocabularies import fixture

TEMPLATE = "{% for m in messages %}{{ m.content }}{% endfor %}"
MESSAGES = [user("Hi"), says("assistant", "yes"), user("the")]


def test_text_after_bos_gets_a_space_prefix() -> None:
    tok = load(fixture("spm"))
    assert tok.bos_id is not None
    whole = tok.encode_chat(MESSAGES, template=TEMPLATE)
    assert whole[0] == tok.bos_id
    assert tok.encode_chat(MESSAGES, template=TEMPLATE, known=(0, [tok.bos_id])) == whole


@pytest.mark.parametrize("text", ["the", "  the", "\n"])
def test_text_after_a_generated_eos_gets_a_space_prefix(text: str) -> None:
    tok = load(fixture("spm"))
    assert tok.eos_id is not None
    messages = [*MESSAGES[:2], user(text)]
    ids = tok.encode_chat(messages, template=TEMPLATE, known=(2, [5, tok.eos_id]))
    assert ids == [5, *tok.encode(f"</s>{text}", add_special=False, parse_special=True)]


def test_text_after_other_tokens_gets_no_space_prefix() -> None:
    tok = load(fixture("spm"))
    ids = tok.encode_chat(MESSAGES, template=TEMPLATE, known=(2, [5]))
    assert ids == [5, *tok.encode("the", continuation=True)]


class Bytes(bytes):
    """Bytes that count how many of them are read."""

    read = 0

    def __getitem__(self, key: Any) -> Any:
        return Bytes(super().__getitem__(key))

    def translate(self, *args: Any) -> bytes:
        Bytes.read += len(self)
        return super().translate(*args)


class Tail(str):
    """A text whose encoded form counts how many bytes are read."""

    def encode(self, *args: Any) -> bytes:
        return Bytes(super().encode(*args))


@pytest.mark.parametrize("n", [100, 200, 400])
def test_many_closing_tokens_take_linear_time(n: int) -> None:
    tok = load(fixture("bpe-qwen2"))
    end = tok.text_to_token("<|im_end|>")
    text = Tail("é<|im_end|>\n" * n)
    tail = Prompt(text, ((0, len(str(text).encode())),))
    Bytes.read = 0
    closing = prompt_ids._closing(tok._loaded, [end or 0], tail, prompt_ids.PARSE)
    assert closing == ([], end, len(text) - 1)
    assert 0 < Bytes.read <= 2 * len(text)


@pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
def test_a_closing_token_that_ends_inside_a_character() -> None:
    """A hostile vocabulary may have a control token that is part of a character."""
    gguf = GGUF.read(fixture("bpe-qwen2"))
    add_tokens(gguf, [b"\xc3"], 3)  # CONTROL
    tok = load(gguf.dump())
    template = "{% for m in messages %}{{ m.content }}\u00e9\n{% endfor %}"
    ids = tok.encode_chat(MESSAGES, template=template, known=(1, [5]))
    assert ids[0] == 5 and tok.n_tokens - 1 in ids
