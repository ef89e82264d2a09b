"""Reads and checks the fields of a chat request, as llama-server does.

null counts as missing, values of an unexpected type are mostly ignored, and the others are checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ggtok.chat import messages as _messages
from ggtok.chat import values
from ggtok.chat.messages import Json, Message
from ggtok.errors import InvalidTypeError, InvalidValueError

_TOOL_CHOICES = ("auto", "none", "required")
_REASONING_FORMATS = ("none", "auto", "deepseek", "deepseek-legacy")


@dataclass(slots=True)
class Request:
    """The body of a request, as the server interprets it."""

    messages: list[Message]
    tools: list[Json]
    # The request's variables for the template.
    variables: Json
    schema: Any  # the JSON schema of the answer, or None
    add_generation_prompt: bool
    # Where the last message is continued: "auto", "content", "reasoning_content", or "": nowhere.
    continues: str
    # True or False from the request, None for the template's default.
    thinking: bool | None


def read(body: Mapping[str, Any], prefill: bool = True) -> Request:
    """Reads and checks a body.

    `prefill`: continue a last message of the assistant, as the server does unless it was started
    with --no-prefill-assistant.
    """
    schema = _schema(body)
    if "messages" not in body:
        raise InvalidValueError("messages are missing")
    if not isinstance(body["messages"], (list, tuple)):
        raise InvalidTypeError(
            f"messages must be a list of mappings, not {type(body['messages']).__name__}"
        )
    messages = _messages.read(body["messages"])
    tools = _messages.read_tools(body.get("tools"))
    choice = _typed(body, "tool_choice", str, "auto")
    _one_of(choice, _TOOL_CHOICES, "tool_choice")
    _check_grammar(body, schema, bool(tools) and choice != "none")
    generation = _typed(body, "add_generation_prompt", bool, True)
    continues = _continuation(body.get("continue_final_message"))
    if not continues and prefill and messages and messages[-1].role == "assistant":
        if len(messages) > 1 and messages[-2].role == "assistant":
            raise InvalidValueError("messages: the last two are both from the assistant")
        continues, generation = "auto", False
    if continues and generation:
        raise InvalidValueError(
            "continue_final_message can't be combined with a generation prompt: "
            "pass add_generation_prompt=False"
        )
    if continues and messages and messages[-1].role == "assistant" and messages[-1].calls:
        raise InvalidValueError("messages: the last one calls tools, so it can't be continued")
    if "reasoning_format" in body:
        _one_of(body["reasoning_format"], _REASONING_FORMATS, "reasoning_format")
    variables = _variables(body)
    thinking = _thinking(variables)
    effort = _typed(body, "reasoning_effort", str, "")
    if effort == "none":
        thinking = False
        variables.pop("reasoning_effort", None)
    elif effort:
        variables["reasoning_effort"] = values.text(effort, "reasoning_effort")
    return Request(messages, tools, variables, schema, generation, continues, thinking)


def _typed(body: Mapping[str, Any], name: str, kind: type, default: Any) -> Any:
    """The field's value if it has the right type, else the default."""
    value = body.get(name)
    return value if isinstance(value, kind) else default


def _one_of(value: object, allowed: tuple[str, ...], name: str) -> None:
    if not isinstance(value, str):
        raise InvalidTypeError(f"{name} must be str, not {type(value).__name__}")
    if value not in allowed:
        choices = ", ".join(map(repr, allowed))
        raise InvalidValueError(f"{name} must be one of {choices}, not {value!r}")


def _schema(body: Mapping[str, Any]) -> Any:
    """The JSON schema of the answer, or None."""
    schema = values.from_python(body.get("json_schema"), "json_schema")
    wanted = _typed(body, "response_format", Mapping, {})
    kind = _typed(wanted, "type", str, "")
    if kind == "json_object":
        if "schema" in wanted or not schema:
            schema = _typed(wanted, "schema", Mapping, {})
    elif kind == "json_schema":
        schema = _typed(_typed(wanted, "json_schema", Mapping, {}), "schema", Mapping, {})
    elif kind not in ("", "text"):
        raise InvalidValueError(
            "response_format: the type must be 'text', 'json_object' or 'json_schema', "
            f"not {kind!r}"
        )
    if isinstance(schema, Mapping):
        schema = values.from_python(schema, "response_format") or {"type": "object"}
    return schema


def _check_grammar(body: Mapping[str, Any], schema: Any, uses_tools: bool) -> None:
    grammar = _typed(body, "grammar", str, "")
    if grammar and body.get("json_schema") is not None:
        raise InvalidValueError("json_schema and grammar can't be combined")
    if uses_tools and "grammar" in body:
        raise InvalidValueError("tools and grammar can't be combined")


def _continuation(value: object) -> str:
    if value is None or isinstance(value, bool):
        return "auto" if value else ""
    if value in ("content", "reasoning_content"):
        return str(value)
    raise InvalidValueError(
        "continue_final_message must be True, False, 'content' or 'reasoning_content', "
        f"not {value!r}"
    )


def _variables(body: Mapping[str, Any]) -> Json:
    given = body.get("chat_template_kwargs")
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InvalidTypeError(
            f"chat_template_kwargs must be a mapping, not {type(given).__name__}"
        )
    variables: Json = values.from_python(given, "chat_template_kwargs")
    return variables


def _thinking(variables: Json) -> bool | None:
    value = variables.get("enable_thinking")
    if isinstance(value, str):
        raise InvalidTypeError("enable_thinking must be bool, not str")
    return value if isinstance(value, bool) else None
