"""Converts bodies for OpenAI's Responses API to bodies for its chat API, as llama-server does."""

from __future__ import annotations

from typing import Any

from ggtok.server.errors import Refusal
from ggtok.server.fields import anything, has, text

Json = dict[str, Any]


def to_chat(body: Any) -> Json:
    """Converts a body of the Responses API to one of the chat API. Raises Refusal."""
    if not has(body, "input"):
        raise Refusal("'input' is required")
    if text(body, "previous_response_id"):
        raise Refusal("llama.cpp does not support 'previous_response_id'.")
    chat = {name: value for name, value in body.items() if name not in ("input", "instructions")}
    messages: list[Json] = []
    if "instructions" in body:
        messages.append({"role": "system", "content": text(body, "instructions")})
    given = body["input"]
    if isinstance(given, str):
        messages.append({"role": "user", "content": given})
    elif isinstance(given, list):
        for item in given:
            _add(messages, item)
    else:
        raise Refusal("'input' must be a string or array of objects")
    chat["messages"] = messages
    if "tools" in body:
        _tools(chat, body["tools"])
    if "max_output_tokens" in body:
        chat["max_tokens"] = chat.pop("max_output_tokens")
    if "reasoning" in body:
        reasoning = chat.pop("reasoning")
        if has(reasoning, "effort"):
            chat["reasoning_effort"] = reasoning["effort"]
    return chat


def _add(messages: list[Json], item: Any) -> None:
    """Adds an item as a message, or to the preceding assistant message."""
    kind, role = text(item, "type"), text(item, "role")
    if isinstance(anything(item, "content"), str):
        item = {**item, "content": [{"text": item["content"], "type": "input_text"}]}
    content = anything(item, "content")
    last = messages[-1] if messages and messages[-1]["role"] == "assistant" else None
    if isinstance(content, list) and role in ("user", "system", "developer"):
        kept = {name: item[name] for name in item if name not in ("type", "status")}
        messages.append({**kept, "content": [_input(part) for part in content]})
    elif role == "assistant" and kind == "message":
        parts = [_output(part) for part in content] if isinstance(content, list) else []
        if last is not None:
            _extend(last, "content", parts)
        else:
            kept = {name: item[name] for name in item if name not in ("type", "status")}
            messages.append({**kept, "content": parts})
    elif kind == "function_call" and all(
        isinstance(item.get(name), str) for name in ("arguments", "call_id", "name")
    ):
        call = {
            "function": {"arguments": item["arguments"], "name": item["name"]},
            "id": item["call_id"],
            "type": "function",
        }
        if last is not None:
            _extend(last, "tool_calls", [call])
        else:
            messages.append({"role": "assistant", "tool_calls": [call]})
    elif (
        kind == "function_call_output"
        and isinstance(item.get("call_id"), str)
        and isinstance(item.get("output"), (str, list))
    ):
        messages.append(
            {
                "content": _result(item["output"]),
                "role": "tool",
                "tool_call_id": item["call_id"],
            }
        )
    elif kind == "reasoning" and isinstance(item.get("summary"), list):
        thought = _thought(content)
        if last is not None:
            last["reasoning_content"] = thought
        else:
            messages.append({"role": "assistant", "content": [], "reasoning_content": thought})
    else:
        raise Refusal("Cannot determine type of 'item'")


def _extend(message: Json, name: str, items: list[Any]) -> None:
    """Appends items to a list of a message, which may lack the list."""
    if isinstance(message.get(name), list):
        message[name] += items
    else:
        message[name] = items


def _input(part: Any) -> Json:
    kind = text(part, "type")
    if kind == "input_text":
        if "text" not in part:
            raise Refusal("'Input text' requires 'text'")
        return {"text": part["text"], "type": "text"}
    if kind == "input_image":
        return {"image_url": _image(part), "type": "image_url"}
    if kind == "input_file":
        raise Refusal("'input_file' is not supported by llamacpp at this moment")
    raise Refusal("'type' must be one of 'input_text', 'input_image', or 'input_file'")


def _image(part: Json) -> Json:
    if "image_url" not in part:
        raise Refusal("'image_url' is required")
    return {"url": part["image_url"]}


def _output(part: Any) -> Json:
    kind = text(part, "type")
    if kind in ("output_text", "input_text"):
        if not isinstance(part.get("text"), str):
            raise Refusal("'Output text' requires 'text'")
        return {"text": part["text"], "type": "text"}
    if kind == "refusal":
        if not isinstance(part.get("refusal"), str):
            raise Refusal("'Refusal' requires 'refusal'")
        return {"refusal": part["refusal"], "type": "refusal"}
    raise Refusal("'type' must be one of 'output_text' or 'refusal'")


def _result(output: str | list[Any]) -> Any:
    """Converts a tool's output to the content of its message."""
    if isinstance(output, str):
        return output
    parts: list[Json] = []
    for part in output:
        if not has(part, "type"):
            raise Refusal("Output of tool call missing 'type' field")
        if part["type"] == "input_text":
            parts.append({**part, "type": "text"})
        elif part["type"] == "input_image":
            parts.append({**part, "type": "image_url", "image_url": _image(part)})
        else:
            raise Refusal("Output of tool call should be 'Input text' or 'Input image'")
    return parts


def _thought(content: Any) -> str:
    if not isinstance(content, list):
        raise Refusal("item['content'] is not an array")
    if not content:
        raise Refusal("item['content'] is empty")
    if not isinstance(anything(content[0], "text"), str):
        raise Refusal("item['content']['text'] is not a string")
    thought: str = content[0]["text"]
    return thought


def _tools(chat: Json, tools: Any) -> None:
    """Sets the chat's tools to those of the request that are functions."""
    if not isinstance(tools, list):
        raise Refusal("'tools' must be an array of objects")
    kept = []
    for tool in tools:
        if text(tool, "type") == "function":
            function = {name: tool[name] for name in tool if name != "type"}
            function.setdefault("strict", True)
            kept.append({"type": "function", "function": function})
    chat.pop("tools")
    if kept:
        chat["tools"] = kept
