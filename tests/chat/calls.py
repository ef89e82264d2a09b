"""Requests as C reads them: the variables that a template gets, and prompts with their origins."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime
from typing import Any

import ggtok
from ggtok import Tokenizer
from ggtok.chat import api
from ggtok.chat.options import ChatOptions
from ggtok.chat.prompt import Prompt
from ggtok.native import chat_calls

NOW = datetime(2026, 3, 7, 15, 4, 5)


def run(
    tok: Tokenizer,
    body: dict[str, Any] | bytes,
    want: int,
    *,
    template: str | None = None,
    like: str = "llama.cpp",
    bits: int = 0,
) -> Any:
    """Returns what `want` selects for a whole request."""
    call = api.ChatCall(tok._loaded, ChatOptions(template=template, like=like, clock=lambda: NOW))
    call.fields = None
    return call.run_one(body, want, bits)[0]


def variables(tok: Tokenizer, body: dict[str, Any] | bytes, **options: Any) -> dict[str, Any]:
    """Returns the variables that the template gets."""
    found: dict[str, Any] = run(tok, body, chat_calls.VARIABLES, **options)
    return found


def prompt(tok: Tokenizer, body: dict[str, Any] | bytes, **options: Any) -> Prompt:
    found: Prompt = run(tok, body, chat_calls.PROMPT, **options)
    return found


def parts(found: Prompt) -> list[tuple[str, bool]]:
    """Returns the parts of a prompt, each with whether it is the template's own text."""
    data, split, at = found.text.encode(), [], 0
    for begin, end in (*found.ranges, (len(data), len(data))):
        split += [(data[at:begin].decode(), False), (data[begin:end].decode(), True)]
        at = end
    return [part for part in split if part[0]]


def outcome(call: Callable[[], Any]) -> Any:
    """Returns a call's result, or the type and the text of its error."""
    try:
        return call()
    except ggtok.GGTokError as e:
        return type(e), str(e)


def as_json(value: Any) -> bytes:
    return json.dumps(value).encode()
