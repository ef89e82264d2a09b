"""Tests which fields of a request's messages and tools reach the template, and which are
rejected."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from ggtok import load
from ggtok.chat import api, llama
from ggtok.chat import messages as m
from ggtok.chat.caps import Caps
from ggtok.chat.prompt import Text
from ggtok.chat.request import Options
from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError
from ggtok.native import chat
from tests.chat.made import TEMPLATES
from tests.chat.requests import SCHEMA, call, says, text, user
from tests.support.vocabularies import fixture

STRING = Caps()
TYPED = Caps(string_content=False, typed_content=True)
BOTH = Caps(typed_content=True)
OBJECT = Caps(object_arguments=True)


def rewritten(message: dict[str, Any], caps: Caps = STRING) -> dict[str, Any]:
    return m.write(m.read(message, 0), caps, 0)


PARTS = [text("one"), text(""), text("two")]


@pytest.mark.parametrize(
    ("caps", "content", "becomes"),
    [
        (STRING, "a", "a"),
        (STRING, None, ""),
        (STRING, [], ""),
        (STRING, PARTS, "one\n\ntwo"),
        (STRING, [text(""), text(""), text("a")], "a"),
        (TYPED, "a", [text("a")]),
        (TYPED, None, [text("")]),
        (TYPED, PARTS, PARTS),
        (BOTH, "a", "a"),
        (BOTH, PARTS, PARTS),
        (BOTH, [], ""),
        (STRING, ({"type": "text", "text": "a", "more": 1},), "a"),
    ],
)
def test_contents_become_what_the_template_reads(
    caps: Caps, content: object, becomes: object
) -> None:
    assert rewritten(says("user", content), caps) == {"role": "user", "content": becomes}


def test_the_separator_of_parts_is_the_templates() -> None:
    content = rewritten(says("user", [text("é"), text("b")]))["content"]
    assert isinstance(content, Text)
    assert content.ranges == ((2, 3),)
    message = m.read(says("user", [text("é"), text("b")]), 0)
    assert message.pieces() == [("é", False), ("\n\n", True), ("b", False)]
    assert isinstance(rewritten(user())["role"], Text)
    assert not isinstance(rewritten(says("wizard", ""))["role"], Text)


def test_unknown_fields_are_dropped() -> None:
    message = says(
        "assistant",
        "Hi",
        reasoning_content="Hm",
        name="n",
        tool_call_id="i",
        tool_calls=[call("1", "f", {"a": 2**64 - 1, "b": [0.5, "é"]})],
        thinking="dropped",
        weight=1,
    )
    assert rewritten(MappingProxyType(message)) == {  # type: ignore[arg-type]
        "role": "assistant",
        "content": "Hi",
        "reasoning_content": "Hm",
        "name": "n",
        "tool_call_id": "i",
        "tool_calls": [call("1", "f", '{"a":18446744073709551615,"b":[0.5,"é"]}')],
    }
    assert list(rewritten(message)) == [
        "role",
        "content",
        "reasoning_content",
        "name",
        "tool_call_id",
        "tool_calls",
    ]
    empty = says("user", "", reasoning_content="", name="", tool_call_id="", tool_calls=[])
    assert rewritten(empty) == {"role": "user", "content": ""}


@pytest.mark.parametrize(
    ("caps", "arguments", "becomes"),
    [
        (STRING, '{"a": 1}', '{"a": 1}'),
        (STRING, "no JSON", "no JSON"),
        (STRING, {"a": (1, None)}, '{"a":[1,null]}'),
        (STRING, None, "null"),
        (OBJECT, '{"a": 18446744073709551615}', {"a": -1}),
        (OBJECT, {"a": 2**64 - 1}, {"a": -1}),
        (OBJECT, '"text"', "text"),
        (OBJECT, None, None),
    ],
)
def test_arguments_become_what_the_template_reads(
    caps: Caps, arguments: object, becomes: object
) -> None:
    without_id = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    found = rewritten(says("assistant", "", tool_calls=(without_id,)), caps)["tool_calls"]
    assert found == [{"type": "function", "function": {"name": "f", "arguments": becomes}}]


def test_malformed_arguments_raise_errors() -> None:
    message = says("assistant", "", tool_calls=[call("1", "f", "{")])
    where = r"messages\[0\]\['tool_calls'\]\[0\]\['function'\]\['arguments'\]: not valid JSON"
    with pytest.raises(InvalidValueError, match=where):
        rewritten(message, OBJECT)


def test_null_and_empty_calls_are_dropped() -> None:
    for nothing in (None, {}, []):
        assert "tool_calls" not in rewritten(says("assistant", "a", tool_calls=nothing))
    assert rewritten({"role": "assistant", "tool_calls": None}) == {
        "role": "assistant",
        "content": "",
    }


def roles(caps: Caps, *messages: dict[str, Any]) -> list[tuple[str, Any]]:
    found = m.merge_system([rewritten(message, caps) for message in messages], caps)
    return [(message["role"], message["content"]) for message in found]


NO_SYSTEM = Caps(system_role=False)


def test_developer_messages_become_system_messages() -> None:
    body = {"messages": [says("developer", "A"), user("B")]}
    assert prompt_of(body) == "<system>A<user>B<assistant>"
    assert prompt_of(body, "{# <|channel|> #}" + TURNS) == "<developer>A<user>B<assistant>"
    assert prompt_of(body, TEMPLATES["no system"]) == prompt_of(
        {"messages": [user("A\nB")]}, TEMPLATES["no system"]
    )


def test_unsupported_system_messages_are_merged() -> None:
    assert roles(NO_SYSTEM, says("system", "A"), user("B"), says("system", "C")) == [
        ("user", "A\nB"),
        ("system", "C"),
    ]
    assert roles(NO_SYSTEM, says("system", "A"), says("assistant", "B")) == [("assistant", "A\nB")]
    assert roles(NO_SYSTEM, says("system", "A")) == []
    assert roles(NO_SYSTEM, user("A"), says("system", "B")) == [("user", "A"), ("system", "B")]
    assert roles(NO_SYSTEM) == []
    messages = [rewritten(says("system", "A")), rewritten(user("B"))]
    (merged,) = m.merge_system(messages, NO_SYSTEM)
    assert merged["content"].ranges == ((1, 2),)
    typed = Caps(system_role=False, typed_content=True)
    with pytest.raises(InvalidTypeError, match="contents in parts can't be merged"):
        roles(typed, says("system", [text("A")]), user("B"))


def test_trimming_removes_only_ascii_white_space() -> None:
    given = says("user", " a\n", reasoning_content="\tb\u00a0 ")
    message = m.read(given, 0)
    assert (message.trimmed().content, message.trimmed().reasoning) == ("a", "b\u00a0")
    message = m.read(says("user", [text(" a "), text(" ")]), 0)
    assert message.trimmed().parts == ["a", ""]


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("Hi", r"messages\[0\] must be a mapping, not str"),
        ({"content": "a"}, r"messages\[0\] has no 'role'"),
        (says(None, "a"), r"\['role'\] must be str, not NoneType"),  # type: ignore[arg-type]
        ({"role": "user"}, "has no 'content'"),
        ({"role": "user", "tool_calls": []}, "has no 'content'"),
        ({"role": "assistant"}, "has no 'content' or 'tool_calls'"),
        (says("user", 1), r"\['content'\] must be str, a list of parts or None, not int"),
        (says("user", {}), "not dict"),
        (says("user", ["a"]), r"\['content'\]\[0\] must be a mapping, not str"),
        (says("user", [{"text": "a"}]), "the type of a part must be 'text' or one of .*, not None"),
        (says("user", [{"type": "media_marker", "text": "x"}]), "not 'media_marker'"),
        (says("user", [{"type": ["text"]}]), r"not \['text'\]"),
        (says("user", [{"type": "text"}]), r"\['text'\] must be str, not missing"),
        (says("user", "\ud800"), "lone surrogate"),
        (says("user", "", name=1), r"\['name'\] must be str, not int"),
        (says("user", "", reasoning_content=None), r"\['reasoning_content'\] must be str"),
        (says("tool", "", tool_call_id=None), r"\['tool_call_id'\] must be str"),
        (says("assistant", "", tool_calls={"a": 1}), r"\['tool_calls'\] must be a list"),
        (says("assistant", "", tool_calls=["a"]), r"\['tool_calls'\]\[0\] must be a mapping"),
        (says("assistant", "", tool_calls=[{}]), "the type of a call must be 'function'"),
        (
            says("assistant", "", tool_calls=[{"type": "function"}]),
            r"\[0\]\['function'\] must be a mapping",
        ),
        (
            says("assistant", "", tool_calls=[{"type": "function", "function": {}}]),
            r"\['function'\]\['name'\] must be str, not missing",
        ),
        (
            says("assistant", "", tool_calls=[{"type": "function", "function": {"name": "f"}}]),
            r"\['function'\] has no 'arguments'",
        ),
        (
            says("assistant", "", tool_calls=[{**call("1", "f", ""), "id": None}]),
            r"\['id'\] must be str",
        ),
        (
            says("assistant", "", tool_calls=[call("1", "f", {"a": float("nan")})]),
            r"\['arguments'\]\['a'\]: nan can't be written as JSON",
        ),
    ],
)
def test_messages_that_are_refused(message: Any, pattern: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=pattern):
        m.read(message, 0)


# ---- tools ----


def test_tools_are_completed() -> None:
    full = {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        "cache_control": {},
    }
    bare = {"type": "function", "function": {"name": "g"}}
    null = {"type": "function", "function": {"name": "h", "parameters": None}}
    assert m.read_tools((full, bare, null)) == [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": SCHEMA},
        },
        {"type": "function", "function": {"name": "g", "description": "", "parameters": {}}},
        {"type": "function", "function": {"name": "h", "description": "", "parameters": None}},
    ]
    assert m.read_tools(None) == []


@pytest.mark.parametrize(
    ("tools", "pattern"),
    [
        ({}, "tools must be a list of mappings, not dict"),
        (["a"], r"tools\[0\] must be a mapping, a JSON schema, not str"),
        ([print], "transformers.utils.get_json_schema makes one"),
        ([{}], "the type of a tool must be 'function', not None"),
        ([{"type": "function"}], r"tools\[0\]\['function'\] must be a mapping"),
        ([{"type": "function", "function": {}}], r"\['name'\] must be str, not missing"),
        (
            [{"type": "function", "function": {"name": "f", "description": None}}],
            r"\['description'\] must be str, not NoneType",
        ),
        (
            [{"type": "function", "function": {"name": "f", "parameters": {"a": b""}}}],
            r"\['parameters'\]\['a'\]",
        ),
    ],
)
def test_tools_that_are_refused(tools: Any, pattern: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=pattern):
        m.read_tools(tools)


# ---- other fields of the body ----


TURNS = """\
{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.reasoning_content }}{% endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""
ASKED, BEGUN = "<user>Hi", "<user>Hi<assistant>"
ANSWERED = [user(), says("assistant", "He")]


def prompt_of(body: dict[str, Any], template: str = TURNS) -> str:
    tok = load(fixture("bpe-qwen2"))
    text: str = api.run_body(tok._loaded, body, chat.TEXT, template=template)
    return text


@pytest.mark.parametrize(
    ("fields", "schema"),
    [
        ({}, None),
        ({"response_format": {"type": "text"}}, None),
        ({"response_format": {}}, None),
        ({"response_format": "text"}, None),
        ({"response_format": {"type": 1}}, None),
        ({"response_format": {"type": "json_object"}}, {"type": "object"}),
        ({"response_format": {"type": "json_object", "schema": SCHEMA}}, SCHEMA),
        ({"response_format": {"type": "json_object"}, "json_schema": SCHEMA}, SCHEMA),
        ({"response_format": {"type": "json_schema"}}, {"type": "object"}),
        (
            {"response_format": {"type": "json_schema", "json_schema": {"schema": SCHEMA}}},
            SCHEMA,
        ),
        ({"json_schema": {}}, {"type": "object"}),
        ({"json_schema": "x"}, "x"),
    ],
)
def test_schemas_come_from_response_formats(fields: dict[str, Any], schema: object) -> None:
    assert llama.schema_of(fields) == schema


@pytest.mark.parametrize(
    ("fields", "prompt"),
    [
        ({}, BEGUN),
        ({"add_generation_prompt": None}, BEGUN),
        ({"add_generation_prompt": "no"}, BEGUN),
        ({"add_generation_prompt": False}, ASKED),
        ({"messages": []}, "<assistant>"),
        ({"messages": ANSWERED}, BEGUN + "He"),
        ({"messages": ANSWERED[1:]}, "<assistant>He"),
        ({"messages": ANSWERED, "continue_final_message": False}, BEGUN + "He"),
        (
            {
                "messages": ANSWERED,
                "continue_final_message": "content",
                "add_generation_prompt": False,
            },
            BEGUN + "He",
        ),
        (
            {"continue_final_message": "reasoning_content", "add_generation_prompt": False},
            "<assistant>",
        ),
        ({"continue_final_message": True, "add_generation_prompt": False}, "<assistant>Hi"),
        ({"continue_final_message": None}, BEGUN),
    ],
)
def test_prompts_end_where_the_answer_begins(fields: dict[str, Any], prompt: str) -> None:
    assert prompt_of({"messages": [user()], **fields}) == prompt


def test_two_final_answers_are_complete_if_not_continued() -> None:
    tok = load(fixture("bpe-qwen2"))
    messages = [*ANSWERED, ANSWERED[1]]
    text = tok.apply_chat_template(messages, template=TURNS, continue_final_message=False)
    assert text == "<user>Hi<assistant>He<assistant>He<assistant>"


@pytest.mark.parametrize(
    ("fields", "thinking", "variables"),
    [
        ({}, None, {}),
        ({"chat_template_kwargs": {"enable_thinking": True}}, True, {"enable_thinking": True}),
        ({"chat_template_kwargs": {"enable_thinking": 1}}, None, {"enable_thinking": 1}),
        ({"reasoning_effort": "none"}, False, {}),
        (
            {"reasoning_effort": "none", "chat_template_kwargs": {"reasoning_effort": "low"}},
            False,
            {},
        ),
        (
            {"reasoning_effort": "high", "chat_template_kwargs": {"reasoning_effort": "low"}},
            None,
            {"reasoning_effort": "high"},
        ),
        ({"reasoning_effort": "", "chat_template_kwargs": {"a": 1}}, None, {"a": 1}),
        ({"reasoning_effort": 1}, None, {}),
        ({"chat_template_kwargs": None}, None, {}),
    ],
)
def test_variables_come_from_the_body(
    fields: dict[str, Any], thinking: bool | None, variables: dict[str, Any]
) -> None:
    server = api.server(load(fixture("bpe-qwen2"))._loaded, Options(template=TURNS))
    found = server.read(fields, False)
    assert found.thinking == (server.thinks if thinking is None else thinking)
    assert found.given == variables


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ({}, "messages are missing"),
        ({"messages": None}, "messages must be a list of mappings, not NoneType"),
        ({"messages": "Hi"}, "not str"),
        ({"tool_choice": "some"}, "tool_choice must be one of 'auto', .*, not 'some'"),
        ({"reasoning_format": "loud"}, "reasoning_format must be one of"),
        ({"reasoning_format": None}, "reasoning_format must be str, not NoneType"),
        ({"response_format": {"type": "yaml"}}, "response_format: the type must be"),
        ({"json_schema": SCHEMA, "grammar": "g"}, "json_schema and grammar can't be combined"),
        ({"tools": [TOOL], "grammar": None}, "tools and grammar can't be combined"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs must be a mapping, not list"),
        ({"chat_template_kwargs": {"enable_thinking": "no"}}, "enable_thinking must be bool"),
        ({"chat_template_kwargs": {"x": float("inf")}}, r"kwargs\['x'\]: inf can't be written"),
        ({"continue_final_message": True}, "pass add_generation_prompt=False"),
        ({"continue_final_message": "x"}, "continue_final_message must be True, False"),
        ({"continue_final_message": 1}, "continue_final_message must be True, False"),
        ({"messages": [*ANSWERED, ANSWERED[1]]}, "the last two are both from the assistant"),
        (
            {"messages": [says("assistant", "", tool_calls=[call("1", "f", {})])]},
            "the last one calls tools",
        ),
    ],
)
def test_requests_that_are_refused(body: dict[str, Any], pattern: str) -> None:
    complete = {"messages": [user()], **body} if body else body
    with pytest.raises(GGTokError, match=pattern):
        prompt_of(complete)


def test_tools_and_grammar_are_accepted_without_calls() -> None:
    body = {"messages": [user()], "tools": [TOOL], "grammar": "g", "tool_choice": "none"}
    assert prompt_of(body) == BEGUN
