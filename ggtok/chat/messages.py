"""Converts the messages in a request to messages for a template, as llama-server does.

The server reads a message into a structure and writes it again, so unknown keys are dropped, null
contents become "", arguments become JSON text, and values of unexpected types are refused.
`read_llama` in cext/python/chat.c does the same for simple messages, without this module.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from ggtok.chat import values
from ggtok.chat.caps import Caps
from ggtok.chat.media import KINDS, MARKER, Marker
from ggtok.chat.prompt import C_SPACES, joined, own, role
from ggtok.errors import InvalidTypeError, InvalidValueError

Json = dict[str, Any]


@dataclass(slots=True)
class Message:
    role: str
    content: str = ""
    parts: list[str] = field(default_factory=list)  # texts, and a Marker for each other part
    calls: list[Json] = field(default_factory=list)  # tool calls, with arguments as received
    reasoning: str = ""
    name: str = ""
    call_id: str = ""

    def __bool__(self) -> bool:
        """Whether the message has anything besides the role."""
        return bool(
            self.content or self.parts or self.calls or self.reasoning or self.name or self.call_id
        )

    @property
    def n_media(self) -> int:
        """The number of parts that aren't text."""
        return sum(type(part) is Marker for part in self.parts)

    def pieces(self) -> list[tuple[str, bool]]:
        """Returns the content in pieces: its texts, with blank lines between them. Other parts are
        omitted."""
        if not self.parts:
            return [(self.content, False)]
        return separated([part for part in self.parts if type(part) is not Marker], "\n\n")

    def trimmed(self) -> Message:
        return replace(
            self,
            content=self.content.strip(C_SPACES),
            parts=[p if type(p) is Marker else p.strip(C_SPACES) for p in self.parts],
            reasoning=self.reasoning.strip(C_SPACES),
        )


def separated(parts: list[str], separator: str) -> list[tuple[str, bool]]:
    """Returns the parts and the separators between them as pieces.

    There is no separator before the first non-empty part, nor next to a marker. Separators and
    markers count as the template's own text.
    """
    pieces: list[tuple[str, bool]] = []
    begun = after_marker = False
    for part in parts:
        is_marker = type(part) is Marker
        if begun and not is_marker and not after_marker:
            pieces.append((separator, True))
        pieces.append((part, is_marker))
        begun, after_marker = begun or bool(part), is_marker
    return pieces


# ---- reading ----


def read(message: Any, index: int, marker: str = MARKER) -> Message:
    """Reads a message from a request, with `marker` for parts that aren't text.

    Raises an error if the server would refuse the message.
    """
    where = f"messages[{index}]"
    message = _mapping(message, where)
    if "role" not in message:
        raise InvalidValueError(f"{where} has no 'role'")
    speaker = _string(message, "role", where)
    new = Message(role(speaker))
    has_content, has_calls = "content" in message, "tool_calls" in message
    if not has_content and (speaker != "assistant" or not has_calls):
        wanted = "'content' or 'tool_calls'" if speaker == "assistant" else "'content'"
        raise InvalidValueError(f"{where} has no {wanted}")
    if has_content:
        _content(new, message["content"], f"{where}['content']", Marker(marker))
    if has_calls and message["tool_calls"] is not None:
        new.calls = _calls(message["tool_calls"], f"{where}['tool_calls']")
    if "reasoning_content" in message:
        new.reasoning = _string(message, "reasoning_content", where)
    if "name" in message:
        new.name = _string(message, "name", where)
    if "tool_call_id" in message:
        new.call_id = _string(message, "tool_call_id", where)
    return new


def _content(new: Message, content: Any, where: str, marker: Marker) -> None:
    if isinstance(content, str):
        new.content = values.text(content, where)
    elif isinstance(content, (list, tuple)):
        new.parts = [_part(part, f"{where}[{i}]", marker) for i, part in enumerate(content)]
    elif content is not None:
        raise InvalidTypeError(
            f"{where} must be str, a list of parts or None, not {type(content).__name__}"
        )


def _part(part: Any, where: str, marker: Marker) -> str:
    part = _mapping(part, where)
    kind = part.get("type")
    if isinstance(kind, str) and kind in KINDS:
        return marker
    if kind != "text":
        known = ", ".join(map(repr, KINDS))
        raise InvalidValueError(
            f"{where}: the type of a part must be 'text' or one of {known}, not {kind!r}"
        )
    return _string(part, "text", where)


def _calls(calls: Any, where: str) -> list[Json]:
    if calls == {}:
        return []
    if not isinstance(calls, (list, tuple)):
        raise InvalidTypeError(f"{where} must be a list, not {type(calls).__name__}")
    return [_call(call, f"{where}[{i}]") for i, call in enumerate(calls)]


def _call(call: Any, where: str) -> Json:
    call = _mapping(call, where)
    if call.get("type") != "function":
        raise InvalidValueError(
            f"{where}: the type of a call must be 'function', not {call.get('type')!r}"
        )
    where_function = f"{where}['function']"
    function = _mapping(call.get("function"), where_function)
    name = _string(function, "name", where_function)
    if "arguments" not in function:
        raise InvalidValueError(f"{where_function} has no 'arguments'")
    arguments = values.from_python(
        function["arguments"], f"{where_function}['arguments']", wrap=False
    )
    new: Json = {"type": own("function"), "function": {"name": name, "arguments": arguments}}
    if "id" in call and (id := _string(call, "id", where)):
        new["id"] = id
    return new


def _mapping(value: Any, where: str) -> Mapping[str, Any]:
    fields = values.mapping(value)
    if fields is None:
        raise InvalidTypeError(f"{where} must be a mapping, not {type(value).__name__}")
    return fields


def _string(holder: Mapping[str, Any], key: str, where: str) -> str:
    value = holder.get(key)
    if not isinstance(value, str):
        found = type(value).__name__ if key in holder else "missing"
        raise InvalidTypeError(f"{where}[{key!r}] must be str, not {found}")
    return values.text(value, f"{where}[{key!r}]")


# ---- writing ----


def write(message: Message, caps: Caps, index: int) -> Json:
    """Converts a message to the template's form, before a handler changes it."""
    new: Json = {"role": message.role, "content": _written_content(message, caps)}
    if message.reasoning:
        new["reasoning_content"] = message.reasoning
    if message.name:
        new["name"] = message.name
    if message.call_id:
        new["tool_call_id"] = message.call_id
    if message.calls:
        new["tool_calls"] = [
            _written_call(call, caps, f"messages[{index}]['tool_calls'][{i}]")
            for i, call in enumerate(message.calls)
        ]
    return new


def _written_content(message: Message, caps: Caps) -> Any:
    if message.parts and not message.n_media and not caps.only_string:
        return [{"type": own("text"), "text": part} for part in message.parts]
    # The server joins all parts if any isn't text.
    text = joined(separated(message.parts, "\n")) if message.parts else message.content
    if caps.only_typed:
        return [{"type": own("text"), "text": text}]
    return text


def _written_call(call: Json, caps: Caps, where: str) -> Json:
    arguments = call["function"]["arguments"]
    if caps.object_arguments:
        where = f"{where}['function']['arguments']"
        if isinstance(arguments, str):
            arguments = values.parse(arguments, where)
        else:
            arguments = values.from_python(arguments, where)
    elif not isinstance(arguments, str):
        arguments = values.dump(arguments)
    return {**call, "function": {**call["function"], "arguments": arguments}}


def merge_system(messages: list[Json], caps: Caps) -> list[Json]:
    """Merges a system message into the next one if the template doesn't support system messages."""
    if caps.system_role or not messages or messages[0]["role"] != "system":
        return messages
    first, rest = messages[0], messages[1:]
    if rest:
        contents = first["content"], rest[0]["content"]
        for content in contents:
            if not isinstance(content, str):
                raise InvalidTypeError(
                    "the template supports no system message, and contents in parts can't be merged"
                )
        pieces = [(contents[0], False), ("\n", True), (contents[1], False)]
        rest[0] = {**rest[0], "content": joined(pieces)}
    return rest


# ---- tools ----


def read_tools(tools: Any) -> list[Json]:
    """Returns tools with only the fields that the server uses: name, description, parameters."""
    if tools is None:
        return []
    if not isinstance(tools, (list, tuple)):
        raise InvalidTypeError(f"tools must be a list of mappings, not {type(tools).__name__}")
    return [_tool(tool, f"tools[{i}]") for i, tool in enumerate(tools)]


def _tool(tool: Any, where: str) -> Json:
    tool = values.schema(tool, where)
    if tool.get("type") != "function":
        raise InvalidValueError(
            f"{where}: the type of a tool must be 'function', not {tool.get('type')!r}"
        )
    where = f"{where}['function']"
    function = _mapping(tool.get("function"), where)
    description = function.get("description", "")
    if not isinstance(description, str):
        raise InvalidTypeError(
            f"{where}['description'] must be str, not {type(description).__name__}"
        )
    return {
        "type": own("function"),
        "function": {
            "name": _string(function, "name", where),
            "description": values.text(description, f"{where}['description']"),
            "parameters": values.from_python(
                function.get("parameters", {}), f"{where}['parameters']"
            ),
        },
    }
