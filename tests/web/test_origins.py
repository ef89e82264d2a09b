"""chatOrigins says which message each part of a prompt comes from."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from tests.chat.made import TEMPLATES
from tests.chat.mediafiles import IMAGE
from tests.chat.requests import says, text, user
from tests.support.vocabularies import fixture
from tests.web.hosts import Host, JsError, Tokenizer

LIKE = ("llama.cpp", "transformers")


@pytest.fixture
def js(host: Host) -> Any:
    js = Tokenizer(host, fixture("bpe-llama3"))
    yield js
    js.free()


def named(found: dict[str, Any]) -> list[tuple[str, ...]]:
    """Returns the parts of a prompt with their origins. Checks that there are no gaps."""
    units = found["text"].encode("utf-16-le")
    parts, at = [], 0
    for part in found["origins"]:
        assert part["start"] == at < part["end"]
        at = part["end"]
        shown = units[2 * part["start"] : 2 * at].decode("utf-16-le")
        where = (f"{part['message']} {part['field']}",) if part["from"] == "message" else ()
        parts.append((part["from"], *where, shown))
    assert 2 * at == len(units)
    return parts


def message(where: str, shown: str) -> tuple[str, ...]:
    return ("message", where, shown)


def template(shown: str) -> tuple[str, ...]:
    return ("template", shown)


@pytest.mark.parametrize("like", LIKE)
def test_equal_texts_have_different_origins(js: Tokenizer, like: str) -> None:
    """Equal texts in several messages and in the template have different origins."""
    source = (
        "{% for m in messages %}<{{ m.role }}>{{ m.content | trim }}</user>{% endfor %}"
        "{% if add_generation_prompt %}<user>{% endif %}"
    )
    messages = [user("the \U0001f44d"), user(" </user>"), user("the \U0001f44d"), user("</user>")]
    options = {"template": source, "like": like}
    found = js.chatOrigins({"messages": messages, "add_generation_prompt": True}, options)
    expected = []
    for i, content in enumerate(("the \U0001f44d", "</user>", "the \U0001f44d", "</user>")):
        expected += [template("<user>" if i == 0 else "</user><user>")]
        expected += [message(f"{i} content", content)]
    assert named(found) == [*expected, template("</user><user>")]


@pytest.mark.parametrize("like", LIKE)
def test_computed_texts_have_an_origin_or_are_unknown(js: Tokenizer, like: str) -> None:
    source = (
        "{{ messages[0].content | upper }}|{{ messages[1].content.split(' ')[1] }}|"
        "{{ messages | map(attribute='content') | join(', ') }}|{{ messages[0].content | tojson }}|"
        "{{ messages | length }}|{{ bos_token }}{{ who }}"
    )
    request = {"messages": [user("h\u00e9 a"), user("b c")], "chat_template_kwargs": {"who": "me"}}
    options = {"template": "{%- if messages[1] %}" + source + "{% endif %}", "like": like}
    parts = named(js.chatOrigins(request, options))
    assert parts[:7] == [
        message("0 content", "H\u00c9 A" if like == "transformers" else "H\u00e9 A"),
        template("|"),
        message("1 content", "c"),
        template("|"),
        message("0 content", "h\u00e9 a"),
        template(", "),
        message("1 content", "b c"),
    ]
    assert parts[7] == template("|")
    assert parts[8:] == [
        ("unknown", '"'),
        message("0 content", "h\u00e9 a"),
        ("unknown", '"'),
        template("|"),
        ("unknown", "2"),
        template("|<|begin_of_text|>"),
        ("unknown", "me"),
    ]


def test_messages_that_the_server_changes_keep_their_origins(js: Tokenizer) -> None:
    """The server merges a system message into the user's, joins parts around an image, and
    continues an answer; the origins are still known."""
    source = (
        "{% for m in messages %}{% if m.role != 'system' %}[{{ m.content }}]{% endif %}{% endfor %}"
    )
    messages = [says("system", "s"), user([text("a"), IMAGE, text("b"), text("c")])]
    refused = [user("u") if isinstance(m["content"], list) else m for m in messages]
    found = js.chatOrigins({"messages": refused}, {"template": source})
    assert named(found) == [
        template("["),
        message("0 content", "s"),
        template("\n"),
        message("1 content", "u"),
        template("]"),
    ]
    messages = [*messages[1:], {**says("assistant", "yes"), "reasoning_content": "no"}]
    options = {"template": TEMPLATES["plain"]}
    parts = named(js.chatOrigins({"messages": messages}, options))
    said = [part for part in parts if part[0] == "message"]
    assert ("0 content", "a") in [part[1:] for part in said]
    assert said[-1] == message("1 content", "yes")
    assert any("<__media__>" in part[1] for part in parts if part[0] == "template")


@pytest.mark.parametrize("like", LIKE)
def test_origins_are_right_in_every_template(js: Tokenizer, like: str) -> None:
    """Origins are right in every template: each field has characters that no other field has."""
    first = 0x4E00
    where = {}

    def letters(i: int, field: str) -> str:
        begin = first + 8 * len(where)
        chosen = "".join(map(chr, range(begin, begin + 8)))
        where[chosen] = f"{i} {field}"
        return chosen

    def call(i: int) -> dict[str, Any]:
        function = {"name": letters(i, "tool_calls"), "arguments": letters(i, "tool_calls")}
        return {"id": "abcdefgh1", "type": "function", "function": function}

    def asked(i: int) -> dict[str, Any]:
        return user([text(letters(i, "content")), text(letters(i, "content"))])

    messages: list[dict[str, Any]] = [
        says("system", letters(0, "content")),
        user(letters(1, "content")),
        {
            **says("assistant", letters(2, "content")),
            "reasoning_content": letters(2, "reasoning_content"),
        },
        asked(3),
        {**says("assistant", letters(4, "content")), "tool_calls": [call(4)]},
        {
            **says("tool", letters(5, "content")),
            "tool_call_id": "abcdefgh1",
            "name": letters(5, "name"),
        },
        user(letters(6, "content")),
    ]
    of = {letter: name for letters, name in where.items() for letter in letters}
    followed = unknown = rendered = 0
    # The first four messages have no tool calls, which some templates refuse.
    for source, some in itertools.product(TEMPLATES.values(), (messages, messages[:4])):
        options = {"template": source, "like": like}
        request = {"messages": some, "add_generation_prompt": True}
        [shown] = js.each("renderChat", [(request, options)])
        if isinstance(shown, JsError):
            continue
        found = js.chatOrigins(request, options)
        assert found["text"] == shown["text"]
        rendered += 1
        for part in named(found):
            if part[0] == "message":
                assert {of.get(letter, part[1]) for letter in part[2]} == {part[1]}, part
                followed += len(part[2])
            else:
                inside = [letter for letter in part[1] if letter in of]
                assert not inside or part[0] == "unknown", part
                unknown += len(inside)
    assert rendered > 40
    assert followed > unknown


def test_each_of_many_messages_has_an_origin(js: Tokenizer) -> None:
    source = "{% for m in messages %}{{ m.content }}{% endfor %}"
    found = js.chatOrigins({"messages": [user("x")] * 5000}, {"template": source})
    assert named(found) == [message(f"{i} content", "x") for i in range(5000)]


def test_roles_of_a_message_s_own_have_its_origin(js: Tokenizer) -> None:
    source = "{% for m in messages %}{{ m.role }}:{{ m.content }}{% endfor %}"
    found = js.chatOrigins({"messages": [says("</s>", "x")]}, {"template": source})
    assert named(found) == [message("0 role", "</s>"), template(":"), message("0 content", "x")]


def test_a_prompt_without_messages_has_origins(js: Tokenizer) -> None:
    options = {"template": "{% for m in messages %}{{ m }}{% endfor %}the{{ tools | length }}"}
    [found] = js.each("chatOrigins", [({"messages": []}, options)])
    assert named(found) == [template("the"), ("unknown", "0")]


def test_errors_are_those_of_the_rendering(js: Tokenizer) -> None:
    request = {"messages": [user("x")]}
    [error] = js.each("chatOrigins", [(request, {"template": "a\n{{ messages | nothing }}"})])
    assert (error.name, error.data["line"]) == ("TemplateError", 2)
    [error] = js.each("chatOrigins", [({"messages": 1}, {"template": "chatml"})])
    assert error.name == "ArgumentError"
