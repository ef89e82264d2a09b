"""The tags around reasoning are found by comparing renderings of the template."""

from __future__ import annotations

import pytest

from ggtok import TemplateError, Tokenizer, load
from ggtok.chat.compiled import chat_of
from tests.chat.requests import says, user
from tests.support.vocabularies import fixture

CONTENT = "{{ m.content }}"
CALLS = "{% if m.tool_calls %}[call]{% endif %}"
NONE = ("", "")


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


def templated(answer: str = CONTENT, prompt: str = "", head: str = "", fails: str = "") -> str:
    """Returns a template that writes each message as `answer`, and fails if `fails` is true."""
    failing = f"{{% if {fails} %}}{{{{ raise_exception('no') }}}}{{% endif %}}" if fails else ""
    return (
        f"{failing}{head}{{% for m in messages %}}<|{{{{ m.role }}}}|>{answer}<end>{{{{ '\\n' }}}}"
        "{% endfor %}{% if add_generation_prompt %}<|assistant|>{{ '\\n' }}"
        f"{prompt}{{% endif %}}"
    )


def shown(text: str) -> str:
    """Returns template source that writes a text with white space at its ends."""
    return f"{{{{ {text!r} }}}}"


def reasoned(before: str, after: str) -> str:
    thought = f"{shown(before)}{{{{ m.reasoning_content }}}}{shown(after)}"
    return f"{{% if m.reasoning_content %}}{thought}{{% endif %}}{CONTENT}"


def with_calls(answer: str) -> str:
    """Returns an answer that has reasoning only in messages with tool calls."""
    return f"{{% if m.tool_calls %}}{answer}[call]{{% else %}}{CONTENT}{{% endif %}}"


def by_thinking(on: str, off: str) -> str:
    return f"{{% if enable_thinking %}}{shown(on)}{{% else %}}{shown(off)}{{% endif %}}"


def tags(tok: Tokenizer, template: str) -> tuple[str, str]:
    found = chat_of(tok._loaded, "llama.cpp", template, None).facts_for(has_tools=False)
    return found.reasoning_tags


# The prompt mentions `thinking` in the system message, and ends with a long text that is always the
# same.
HEAD = "thinking " + by_thinking("on", "off") + "{{ '\\n' }}" + "<|user|>x" * 20
# When the renderings of two messages fail, and one of those that compare generation prompts.
LONG, SHORT = "messages | length == 2", "messages | length == 1 and enable_thinking == false"


@pytest.mark.parametrize(
    ("template", "found"),
    [
        (templated(), NONE),
        (templated(reasoned("<t>\n", "\n</t>\n\n")), ("<t>\n", "\n</t>\n\n")),
        (templated(reasoned("[T] ", " [/T] ")), ("[T] ", " [/T] ")),
        # the text before the reasoning is also a marker
        (templated(reasoned("", "</t>")), ("<|assistant|>", "</t>")),
        (templated(reasoned("Thought: ", "</t> ")), ("", "</t> ")),
        (templated(reasoned("Thought: ", " Answer: ")), NONE),
        (templated(reasoned("<a> ", "</b> c")), ("<a> ", "</b> ")),
        (templated(reasoned("<a>x", "<b>")), ("", "<b>")),
        (templated(reasoned("a>", "<b>")), ("", "<b>")),
        (templated(reasoned("<a><b <c>", "[d]")), ("<b <c>", "[d]")),
        (templated(prompt=by_thinking("<t>", "")), ("<t>", "")),
        # white space at the end hides the tag
        (templated(prompt=by_thinking("<t>\n", "")), NONE),
        (templated(prompt=by_thinking("", "</t>")), ("<|assistant|>", "</t>")),
        (templated(prompt=by_thinking("<t>", "<t>\n</t>")), ("<t>", "\n</t>")),
        (templated(prompt=by_thinking("A", "B")), NONE),
        (templated(head=HEAD, prompt=by_thinking("", "[A] [/A]\n")), ("[A]", "[/A]")),
        (templated(head=HEAD, prompt=by_thinking("[A][/A]", "")), ("[A]", "[/A]")),
        (templated(head=HEAD, prompt=by_thinking("", "[A]x")), NONE),
        (templated(head=HEAD, prompt=by_thinking("", "\n")), NONE),
        (templated(head=by_thinking("A", "B")), NONE),
        (
            templated(reasoned("<t>", "</t>"), by_thinking("[A][/A]", ""), HEAD),
            ("<t>", "</t>"),
        ),
        # renderings that fail
        (templated(reasoned("<t>", "</t>"), fails=LONG), NONE),
        (templated(reasoned("<t>", "</t>"), fails=SHORT), ("<t>", "</t>")),
        # reasoning only with calls
        (templated(with_calls(reasoned("<t>", "</t>"))), ("<t>", "</t>")),
        (templated(with_calls(reasoned("Thought: ", "</t>"))), ("", "</t>")),
        (templated(with_calls(reasoned("Thought: ", " so "))), NONE),
        (templated(with_calls("no thought")), NONE),
    ],
)
def test_tags_are_found(tok: Tokenizer, template: str, found: tuple[str, str]) -> None:
    assert tags(tok, template) == found


@pytest.mark.parametrize(
    ("call", "starts"),
    [
        ('{"name": "NAME"}', True),
        ('f: {"name":"NAME"};', True),
        ('{"name": "NAME"<t>, </t>"a": 1}', True),
        ("{'name': 'NAME', }", True),
        ('{"name": "NAME", }', False),
        ('{"name": "NAME"', False),
        (': "NAME"}', False),
    ],
)
def test_calls_are_read_as_json(tok: Tokenizer, call: str, starts: bool) -> None:
    """If a call looks like JSON around the function's name, it is parsed as JSON, after the tags
    around reasoning are removed."""
    source = call.replace("NAME", "{{ m.tool_calls[0].function.name }}")
    # No text but the call may contain braces, which the template's own syntax would read.
    source = source.replace("{{", "\0").replace("{", "{{ '{' }}").replace("\0", "{{")
    answer = f"{{% if m.tool_calls %}}{source}{{% else %}}{reasoned('<t>', '</t>')}{{% endif %}}"
    template = templated(answer)
    if starts:
        assert tags(tok, template)
        assert tok.apply_chat_template([user()], template=template)
    else:
        with pytest.raises(TemplateError, match=r"llama-server doesn't start.*JSON"):
            tags(tok, template)


@pytest.mark.parametrize(
    ("source", "answer", "found"),
    [
        ("content.split('</think>')", None, ("<think>", "</think>")),
        ("content.split('</think>') reasoning_content", None, NONE),
        ("content.split('</think>') <SPECIAL_12>", None, NONE),
        ("content.split('</think>')", reasoned("<t>", "</t>"), None),
        (
            "Write your thoughts between <think></think> and write your response between "
            "<response></response>",
            reasoned("<t>", "</t>"),
            ("<think>", "</think>"),
        ),
        (
            "<SPECIAL_10><SPECIAL_11><SPECIAL_12><TOOL_RESPONSE>",
            None,
            ("<think>\n", "</think>"),
        ),
        ("laguna_glm_thinking", reasoned("<t>\n", "\n</t>\n"), ("<t>", "</t>")),
    ],
)
def test_tags_by_texts_of_the_source(
    tok: Tokenizer, source: str, answer: str | None, found: tuple[str, str] | None
) -> None:
    template = f"{{#- {source} -#}}" + templated(answer or CONTENT)
    assert tags(tok, template) == (found or ("<t>", "</t>"))


def test_continued_answers_are_written_with_the_tags(tok: Tokenizer) -> None:
    messages = [user("Hi"), says("assistant", "C", reasoning_content="R")]
    template = templated(reasoned("<t>\n", "\n</t>\n"))
    text = tok.apply_chat_template(messages, template=template)
    assert text == "<|user|>Hi<end>\n<|assistant|>\n<t>\nR\n</t>\nC"


@pytest.mark.parametrize("unit", ["<", "[", "<a>[", "<>" + " " * 9, "]>", "<a "])
def test_hostile_prompts_take_linear_time(tok: Tokenizer, unit: str) -> None:
    """In quadratic time, each would take minutes."""
    text = unit * (1_000_000 // len(unit))
    for answer, prompt in (
        (reasoned(text, text), ""),
        (CONTENT, by_thinking(text, text + "x")),
        (CONTENT, by_thinking("x" + text, text)),
    ):
        assert len(tags(tok, templated(answer, prompt))) == 2
