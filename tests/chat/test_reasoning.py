"""The tags around reasoning are found by comparing renderings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from ggtok.chat import reasoning
from ggtok.chat.reasoning import Tags, difference, segments

Json = dict[str, Any]
MARK, TEXT = True, False


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("a", [(TEXT, "a")]),
        ("<a>", [(MARK, "<a>")]),
        ("a<b>[c]d", [(TEXT, "a"), (MARK, "<b>"), (MARK, "[c]"), (TEXT, "d")]),
        ("<a [b]>", [(MARK, "<a [b]>")]),
        ("[<]>", [(MARK, "[<]"), (TEXT, ">")]),
        ("a<b", [(TEXT, "a"), (TEXT, "<b")]),
        ("a<b [c]", [(TEXT, "a"), (TEXT, "<b [c]")]),
        ("a [b", [(TEXT, "a "), (TEXT, "[b")]),
        ("<>", [(MARK, "<>")]),
    ],
)
def test_segments(text: str, found: list[tuple[bool, str]]) -> None:
    assert segments(text) == found


@pytest.mark.parametrize(
    ("left", "right", "only_left", "only_right"),
    [
        ("", "", "", ""),
        ("", "a", "", "a"),
        ("a", "", "a", ""),
        ("a", "a", "", ""),
        ("<a>", "<a>", "", ""),
        ("axb", "ayb", "x", "y"),
        ("<a>", "<b>", "<a>", "<b>"),
        ("<a>x<b>", "<a>y<b>", "x", "y"),
        ("<a>x<b>", "<a><t>r</t>x<b>", "", "<t>r</t>"),
        ("<a>", "<a><t>", "", "<t>"),
        ("<a>\n", "<a>\n<t>\n", "", "<t>\n"),
        ("<a><t>", "<a>", "<t>", ""),
        ("<a>x", "x<b>", "<a>x", "x<b>"),
        ("<a><b><c>", "<a><c>", "<b>", ""),
        ("<a><c>", "<a><b><c>", "", "<b>"),
        ("<a>", "x<a>", "", "x"),
        ("x<a>", "<a>", "x", ""),
        ("<a><a>", "<a>", "<a>", ""),
        ("aa", "aaa", "", "a"),
    ],
)
def test_difference(left: str, right: str, only_left: str, only_right: str) -> None:
    assert difference(left, right) == (only_left, only_right)


def templated(
    answer: Callable[[Json], str] = lambda m: str(m["content"]),
    prompt: Callable[[bool], str] = lambda thinking: "",
    head: Callable[[bool], str] = lambda thinking: "",
    fails: Callable[[list[Json]], bool] = lambda messages: False,
) -> reasoning.Render:
    """Returns the render function of a template whose parts are written in Python."""

    def render(
        messages: list[Json], tools: list[Json] | None, generation: bool, thinking: bool
    ) -> str | None:
        if fails(messages):
            return None
        text = head(thinking) + "".join(f"<|{m['role']}|>{answer(m)}<end>\n" for m in messages)
        return text + (f"<|assistant|>\n{prompt(thinking)}" if generation else "")

    return render


def reasoned(before: str, after: str) -> Callable[[Json], str]:
    def answer(message: Json) -> str:
        thought = message.get("reasoning_content")
        shown = f"{before}{thought}{after}" if thought else ""
        return f"{shown}{message['content']}"

    return answer


def with_calls(answer: Callable[[Json], str]) -> Callable[[Json], str]:
    """Returns a function like `answer` that writes reasoning only in messages with tool calls."""
    return lambda m: f"{answer(m)}[call]" if m.get("tool_calls") else str(m["content"])


def head_with_thinking(thinking: bool) -> str:
    """Returns a prompt that mentions `thinking` in the system message, and ends with a long text
    that is always the same."""
    return f"thinking {'on' if thinking else 'off'}\n" + "<|user|>x" * 20


BOTH = Tags("[A]", "[/A]", True)


@pytest.mark.parametrize(
    ("render", "tags"),
    [
        (templated(), Tags()),
        (templated(reasoned("<t>\n", "\n</t>\n\n")), Tags("<t>\n", "\n</t>\n\n", True)),
        (templated(reasoned("[T] ", " [/T] ")), Tags("[T] ", " [/T] ", True)),
        # the text before the reasoning is also a marker
        (templated(reasoned("", "</t>")), Tags("<|assistant|>", "</t>", True)),
        (templated(reasoned("Thought: ", "</t> ")), Tags("", "</t> ", True)),
        (templated(reasoned("Thought: ", " Answer: ")), Tags()),
        (templated(prompt=lambda on: "<t>" if on else ""), Tags("<t>", "", True)),
        # white space at the end hides the tag
        (templated(prompt=lambda on: "<t>\n" if on else ""), Tags()),
        (templated(prompt=lambda on: "" if on else "</t>"), Tags("<|assistant|>", "</t>", True)),
        (
            templated(prompt=lambda on: "<t>" if on else "<t>\n</t>"),
            Tags("<t>", "\n</t>", True),
        ),
        (templated(prompt=lambda on: "A" if on else "B"), Tags()),
        (templated(head=head_with_thinking, prompt=lambda on: "" if on else "[A] [/A]\n"), BOTH),
        (templated(head=head_with_thinking, prompt=lambda on: "[A][/A]" if on else ""), BOTH),
        (templated(head=head_with_thinking, prompt=lambda on: "" if on else "[A]x"), Tags()),
        (templated(head=head_with_thinking, prompt=lambda on: "" if on else "\n"), Tags()),
        (templated(head=lambda on: "A" if on else "B"), Tags()),
        (
            templated(
                reasoned("<t>", "</t>"), lambda on: "[A][/A]" if on else "", head_with_thinking
            ),
            Tags("<t>", "</t>", True),
        ),
        # one rendering fails
        (templated(reasoned("<t>", "</t>"), fails=lambda ms: len(ms) > 1), Tags()),
        (
            templated(reasoned("<t>", "</t>"), fails=lambda ms: len(ms) == 1),
            Tags("<t>", "</t>", True),
        ),
    ],
)
def test_tags_are_found(render: reasoning.Render, tags: Tags) -> None:
    assert reasoning.find(render, "", tool_calls=False) == tags


@pytest.mark.parametrize(
    ("answer", "tags"),
    [
        (with_calls(reasoned("<t>", "</t>")), Tags("<t>", "</t>", True)),
        (with_calls(reasoned("Thought: ", "</t>")), Tags("", "</t>", True)),
        (with_calls(reasoned("Thought: ", " so ")), Tags("", "", True)),
        (with_calls(lambda m: "no thought"), Tags()),
    ],
)
def test_reasoning_only_with_calls(answer: Callable[[Json], str], tags: Tags) -> None:
    assert reasoning.find(templated(answer), "", tool_calls=True) == tags
    assert reasoning.find(templated(answer), "", tool_calls=False) == Tags()


@pytest.mark.parametrize("calls", [False, True])
def test_failing_renderings_with_calls(calls: bool) -> None:
    """Some templates fail if there are tool calls, others if there are none."""
    render = templated(
        with_calls(reasoned("<t>", "</t>")),
        fails=lambda messages: bool(messages[-1].get("tool_calls")) == calls,
    )
    assert reasoning.find(render, "", tool_calls=True) == Tags()


@pytest.mark.parametrize(
    ("call", "fault"),
    [
        ('{"name": "FFF_FIRST_FUN_F"}', ""),
        ('f: {"name":"FFF_FIRST_FUN_F"};', ""),
        ('{"name": "FFF_FIRST_FUN_F"<t>, </t>"a": 1}', ""),
        ("{'name': 'FFF_FIRST_FUN_F', }", ""),
        ('{"name": "FFF_FIRST_FUN_F", }', "the call: not valid JSON: Expecting property name"),
        ('{"name": "FFF_FIRST_FUN_F"', "the call: not valid JSON: Expecting value"),
        (': "FFF_FIRST_FUN_F"}', "the call: not valid JSON: Expecting value"),
    ],
)
def test_calls_are_read_as_json(call: str, fault: str) -> None:
    """If a call looks like JSON around the function's name, it is parsed as JSON, after the tags
    around reasoning are removed."""
    answer = reasoned("<t>", "</t>")
    render = templated(lambda message: call if message.get("tool_calls") else answer(message))
    found = reasoning.find(render, "", tool_calls=True).unreadable
    assert found.startswith(fault) and bool(found) == bool(fault)


@pytest.mark.parametrize(
    ("source", "answer", "tags"),
    [
        ("content.split('</think>')", None, Tags("<think>", "</think>", True)),
        ("content.split('</think>') reasoning_content", None, Tags()),
        ("content.split('</think>') <SPECIAL_12>", None, Tags()),
        ("content.split('</think>')", reasoned("<t>", "</t>"), Tags("<t>", "</t>", True)),
        (
            "Write your thoughts between <think></think> and write your response between "
            "<response></response>",
            reasoned("<t>", "</t>"),
            Tags("<think>", "</think>", True),
        ),
        (
            "<SPECIAL_10><SPECIAL_11><SPECIAL_12><TOOL_RESPONSE>",
            None,
            Tags("<think>\n", "</think>", True),
        ),
        ("laguna_glm_thinking", reasoned("<t>\n", "\n</t>\n"), Tags("<t>", "</t>", True)),
    ],
)
def test_tags_by_texts_of_the_source(
    source: str, answer: Callable[[Json], str] | None, tags: Tags
) -> None:
    render = templated(answer) if answer else templated()
    assert reasoning.find(render, source, tool_calls=False) == tags


THOUGHT = str(reasoning._THOUGHT)


@pytest.mark.parametrize(
    ("text", "with_space", "found"),
    [
        ("", True, None),
        (THOUGHT, True, None),
        (f"<a>{THOUGHT}<b>", True, ("<a>", "<b>")),
        (f"<a> {THOUGHT} <b> c", True, ("<a> ", " <b> ")),
        (f"<a> {THOUGHT} <b> c", False, ("<a> ", "<b> ")),
        (f"<a>x{THOUGHT}<b>", True, None),
        (f"a>{THOUGHT}<b>", True, None),
        (f"<a>{THOUGHT}<b", True, None),
        (f"<a>{THOUGHT}", True, None),
        (f"<a><b <c>{THOUGHT}[d]", True, ("<b <c>", "[d]")),
        (f"{THOUGHT}<a>{THOUGHT}<b>", True, ("<a>", "<b>")),
        # the outermost marker, which begins first
        (f"[ <a>{THOUGHT}<b> ]{THOUGHT}<c>", True, (f"[ <a>{THOUGHT}<b> ]", "<c>")),
        (f"<a>{THOUGHT}<b>{THOUGHT}<c>", True, ("<a>", "<b>")),
    ],
)
def test_tags_around_a_thought(text: str, with_space: bool, found: tuple[str, str] | None) -> None:
    assert reasoning._wrapped(text, with_space) == found


@pytest.mark.parametrize(
    "unit", ["<", "[", "<a>[", f"<a>{THOUGHT}[", f"<a> {THOUGHT} ", f"[<{THOUGHT}>", "<>" + " " * 9]
)
def test_hostile_texts_take_linear_time(unit: str) -> None:
    """In quadratic time, each would take minutes."""
    text = unit * (1_000_000 // len(unit))
    reasoning._wrapped(text, True)
    segments(text)
    difference(text, text + "x")
    reasoning._ENDED.search(text)
