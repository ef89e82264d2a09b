"""Converts bodies for Anthropic's Messages API to bodies for OpenAI's chat API, as llama-server
does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ggtok.chat import values
from ggtok.server.errors import Refusal
from ggtok.server.fields import anything, has, text

Json = dict[str, Any]

_BILLING = "x-anthropic-billing-header:"
_STAMP = "cch="
_STAMP_LENGTH = 5
_CHOICES = {"auto": "auto", "any": "required", "tool": "required"}
_PASSED = ("temperature", "top_p", "top_k", "stream", "chat_template_kwargs")


def to_chat(body: Any) -> Json:
    """Converts a body of the Messages API to one of OpenAI's chat API. Raises Refusal."""
    messages: list[Any] = []
    system = anything(body, "system")
    if system is not None:
        messages.append({"role": "system", "content": _system(system)})
    if not has(body, "messages"):
        raise Refusal("'messages' is required", "server_error")
    if isinstance(body["messages"], list):
        for message in body["messages"]:
            messages += _messages(message)
    chat: Json = {"messages": messages}
    if isinstance(body.get("tools"), list):
        chat["tools"] = [_tool(tool) for tool in body["tools"]]
    choice = _CHOICES.get(text(body.get("tool_choice"), "type"))
    if choice:
        chat["tool_choice"] = choice
    chat |= {name: body[name] for name in _PASSED if name in body}
    return chat


def _system(system: Any) -> str:
    if isinstance(system, str):
        return _unstamped(system)
    if not isinstance(system, list):
        return ""
    blocks = (text(block, "text") for block in system if text(block, "type") == "text")
    return "".join(map(_unstamped, blocks))


def _unstamped(system: str) -> str:
    """Replaces the stamp in the first line of Claude Code's system prompt with a constant, because
    the stamp differs from request to request."""
    at = system.find(_STAMP, len(_BILLING)) if system.startswith(_BILLING) else -1
    begin = at + len(_STAMP)
    end = begin + _STAMP_LENGTH
    if at < 0 or system[end : end + 1] != ";" or not system[begin:end].isascii():
        return system
    return system[:begin] + "f" * _STAMP_LENGTH + system[end:]


def _messages(message: Any) -> Iterator[Any]:
    """Yields a message, with the tool results in it as separate messages."""
    if not has(message, "content"):
        if text(message, "role") != "assistant":
            yield message
        return
    if not isinstance(message["content"], list):
        yield message
        return
    content: list[Any] = []
    calls: list[Json] = []
    results: list[Json] = []
    reasoning = ""
    for block in message["content"]:
        kind = text(block, "type")
        if kind == "text":
            content.append(block)
        elif kind == "thinking":
            reasoning += text(block, "thinking")
        elif kind == "image":
            content += _image(block)
        elif kind == "tool_use":
            calls.append(_call(block))
        elif kind == "tool_result":
            results.append(_result(block))
    if content or calls or reasoning:
        new: Json = {"role": text(message, "role"), "content": content or ""}
        if calls:
            new["tool_calls"] = calls
        if reasoning:
            new["reasoning_content"] = reasoning
        yield new
    yield from results


def _image(block: Any) -> list[Json]:
    source = anything(block, "source")
    if text(source, "type") == "base64":
        media = text(source, "media_type", "image/jpeg")
        url = f"data:{media};base64,{text(source, 'data')}"
    elif text(source, "type") == "url":
        url = text(source, "url")
    else:
        return []
    return [{"type": "image_url", "image_url": {"url": url}}]


def _call(block: Any) -> Json:
    given = anything(block, "input", {})
    # The chat API would parse a string as JSON.
    arguments = values.dump(given) if isinstance(given, str) else given
    return {
        "id": text(block, "id"),
        "type": "function",
        "function": {"name": text(block, "name"), "arguments": arguments},
    }


def _result(block: Any) -> Json:
    content = anything(block, "content")
    if isinstance(content, list):
        content = _result_content(content)
    elif not isinstance(content, str):
        content = ""
    return {"role": "tool", "tool_call_id": text(block, "tool_use_id"), "content": content}


def _result_content(blocks: list[Any]) -> str | list[Json]:
    """Converts the blocks to one text, or to parts if there are images."""
    parts: list[Json] = []
    has_images = False
    for block in blocks:
        if text(block, "type") == "text":
            parts.append({"type": "text", "text": text(block, "text")})
        elif text(block, "type") == "image":
            has_images = True
            parts += _image(block)
    return parts if has_images else "".join(part["text"] for part in parts)


def _tool(tool: Any) -> Json:
    return {
        "type": "function",
        "function": {
            "name": text(tool, "name"),
            "description": text(tool, "description"),
            "parameters": tool["input_schema"] if has(tool, "input_schema") else {},
        },
    }
