"""Detects the capabilities of a template by rendering test conversations.

As in llama-server, each rendering shows how the template uses the values that it gets. The
capabilities decide how messages are written for the template (`messages.write`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ggtok.native.jinja import Path, Template, Use

Json = dict[str, Any]


@dataclass(slots=True)
class Caps:
    """What a template supports, named as in `chat_template_caps` in llama-server's /props, without
    ``supports_``."""

    string_content: bool = True
    typed_content: bool = False
    tools: bool = True
    tool_calls: bool = True
    parallel_tool_calls: bool = True
    system_role: bool = True
    preserve_reasoning: bool = False
    reasoning_effort: bool = False
    object_arguments: bool = False

    @property
    def only_string(self) -> bool:
        """Whether content in parts must be joined into a single string."""
        return self.string_content and not self.typed_content

    @property
    def only_typed(self) -> bool:
        """Whether content that is a string must become a list with one part."""
        return self.typed_content and not self.string_content


# Variables that decide whether earlier reasoning is kept, each with the value that keeps it.
PRESERVING = {
    "preserve_thinking": True,
    "clear_thinking": False,
    "truncate_history_thinking": False,
    "drop_thinking": False,
}
EFFORTS = ("reasoning_effort", "reasoning_strength")

_MARKER = "STRING_MARKER"
_REASONING = "<REASONING_CONTENT_PLACEHOLDER>"
_OBJECT, _TEXT = {"arg": "value"}, '{"arg": "value"}'
_USER = {"role": "user", "content": "User message"}
_SAID = {"role": "assistant", "content": "Assistant message"}
_TOOLS = [
    {
        "name": "tool",
        "type": "function",
        "function": {
            "name": "tool1",
            "description": "Tool description",
            "parameters": {
                "type": "object",
                "properties": {"arg": {"type": "string", "description": "Arg description"}},
                "required": ["arg"],
            },
        },
    }
]
_TOOL_NAME: Path = ("tools", 0, "function", "name")
_CALLS: Path = ("messages", 1, "tool_calls")
_CONTENT: Path = ("messages", 0, "content")


def find(template: Template) -> Caps:
    caps = Caps()
    _find_content(template, caps)
    _find_system(template, caps)
    _find_tools(template, caps)
    _find_parallel(template, caps)
    _find_reasoning(template, caps)
    return caps


def _probe(
    template: Template,
    messages: Sequence[Json],
    paths: Sequence[Path],
    tools: Sequence[Json] = (),
    **more: Any,
) -> tuple[str | None, Sequence[Use]]:
    variables = {
        "messages": list(messages),
        "tools": list(tools),
        "bos_token": "",
        "eos_token": "",
        "add_generation_prompt": True,
        **more,
    }
    return template.probe(variables, paths)


def _as_list(use: Use) -> bool:
    return bool(use.operations & {"selectattr", "array_access"})


def _find_content(template: Template, caps: Caps) -> None:
    text, (use,) = _probe(template, [{"role": "user", "content": _MARKER}], [_CONTENT])
    as_list = caps.typed_content = _as_list(use)
    if text is None or (as_list and _MARKER not in text):
        caps.string_content = False
    if "test_is_string" in use.operations:
        text, (use,) = _probe(template, [{"role": "user", "content": []}], [_CONTENT])
        if text is not None and _as_list(use):
            caps.typed_content = True


def _find_system(template: Template, caps: Caps) -> None:
    messages = [{"role": "system", "content": "System message"}, _USER]
    _, (use,) = _probe(template, messages, [_CONTENT])
    caps.system_role = use.used


def _calling(arguments: object, ids: Sequence[str]) -> list[Json]:
    function = {"name": "tool1", "arguments": arguments}
    calls = [{"id": id, "type": "function", "function": function} for id in ids]
    return [
        _USER,
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "content": "Tool response", "tool_call_id": ids[0]},
        {"role": "assistant", "content": "The tool response was 'tool response'"},
        _USER,
    ]


def _find_tools(template: Template, caps: Caps) -> None:
    """Tests tools and calls, first with arguments as an object, then as text."""
    argument: Path = (*_CALLS, 0, "function", "arguments", "arg")
    messages = _calling(_OBJECT, ["call00001"])
    text, uses = _probe(template, messages, [_TOOL_NAME, _CALLS, argument], _TOOLS)
    if text is not None:
        name, calls, value = uses
        caps.tools = name.used
        caps.tool_calls = calls.used
        caps.object_arguments = calls.used and value.used
    if caps.object_arguments:
        return
    messages = _calling(_TEXT, ["call00001"])
    text, (name, calls) = _probe(template, messages, [_TOOL_NAME, _CALLS], _TOOLS)
    # A capability that the template lacks for arguments as an object stays false.
    caps.tools = caps.tools and text is not None and name.used
    caps.tool_calls = caps.tool_calls and text is not None and calls.used


def _find_parallel(template: Template, caps: Caps) -> None:
    arguments = _OBJECT if caps.object_arguments else _TEXT
    messages = _calling(arguments, ["call00001", "call00002"])
    text, (second,) = _probe(template, messages, [(*_CALLS, 1, "function")], _TOOLS)
    caps.parallel_tool_calls = text is not None and second.used


def _find_reasoning(template: Template, caps: Caps) -> None:
    messages = [
        _USER,
        {**_SAID, "reasoning_content": _REASONING},
        _USER,
        {**_SAID, "reasoning_content": "Reasoning content"},
        _USER,
    ]
    preserve: Json = {"enable_thinking": True, **PRESERVING}
    text, _ = _probe(template, messages, [], **preserve)
    caps.preserve_reasoning = text is not None and _REASONING in text
    low: Json = {"enable_thinking": True, **dict.fromkeys(EFFORTS, "low")}
    _, uses = _probe(template, [_USER], [(name,) for name in EFFORTS], **low)
    caps.reasoning_effort = any(use.used for use in uses)
