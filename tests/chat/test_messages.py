"""Tests which fields of a request's messages and tools reach the template, and which are
rejected."""

from __future__ import annotations

from types import MappingProxyType
from typing import Any

import pytest

from ggtok import load
from ggtok.chat import api
from ggtok.chat.compiled import chat_of
from ggtok.errors import GGTokError, InvalidTypeError, InvalidValueError
from ggtok.native import chat_calls
from tests.chat.calls import parts, prompt, variables
from tests.chat.made import TEMPLATES
from tests.chat.requests import SCHEMA, call, says, text, user
from tests.support.vocabularies import fixture

# For each combination of capabilities, a template that has them.
STRING = "{% for m in messages %}{{ m.content }}{% endfor %}"
TYPED = TEMPLATES["typed"]
BOTH = TEMPLATES["typed or string"]
OBJECT = TEMPLATES["object arguments"]


def written(messages: list[Any], template: str = STRING, **fields: Any) -> list[dict[str, Any]]:
    """Returns the messages that the template gets."""
    body = {"messages": messages, **fields}
    found = variables(
        load(fixture("bpe-qwen2")), body, template=template, bits=chat_calls.NO_PREFILL
    )
    return list(found["messages"])


def rewritten(message: Any, template: str = STRING) -> dict[str, Any]:
    # A second message, because the first alone might be merged into it.
    first, *_ = written([message, says("wizard", "")], template)
    return first


def test_the_templates_have_the_capabilities() -> None:
    def caps(template: str) -> set[str]:
        loaded = load(fixture("bpe-qwen2"))._loaded
        found = chat_of(loaded, "llama.cpp", template, None).facts_for(has_tools=False).caps
        names = ("string_content", "typed_content", "object_arguments", "system_role")
        return {name for name in names if found[name]}

    assert caps(STRING) == {"string_content", "system_role"}
    assert caps(TYPED) == {"typed_content", "system_role"}
    assert caps(BOTH) == {"string_content", "typed_content", "system_role"}
    assert caps(OBJECT) == {"string_content", "object_arguments", "system_role"}
    assert caps(NO_SYSTEM) == {"string_content"}
    assert caps(NO_SYSTEM_TYPED) == {"string_content", "typed_content"}


PARTS = [text("one"), text(""), text("two")]


@pytest.mark.parametrize(
    ("template", "content", "becomes"),
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
    template: str, content: object, becomes: object
) -> None:
    assert rewritten(says("user", content), template) == {"role": "user", "content": becomes}


def test_separators_and_roles_are_the_templates() -> None:
    tok = load(fixture("bpe-qwen2"))
    source = "{% for m in messages %}{{ m.role }}={{ m.content }};{% endfor %}"
    body = {"messages": [user([text("é"), text("b")]), says("wizard", "c")]}
    assert parts(prompt(tok, body, template=source)) == [
        ("user=", True),
        ("é", False),
        ("\n", True),
        ("b", False),
        (";", True),
        ("wizard", False),
        ("=", True),
        ("c", False),
        (";", True),
    ]


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
    assert rewritten(MappingProxyType(message)) == {
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
    ("template", "arguments", "becomes"),
    [
        (STRING, '{"a": 1}', '{"a": 1}'),
        (STRING, "no JSON", "no JSON"),
        (STRING, {"a": (1, None)}, '{"a":[1,null]}'),
        (STRING, None, "null"),
        (OBJECT, '{"a": 18446744073709551615}', {"a": 2**64 - 1}),
        (OBJECT, {"a": 2**64 - 1}, {"a": 2**64 - 1}),
        (OBJECT, '"text"', "text"),
        (OBJECT, None, None),
    ],
)
def test_arguments_become_what_the_template_reads(
    template: str, arguments: object, becomes: object
) -> None:
    without_id = {"type": "function", "function": {"name": "f", "arguments": arguments}}
    found = rewritten(says("assistant", "", tool_calls=(without_id,)), template)["tool_calls"]
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


NO_SYSTEM = TEMPLATES["no system"]
NO_SYSTEM_TYPED = BOTH.replace(
    "{% for m in messages %}", "{% for m in messages if m.role != 'system' %}"
)


def roles(*messages: dict[str, Any], template: str = NO_SYSTEM) -> list[tuple[str, Any]]:
    return [(m["role"], m["content"]) for m in written(list(messages), template)]


def test_developer_messages_become_system_messages() -> None:
    body = {"messages": [says("developer", "A"), user("B")]}
    assert prompt_of(body) == "<system>A<user>B<assistant>"
    assert prompt_of(body, "{# <|channel|> #}" + TURNS) == "<developer>A<user>B<assistant>"
    assert prompt_of(body, TEMPLATES["no system"]) == prompt_of(
        {"messages": [user("A\nB")]}, TEMPLATES["no system"]
    )


def test_unsupported_system_messages_are_merged() -> None:
    assert roles(says("system", "A"), user("B"), says("system", "C")) == [
        ("user", "A\nB"),
        ("system", "C"),
    ]
    assert roles(says("system", "A"), says("assistant", "B")) == [("assistant", "A\nB")]
    assert roles(says("system", "A")) == []
    assert roles(user("A"), says("system", "B")) == [("user", "A"), ("system", "B")]
    tok = load(fixture("bpe-qwen2"))
    body = {"messages": [says("system", "A"), user("B")]}
    assert parts(prompt(tok, body, template=NO_SYSTEM))[:4] == [
        ("user: ", True),
        ("A", False),
        ("\n", True),
        ("B", False),
    ]
    with pytest.raises(InvalidTypeError, match="contents in parts can't be merged"):
        roles(says("system", [text("A")]), user("B"), template=NO_SYSTEM_TYPED)


def test_trimming_removes_only_ascii_white_space() -> None:
    given = says("user", " a\n", reasoning_content="\tb\u00a0 ")
    trimming = TEMPLATES["trimmed"]
    found = rewritten(given, trimming)
    assert (found["content"], found["reasoning_content"]) == ("a", "b\u00a0")
    assert rewritten(says("user", [text(" a "), text(" ")]), trimming)["content"] == "a\n"
    assert rewritten(given)["content"] == " a\n"


@pytest.mark.parametrize(
    ("message", "pattern"),
    [
        ("Hi", r"messages\[0\] must be a mapping, not str"),
        ({"content": "a"}, r"messages\[0\] has no 'role'"),
        (says(None, "a"), r"\['role'\] must be str, not None"),  # type: ignore[arg-type]
        ({"role": "user"}, "has no 'content'"),
        ({"role": "user", "tool_calls": []}, "has no 'content'"),
        ({"role": "assistant"}, "has no 'content' or 'tool_calls'"),
        (says("user", 1), r"\['content'\] must be str, a list of parts or None, not int"),
        (says("user", {}), "not dict"),
        (says("user", ["a"]), r"\['content'\]\[0\] must be a mapping, not str"),
        (
            says("user", [{"text": "a"}]),
            "the type of a part must be 'text' or one of .*, not missing",
        ),
        (says("user", [{"type": "media_marker", "text": "x"}]), "not 'media_marker'"),
        (says("user", [{"type": ["text"]}]), "not list"),
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
        rewritten(message)


# ---- tools ----


def test_tools_are_completed() -> None:
    full = {
        "type": "function",
        "function": {"name": "f", "description": "d", "parameters": SCHEMA, "strict": True},
        "cache_control": {},
    }
    bare = {"type": "function", "function": {"name": "g"}}
    null = {"type": "function", "function": {"name": "h", "parameters": None}}
    assert tools_of((full, bare, null)) == [
        {
            "type": "function",
            "function": {"name": "f", "description": "d", "parameters": SCHEMA},
        },
        {"type": "function", "function": {"name": "g", "description": "", "parameters": {}}},
        {"type": "function", "function": {"name": "h", "description": "", "parameters": None}},
    ]
    assert tools_of(None) is None


def tools_of(tools: Any) -> Any:
    """Returns the tools that the template gets."""
    tok = load(fixture("bpe-qwen2"))
    body = {"messages": [user()], "tools": tools}
    return variables(tok, body, template=TEMPLATES["tools"]).get("tools")


@pytest.mark.parametrize(
    ("tools", "pattern"),
    [
        ({}, "tools must be a list of mappings, not dict"),
        (["a"], r"tools\[0\] must be a mapping, a JSON schema, not str"),
        ([print], "transformers.utils.get_json_schema makes a schema"),
        ([{}], "the type of a tool must be 'function', not missing"),
        ([{"type": "function"}], r"tools\[0\]\['function'\] must be a mapping"),
        ([{"type": "function", "function": {}}], r"\['name'\] must be str, not missing"),
        (
            [{"type": "function", "function": {"name": "f", "description": None}}],
            r"\['description'\] must be str, not None",
        ),
        (
            [{"type": "function", "function": {"name": "f", "parameters": {"a": b""}}}],
            r"\['parameters'\]\['a'\]",
        ),
    ],
)
def test_tools_that_are_refused(tools: Any, pattern: str) -> None:
    with pytest.raises((InvalidValueError, InvalidTypeError), match=pattern):
        tools_of(tools)


# ---- other fields of the body ----


TURNS = """\
{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.reasoning_content }}{% endfor %}
{%- if add_generation_prompt %}<assistant>{% endif %}"""
ASKED, BEGUN = "<user>Hi", "<user>Hi<assistant>"
ANSWERED = [user(), says("assistant", "He")]


def prompt_of(body: dict[str, Any], template: str = TURNS) -> str:
    tok = load(fixture("bpe-qwen2"))
    text: str = api.run_body(tok._loaded, body, chat_calls.TEXT, template=template)
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
        ({"json_schema": "x"}, None),
    ],
)
def test_schemas_come_from_response_formats(fields: dict[str, Any], schema: object) -> None:
    body = {"messages": [user()], **fields}
    tok = load(fixture("bpe-qwen2"))
    given = variables(tok, body, template=TEMPLATES["deepseek 4"])
    assert given.get("response_format") == schema


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
    ("fields", "thinking", "variables_given"),
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
    fields: dict[str, Any], thinking: bool | None, variables_given: dict[str, Any]
) -> None:
    tok = load(fixture("bpe-qwen2"))
    for template, usual in (
        ("{{ enable_thinking }}{{ reasoning_effort }}", False),
        (TEMPLATES["thinks in tags"] + "{{ enable_thinking }}{{ reasoning_effort }}", True),
    ):
        found = variables(tok, {"messages": [user()], **fields}, template=template)
        given = {"enable_thinking": usual if thinking is None else thinking, **variables_given}
        assert {name: found.get(name) for name in given} == given
        assert ("reasoning_effort" in found) == ("reasoning_effort" in given)


TOOL = {"type": "function", "function": {"name": "f"}}


@pytest.mark.parametrize(
    ("body", "pattern"),
    [
        ({}, "messages are missing"),
        ({"messages": None}, "messages must be a list of mappings, not None"),
        ({"messages": "Hi"}, "not str"),
        ({"tool_choice": "some"}, "tool_choice must be one of 'auto', .*, not 'some'"),
        ({"reasoning_format": "loud"}, "reasoning_format must be one of"),
        ({"reasoning_format": None}, "reasoning_format must be str, not None"),
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
