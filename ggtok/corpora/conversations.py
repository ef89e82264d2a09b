"""Reads conversations from JSON lines, in the shapes that are used for fine-tuning.

A conversation's document is the request that has its messages, as JSON.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

from ggtok.corpora.documents import Fields

_NAMES = ("messages", "conversations", "conversation")  # of the field with the messages
_READ = (*_NAMES, "system", "tools")
_ROLES = {
    **dict.fromkeys(("human", "user"), "user"),
    **dict.fromkeys(("gpt", "assistant", "chatgpt", "bing", "bard", "model"), "assistant"),
    **dict.fromkeys(("tool", "observation", "function_response", "tool_response"), "tool"),
    "system": "system",
}
_CALL = "function_call"  # a message whose value is a call, or a list of calls, as JSON


class _Fault(Exception):
    """Raised for a record that isn't a conversation; the argument says why."""


class Conversations(Fields):
    """Records that are conversations: requests with ``messages``; objects whose ``conversations``
    have ``from`` and ``value``; or lists of messages."""

    opens = b"{["
    locates = True

    def __init__(self) -> None:
        super().__init__(["messages"])

    def documents(self, lines: Iterable[bytes], parse: Callable[[bytes], Any]) -> list[bytes]:
        return [self.document(parse(line), line) for line in lines]

    def document(self, record: Any, line: bytes) -> bytes:
        """Returns the line itself if it is a request, so that its numbers stay as they are."""
        request = _request(record)
        if request is record:
            if b"\\ud" in line or b"\\uD" in line:
                json.dumps(record, ensure_ascii=False).encode()  # raises for a lone surrogate
            return line
        return json.dumps(request, ensure_ascii=False).encode()

    def type_fault(self, record: object) -> str | None:
        return None if type(record) in (dict, list) else "not a JSON object or a list of messages"

    def needs_conversion(self, line: bytes) -> bool:
        """Whether a line is a conversation in a shape that isn't a request's."""
        try:
            record = json.loads(line)
            return isinstance(record, dict) and _NAMES[0] not in record and bool(_request(record))
        except (ValueError, RecursionError, _Fault):
            return False

    def fault(self, record: Any) -> str | None:
        try:
            _request(record)
        except _Fault as e:
            return str(e)
        return None


def _request(record: Any) -> Any:
    """Returns a record as a request or a list of messages: the same object if it is one."""
    body = {"messages": record} if isinstance(record, list) else record
    name = next((name for name in _NAMES if name in body), None)
    if name is None:
        raise _Fault("none of the fields 'messages', 'conversations' and 'conversation' exists")
    given = body[name]
    if not isinstance(given, list):
        raise _Fault(f"the field {name!r} is not a list of messages")
    if not given:
        raise _Fault(f"the field {name!r} is an empty list")
    messages = [_message(message, f"{name}[{i}]") for i, message in enumerate(given)]
    is_request = name == _NAMES[0] and all(map(_is_same, messages, given))
    tools, system = body.get("tools"), body.get("system")
    if system is not None and not isinstance(system, str):
        raise _Fault(f"the field 'system' is not a string, but {type(system).__name__}")
    has_system = bool(system) and messages[0].get("role") != "system"
    if is_request and not has_system and not isinstance(tools, str):
        return record
    others = {key: value for key, value in body.items() if key not in _READ}
    if has_system:
        messages.insert(0, {"role": "system", "content": system})
    if isinstance(tools, str):  # tables can't hold schemas, so they are text
        tools = _parse_json(tools, "tools") if tools.strip() else None
    return {**others, "messages": messages, **({} if tools is None else {"tools": tools})}


def as_request(value: Any) -> Any:
    """Returns a conversation as a request or a list of messages; any other value unchanged."""
    try:
        return _request(value) if isinstance(value, (dict, list)) else value
    except _Fault:
        return value


def is_conversation(line: bytes) -> bool:
    """Whether a line of JSON is a conversation."""
    try:
        return bool(_request(json.loads(line)))
    except (ValueError, RecursionError, TypeError, _Fault):
        return False


def _is_same(a: object, b: object) -> bool:
    return a is b


def _message(message: Any, at: str) -> Any:
    """Returns a message with a role; `at` is its place in the record."""
    if not isinstance(message, dict):
        raise _Fault(f"{at} is not an object")
    if "role" in message:
        return message
    if "from" not in message or "value" not in message:
        raise _Fault(f"{at} has neither 'role' nor 'from' and 'value'")
    sender, value = message["from"], message["value"]
    if sender == _CALL:
        return {"role": "assistant", "content": "", "tool_calls": _calls(value, f"{at}.value")}
    role = _ROLES.get(sender) if isinstance(sender, str) else None
    if role is None:
        known = ", ".join((*_ROLES, _CALL))
        given = json.dumps(sender[:40]) if isinstance(sender, str) else type(sender).__name__
        raise _Fault(f"{at}.from is {given}, not one of {known}")
    return {"role": role, "content": value}


def _calls(value: object, at: str) -> list[Any]:
    found: Any = _parse_json(value, at) if isinstance(value, str) else value
    calls = found if isinstance(found, list) else [found]
    if not all(isinstance(call, dict) and "name" in call for call in calls):
        raise _Fault(f"{at} is not a call with a name and arguments")
    return [{"type": "function", "function": {"arguments": {}} | call} for call in calls]


def _parse_json(text: str, at: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise _Fault(f"{at} is not valid JSON") from None
