"""Tokenizer.show says from which message's role each token comes, by the origin of its text."""

from __future__ import annotations

from typing import Any

import pytest

from ggtok import Tokenizer, load
from tests.chat.requests import says, user
from tests.support.vocabularies import fixture

SAID = "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


def roles(tok: Tokenizer, messages: list[dict[str, Any]], template: str) -> list[tuple[str, str]]:
    """Returns the prompt's text, split where the role of its tokens changes."""
    more: dict[str, Any] = {"template": template, "add_generation_prompt": False}
    shown = tok.show(messages, limit=1 << 30, **more)
    parts: list[tuple[str, str]] = []
    for token in shown.tokens:
        role, text = token.role or "", tok.decode([token.id])
        if parts and parts[-1][0] == role:
            parts[-1] = (role, parts[-1][1] + text)
        else:
            parts.append((role, text))
    return parts


def test_equal_texts_have_the_roles_of_their_messages(tok: Tokenizer) -> None:
    messages = [says("system", "a b"), user("a b"), says("assistant", "a b"), user("b")]
    found = [part for part in roles(tok, messages, SAID) if part[0] != "template"]
    assert found == [("system", "a b"), ("user", "a b"), ("assistant", "a b"), ("user", "b")]


def test_parts_and_changed_texts_have_a_role(tok: Tokenizer) -> None:
    messages = [says("system", "One Two"), user("Two"), says("tool", "x")]
    template = (
        "{{ messages[2].content }}<|im_end|>{{ messages[1].content | upper }}<|im_end|>"
        "{{ messages[0].content.split()[1] }}"
    )
    found = [part for part in roles(tok, messages, template) if part[0] != "template"]
    assert found == [("tool", "x"), ("user", "TWO"), ("system", "Two")]


def test_texts_of_no_message_have_another_role(tok: Tokenizer) -> None:
    found = roles(tok, [user("a"), says("wizard", "b")], "{{ messages | length }}<|im_end|>" + SAID)
    assert [role for role, _ in found] == [
        *("other", "template"),
        *("user", "template"),
        *("other", "template"),
    ]


def test_many_texts_take_linear_time(tok: Tokenizer) -> None:
    """In quadratic time, this would take minutes."""
    lines = [f"line {i}." for i in range(2_000)]
    template = "{% for line in messages[0].content.split('|') %}{{ line }}<|im_end|>{% endfor %}"
    found = roles(tok, [user("|".join(lines))], template)
    assert len(found) == 4_000
    assert [text for role, text in found if role == "user"] == lines
