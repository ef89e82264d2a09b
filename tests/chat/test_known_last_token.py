"""encode_chat(messages, known=(n, ids)) if ids end with a token that the template doesn't write."""

from __future__ import annotations

import pytest

from ggtok import load
from tests.chat.requests import says, user
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
