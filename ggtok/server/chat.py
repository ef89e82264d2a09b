"""Renders the prompts of chat requests, and finds out why llama-server refuses a request.

:func:`prompt_of` accepts a body of OpenAI's chat API, to which `responses` and `anthropic` convert
the bodies of two other APIs. :mod:`ggtok.chat` renders it. A refusal has llama-server's status: 400
where its code throws ``std::invalid_argument``, else 500. So after an error, the checks are
repeated in the server's order to find the first one that fails.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from typing import Any, TypeVar

from ggtok import Tokenizer
from ggtok.chat import api, llama, messages
from ggtok.chat.media import KINDS
from ggtok.chat.request import Options
from ggtok.errors import GGTokError, TemplateError
from ggtok.native import chat
from ggtok.server.errors import Refusal
from ggtok.server.fields import anything, flag, has, kind, text

Result = TypeVar("Result")


def prompt_of(tok: Tokenizer, body: Any) -> str:
    """Returns the prompt that /apply-template answers with. Raises Refusal."""

    def prompt(body: dict[str, Any]) -> str:
        text: str = api.run_body(
            tok._loaded, body, chat.TEXT, trusted=True, media_marker=media_marker()
        )
        return text

    return _result(tok, body, prompt)


def count_of(tok: Tokenizer, body: Any, image_tokens: int | None = None) -> tuple[int, int]:
    """Returns the number of tokens in the prompt, and the number of images, audio and video that it
    doesn't include; the latter is 0 if `image_tokens`, the number for each, isn't None. Raises
    Refusal."""

    def count(body: dict[str, Any]) -> tuple[int, int]:
        return api.count_body(
            tok._loaded, body, trusted=True, media_marker=media_marker(), image_tokens=image_tokens
        )

    return _result(tok, body, count)


_RANDOM_MARKER = f"<__media_{secrets.token_hex(16)}__>"  # which no message contains


def media_marker() -> str:
    """Returns the text that represents an image in prompts: LLAMA_MEDIA_MARKER's value, else a
    random text."""
    return os.environ.get("LLAMA_MEDIA_MARKER") or _RANDOM_MARKER


def _result(tok: Tokenizer, body: Any, of: Callable[[dict[str, Any]], Result]) -> Result:
    body = _understood(body)
    try:
        found = of(body)
    except GGTokError as e:
        _check(body)
        raise _render_refusal(tok, body, e) from e
    if flag(body, "logprobs"):
        if body.get("tools") and flag(body, "stream"):
            raise Refusal("logprobs is not supported with tools + stream")
    elif body.get("top_logprobs") is not None:
        raise Refusal("top_logprobs requires logprobs to be set to true")
    return found


def _understood(body: Any) -> dict[str, Any]:
    """Removes values that llama-server ignores but ggtok.chat would refuse from a body."""
    fields = dict(body) if isinstance(body, dict) else {}
    if not isinstance(fields.get("chat_template_kwargs"), dict):
        fields.pop("chat_template_kwargs", None)
    if isinstance(fields.get("messages"), list):
        fields["messages"] = [_message(message) for message in fields["messages"]]
    return fields


def _message(message: Any) -> Any:
    """Converts a message's tool calls to an array: llama-server uses the values of an object, and
    treats anything else as a single call."""
    calls = anything(message, "tool_calls")
    if calls is None or isinstance(calls, list):
        return message
    return {**message, "tool_calls": list(calls.values()) if isinstance(calls, dict) else [calls]}


def _render_refusal(tok: Tokenizer, body: dict[str, Any], error: GGTokError) -> Refusal:
    if isinstance(error, TemplateError):
        try:
            served = api.server(tok._loaded, Options(body.get("tools")))
        except TemplateError:  # llama-server wouldn't start
            return Refusal(str(error), "server_error")
        if served.handler is None:
            return Refusal(str(error))
    return Refusal(str(error), "server_error")


# ---- llama-server's checks, in its order ----


def _check(body: dict[str, Any]) -> None:
    """Raises Refusal for the first of llama-server's checks that the body fails."""
    grammar = text(body, "grammar")
    if grammar and body.get("json_schema") is not None:
        raise Refusal("Cannot use both json_schema and grammar", "server_error")
    wanted = text(body.get("response_format"), "type")
    if wanted not in ("", "text", "json_object", "json_schema"):
        raise Refusal(
            'response_format type must be one of "text" or "json_object", but got: ' + wanted
        )
    if "messages" not in body:
        raise Refusal("'messages' is required")
    if not isinstance(body["messages"], list):
        raise Refusal("Expected 'messages' to be an array")
    for message in body["messages"]:
        _check_message(message)
    try:
        read = [messages.read(message, i) for i, message in enumerate(body["messages"])]
    except GGTokError as e:
        raise Refusal(f"Failed to parse messages: {e}", "server_error") from e
    try:
        tools = messages.read_tools(body.get("tools"))
    except GGTokError as e:
        raise Refusal(f"Failed to parse tools: {e}", "server_error") from e
    choice = text(body, "tool_choice", "auto")
    if choice not in ("auto", "none", "required"):
        raise Refusal("Invalid tool_choice: " + choice)
    _check_end(body, read)
    if "reasoning_format" in body:
        wanted = body["reasoning_format"]
        if not isinstance(wanted, str):
            raise Refusal(f"reasoning_format must be a string, not {kind(wanted)}")
        if wanted not in llama.REASONING_FORMATS:
            raise Refusal(f"Unknown reasoning format: {wanted}", "server_error")
    if tools and choice != "none" and "grammar" in body:
        raise Refusal("Cannot use custom grammar constraints with tools.")
    if isinstance(anything(body.get("chat_template_kwargs"), "enable_thinking"), str):
        raise Refusal('invalid type for "enable_thinking" (expected boolean, got string)')


def _check_message(message: Any) -> None:
    role = text(message, "role")
    if not has(message, "content"):
        if role != "assistant":
            raise Refusal("All non-assistant messages must contain 'content'")
        if "tool_calls" not in message:
            raise Refusal("Assistant message must contain either 'content' or 'tool_calls'!")
        return
    content = message["content"]
    if content is None or isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refusal("Expected 'content' to be a string or an array")
    for part in content:
        found = text(part, "type")
        if found != "text" and found not in KINDS:
            raise Refusal("unsupported content[].type")


def _check_end(body: dict[str, Any], read: list[messages.Message]) -> None:
    """Checks the last message, which the answer may continue."""
    final = body.get("continue_final_message")
    known = final is None or isinstance(final, bool) or final in ("content", "reasoning_content")
    if not known:
        raise Refusal(
            'Invalid continue_final_message: expected a boolean, "content" or "reasoning_content"'
        )
    continues = bool(final)
    generation = flag(body, "add_generation_prompt", True)
    last = read[-1] if read else None
    if not continues and last is not None and last.role == "assistant":
        if len(read) > 1 and read[-2].role == "assistant":
            raise Refusal("Cannot have 2 or more assistant messages at the end of the list.")
        continues, generation = True, False
    if continues and generation:
        raise Refusal("Cannot set both add_generation_prompt and continue_final_message to true.")
    if continues and last is not None and last.role == "assistant" and last.calls:
        raise Refusal("Cannot continue an assistant message that contains tool calls.")
