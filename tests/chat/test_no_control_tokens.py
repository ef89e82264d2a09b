"""With each of llama.cpp's templates, no string in a request becomes a control token."""

from __future__ import annotations

import json
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat import api
from ggtok.native import chat_calls
from tests.chat import answers
from tests.chat.made import TEMPLATES
from tests.chat.requests import call, says, text, user
from tests.support.vocabularies import real

WORD = "Wintermute"
TOOL = {
    "type": "function",
    "function": {
        "name": WORD,
        "description": WORD,
        "parameters": {
            "type": "object",
            "properties": {WORD: {"type": "string", "description": WORD, "enum": [WORD]}},
        },
    },
}
CALLING = [
    user(WORD),
    says(
        "assistant",
        WORD,
        reasoning_content=WORD,
        tool_calls=[call("abcdefgh1", WORD, {WORD: WORD}), call("abcdefgh2", "now", "{}")],
    ),
    says("tool", WORD, tool_call_id="abcdefgh1", name=WORD),
    says("tool", f'{{"{WORD}": ["{WORD}"]}}', tool_call_id="abcdefgh2"),
]
BODIES: dict[str, dict[str, Any]] = {
    "texts": {"messages": [says("system", WORD), user(WORD), says("assistant", WORD), user(WORD)]},
    "developer": {"messages": [says("developer", WORD), user(WORD)]},
    "parts": {"messages": [user([text(WORD), text(""), text(WORD)])]},
    "roles and names": {"messages": [says(WORD, WORD, name=WORD), user(WORD)]},
    "calls": {"messages": CALLING, "tools": [TOOL]},
    "answer": {"messages": [user(WORD), says("assistant", WORD, reasoning_content=WORD)]},
    "answer in parts": {"messages": [user(WORD), says("assistant", [text(WORD), text(WORD)])]},
    "thought": {"messages": [user(WORD), says("assistant", "", reasoning_content=WORD)]},
    "variables": {
        "messages": [user(WORD)],
        "reasoning_effort": WORD,
        "chat_template_kwargs": {"date_string": WORD, "documents": [{"title": WORD, "text": WORD}]},
        "json_schema": {"type": "object", "description": WORD},
    },
}
END = "<|im_end|>"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(real("qwen2"))


def controls(tok: Tokenizer, body: dict[str, Any], template: str) -> list[int] | None:
    """Returns the control tokens of a request, or None if it is rejected."""
    try:
        ids = api.run_body(tok._loaded, body, chat_calls.IDS, template=template)
    except ggtok.GGTokError:
        return None
    return [id for id in ids if tok.is_control(id)]


@pytest.mark.parametrize("name", BODIES)
def test_no_string_becomes_a_control_token(name: str, tok: Tokenizer) -> None:
    body = json.dumps(BODIES[name])
    hostile = json.loads(body.replace(WORD, END))
    rendered = 0
    for template in (*answers.templates().values(), *TEMPLATES.values()):
        expected = controls(tok, json.loads(body), template)
        found = controls(tok, hostile, template)
        if expected is not None and found is not None:
            assert found == expected, template[:60]
            rendered += 1
    assert rendered > 90
    # With trusted=True, the string does become a control token, which the test would notice.
    trusted = api.run_body(
        tok._loaded, hostile, chat_calls.IDS, trusted=True, template=TEMPLATES["all"]
    )
    assert tok.text_to_token(END) in trusted
