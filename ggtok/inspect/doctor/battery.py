"""The conversations with which :mod:`~ggtok.inspect.doctor.engines` compares two programs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

Message = dict[str, Any]


@dataclass(frozen=True)
class Chat:
    """A conversation: messages, and the other parts of a chat request.

    Attributes:
        messages: the messages; the arguments of calls are mappings.
        tools: the tools' schemas.
        prefill: whether the last message is the beginning of an answer that the model continues.
    """

    messages: tuple[Message, ...]
    tools: tuple[Message, ...] = ()
    prefill: bool = False

    def size(self) -> tuple[int, int, int]:
        """Returns the numbers of messages, tools and characters, by which conversations are
        sorted to find the shortest."""
        return len(self.messages), len(self.tools), len(self.as_json())

    def as_json(self) -> str:
        """Returns the conversation as JSON, for a finding's text."""
        parts = [json.dumps(list(self.messages), ensure_ascii=False)]
        if self.tools == (SMALL_TOOL,):
            parts.append("with a tool")
        elif self.tools:
            parts.append("with the tools " + json.dumps(list(self.tools), ensure_ascii=False))
        if self.prefill:
            parts.append("(the model continues the last message)")
        return " ".join(parts)

    def smaller(self) -> Iterator[Chat]:
        """Yields, for each of the conversation's parts, the conversation without it; large parts
        first."""
        messages = self.messages
        for i in range(len(messages) if len(messages) > 1 else 0):
            if not (self.prefill and i == len(messages) - 1):
                yield replace(self, messages=messages[:i] + messages[i + 1 :])
        for i in range(len(self.tools)):
            yield replace(self, tools=self.tools[:i] + self.tools[i + 1 :])
        if self.prefill:
            yield replace(self, prefill=False)
        for i, message in enumerate(messages):
            for key in message:
                if key not in ("role", "content"):
                    less = {k: v for k, v in message.items() if k != key}
                    yield replace(self, messages=(*messages[:i], less, *messages[i + 1 :]))
        for i, tool in enumerate(self.tools):
            if tool != SMALL_TOOL:
                yield replace(self, tools=(*self.tools[:i], SMALL_TOOL, *self.tools[i + 1 :]))
        for i, message in enumerate(messages):
            for key, value in message.items():
                for shorter in _shorter(key, value):
                    less = {**message, key: shorter}
                    yield replace(self, messages=(*messages[:i], less, *messages[i + 1 :]))


def _shorter(key: str, value: Any) -> Iterator[Any]:
    if isinstance(value, list):
        for i in range(len(value) if len(value) > 1 else 0):
            yield value[:i] + value[i + 1 :]
        if key == "tool_calls":
            for i, call in enumerate(value):
                function = call["function"]
                for small in ({}, {"a": "b"}):
                    if function["arguments"] not in ({}, small):
                        less = {**call, "function": {**function, "arguments": small}}
                        yield [*value[:i], less, *value[i + 1 :]]
    elif key == "content" and value is not None and value != "A":
        yield "A"


# ---- the battery ----


def _says(role: str, content: Any, **more: Any) -> Message:
    return {"role": role, "content": content, **more}


def _call(id: str, name: str, arguments: Message) -> Message:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _text(text: str) -> Message:
    return {"type": "text", "text": text}


def _tool(name: str, description: str, properties: Message, required: list[str]) -> Message:
    parameters = {"type": "object", "properties": properties, "required": required}
    function = {"name": name, "description": description, "parameters": parameters}
    return {"type": "function", "function": function}


SMALL_TOOL = _tool("f", "F", {}, [])
_WEATHER = _tool(
    "get_weather",
    'The weather of a place <now> & then, in "\u00b0C"',
    {
        "city": {"type": "string", "description": "A city's name"},
        "unit": {"type": "string", "description": "The unit", "enum": ["C", "F"]},
        "days": {"type": "integer", "description": "How many", "minimum": 1, "default": 3},
    },
    ["city"],
)
_EXPRESSION = {"type": "string", "description": "What to calculate"}
_CALCULATE = _tool("calculate", "Calculates", {"expression": _EXPRESSION}, ["expression"])
_TERSE = _tool("now", "The time", {"zone": {"type": "string"}}, [])
_TOOLS = (_WEATHER, _CALCULATE)
_HI, _BYE = _says("user", "Hi"), _says("user", "Bye")
_SYSTEM = _says("system", "Be brief.")
_ANSWER = _says("assistant", "Hello.")
# Mistral's templates require ids of nine letters and digits.
_ONE = _call("abcdefgh1", "get_weather", {"city": "S\u00e3o Paulo"})
_RICH = {"expression": "2 < 3 && '4'", "n": [1, 2.5, None], "exact": True}
_TWO = _call("abcdefgh2", "calculate", _RICH)
_SUNNY = _says("tool", '{"sky": "<clear>"}', tool_call_id="abcdefgh1", name="get_weather")
_FIVE = _says("tool", "5", tool_call_id="abcdefgh2", name="calculate")
_CALLS = _says("assistant", "", tool_calls=[_ONE])
_THOUGHT = _says("assistant", "So.", reasoning_content="Let me think,\nso.")


def _chat(*messages: Message, tools: tuple[Message, ...] = (), prefill: bool = False) -> Chat:
    return Chat(messages, tools, prefill)


# Each conversation has one feature that those before it lack. Those in PLAIN are like the ones that
# every chat program sends.
PLAIN: dict[str, Chat] = {
    "one question": _chat(_HI),
    "a system message": _chat(_SYSTEM, _HI),
    "two questions": _chat(_HI, _ANSWER, _BYE),
    "white space": _chat(_says("user", "  Hi \n"), _says("assistant", "\n\tHello.\n\n"), _BYE),
    "other scripts": _chat(_says("user", "Gr\u00fc\u00dfe, \u4f60\u597d \U0001f44d <b> & \"'")),
}
OTHERS: dict[str, Chat] = {
    "two system messages": _chat(_SYSTEM, _says("system", "Be kind."), _HI),
    "a late system message": _chat(_HI, _SYSTEM, _BYE),
    "an unknown role": _chat(_says("wizard", "Abracadabra"), _HI),
    "two users": _chat(_HI, _BYE),
    "the assistant first": _chat(_ANSWER, _HI),
    "an empty question": _chat(_says("user", "")),
    "an empty system message": _chat(_says("system", ""), _HI),
    "an empty answer": _chat(_HI, _says("assistant", ""), _BYE),
    "an answer that is null": _chat(_HI, _says("assistant", None), _BYE),
    "a part": _chat(_says("user", [_text("Hi")])),
    "two parts": _chat(_says("user", [_text("Hi"), _text("there")])),
    "a system message of parts": _chat(_says("system", [_text("Be brief.")]), _HI),
    "an answer of parts": _chat(_HI, _says("assistant", [_text("Hello.")]), _BYE),
    "reasoning": _chat(_HI, _THOUGHT, _BYE),
    "reasoning in tags": _chat(_HI, _says("assistant", "<think>\nHm.\n</think>\n\nSo."), _BYE),
    "tools": _chat(_HI, tools=_TOOLS),
    "a tool without descriptions": _chat(_HI, tools=(_TERSE,)),
    "tools and a system message": _chat(_SYSTEM, _HI, tools=_TOOLS),
    "a call": _chat(_HI, _CALLS, _SUNNY, tools=_TOOLS),
    "a call without tools": _chat(_HI, _CALLS, _SUNNY),
    "a call with null content": _chat(_HI, {**_CALLS, "content": None}, _SUNNY, tools=_TOOLS),
    "a call with content": _chat(_HI, {**_CALLS, "content": "I look."}, _SUNNY, tools=_TOOLS),
    "a call and an answer": _chat(_HI, _CALLS, _SUNNY, _ANSWER, _BYE, tools=_TOOLS),
    "a call after reasoning": _chat(
        _HI, {**_CALLS, "reasoning_content": "Hm."}, _SUNNY, tools=_TOOLS
    ),
    "a call with many arguments": _chat(
        _HI, _says("assistant", "", tool_calls=[_TWO]), _FIVE, tools=_TOOLS
    ),
    "parallel calls": _chat(
        _HI, _says("assistant", "", tool_calls=[_ONE, _TWO]), _SUNNY, _FIVE, tools=_TOOLS
    ),
    "a result of parts": _chat(_HI, _CALLS, {**_SUNNY, "content": [_text("sunny")]}, tools=_TOOLS),
    "a result without a call": _chat(_HI, _SUNNY, tools=_TOOLS),
    "a beginning of the answer": _chat(_HI, _says("assistant", "Well"), prefill=True),
    "a beginning after reasoning": _chat(
        _HI, _says("assistant", "Well", reasoning_content="Hm."), prefill=True
    ),
}
