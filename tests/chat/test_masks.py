"""Masks of the assistant's text, for templates that don't mark it."""

from __future__ import annotations

from typing import Any

import pytest

from ggtok import Tokenizer, load
from tests.chat.made import TEMPLATES
from tests.chat.requests import says, user
from tests.support.vocabularies import fixture

LIKES = ("llama.cpp", "transformers")
CALL = {"id": "1", "type": "function", "function": {"name": "f", "arguments": {"a": "b"}}}
TALK: list[dict[str, Any]] = [
    says("system", "Be brief."),
    user("Hi"),
    says("assistant", "", tool_calls=[CALL]),
    says("tool", "42", tool_call_id="1"),
    says("assistant", "It is 42.", reasoning_content="so"),
    user("Bye"),
    says("assistant", "Bye!"),
]
# As Qwen's: turns of control tokens, calls and reasoning in tags.
QWEN = """\
{%- for m in messages -%}
<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}
{% if m.role == 'tool' %}<tool_response>{{ m.content }}</tool_response>
{%- else -%}
{% if m.reasoning_content %}<think>{{ m.reasoning_content }}</think>{% endif %}{{ m.content -}}
{% for c in m.tool_calls or [] %}<tool_call>{"name": "{{ c.function.name }}"}</tool_call>
{%- endfor %}
{%- endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
<think>
{% endif %}"""


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


def marked(tok: Tokenizer, messages: Any, template: str, like: Any, **options: Any) -> str:
    """Returns the prompt with the assistant's tokens in brackets."""
    options = {"add_generation_prompt": False, **options}
    if like == "llama.cpp":
        options.setdefault("continue_final_message", False)
    ids, mask = tok.encode_chat(
        messages, template=template, like=like, return_assistant_mask=True, **options
    )
    assert ids == tok.encode_chat(messages, template=template, like=like, **options)
    assert {type(each) for each in mask} == {bool}
    text, on = b"", False
    for id, is_answer in zip(ids, mask, strict=True):
        if is_answer != on:
            text += b"\xc2\xab" if is_answer else b"\xc2\xbb"
        on = is_answer
        text += tok.token_to_piece(id)
    return text.decode() + "\u00bb" * on


@pytest.mark.parametrize("like", LIKES)
def test_the_text_that_the_model_generates(tok: Tokenizer, like: str) -> None:
    """From the end of the generation prompt to the token that ends generation, with the tags of
    calls and reasoning, although the generation prompt begins the reasoning."""
    assert marked(tok, TALK, QWEN, like) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n"
        '<|im_start|>assistant\n\u00ab<tool_call>{"name": "f"}</tool_call><|im_end|>\u00bb\n'
        "<|im_start|>user\n<tool_response>42</tool_response><|im_end|>\n"
        "<|im_start|>assistant\n\u00ab<think>so</think>It is 42.<|im_end|>\u00bb\n"
        "<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n\u00abBye!<|im_end|>\u00bb\n"
    )


@pytest.mark.parametrize("like", LIKES)
def test_without_a_generation_prompt(tok: Tokenizer, like: str) -> None:
    """The answer begins after the text that follows a question."""
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}[INST] {{ m.content }} [/INST]"
        "{% else %} {{ m.content }}<|im_end|>{% endif %}{% endfor %}"
    )
    talk = [user("Hi"), says("assistant", "One"), user("Bye"), says("assistant", "Two")]
    assert marked(tok, talk, template, like) == (
        "[INST] Hi [/INST]\u00ab One<|im_end|>\u00bb[INST] Bye [/INST]\u00ab Two<|im_end|>\u00bb"
    )


def test_the_first_of_several_control_tokens_closes_an_answer(tok: Tokenizer) -> None:
    """<|im_start|> ends no generation, so it doesn't close an answer if it is alone."""
    talk = [user("Hi"), says("assistant", "One"), user("Bye")]
    alone = "{% for m in messages %}<|im_start|>{{ m.content }}{% endfor %}"
    two = alone.replace("}}{% endfor", "}}<|im_start|>{% endfor")
    start = "<|im_start|>"
    assert marked(tok, talk, alone, "llama.cpp") == (f"{start}Hi{start}\u00abOne\u00bb{start}Bye")
    assert marked(tok, talk, two, "llama.cpp") == (
        f"{start}Hi{start}{start}\u00abOne{start}\u00bb{start}Bye{start}"
    )


def test_repeated_text_of_a_call_counts_once(tok: Tokenizer) -> None:
    """A template may write a call's name again beside its result."""
    template = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'tool' %}"
        "{{ messages[2].tool_calls[0].function.name }}: {% endif %}{{ m.content }}"
        "{% for c in m.tool_calls or [] %}({{ c.function.name }}){% endfor %}<|im_end|>{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    found = marked(tok, TALK[:4], template, "transformers")
    end = "assistant\n\u00ab(f)<|im_end|>\u00bb<|im_start|>tool\nf: 42<|im_end|>"
    assert found.endswith(end)


CALL_THEN_ANSWER = """\
{% for m in messages %}<|im_start|>{{ m.role }}
{% for c in m.tool_calls or [] %}<call>{{ c.function.name }}</call>{% endfor -%}
{%- if m.tool_calls %}<|im_end|>
response:{{ m.tool_calls[0].function.name }}{}<|im_start|>
{% endif %}{{ m.content }}<|im_end|>{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""


@pytest.mark.parametrize("like", LIKES)
def test_an_answer_after_a_token_that_ends_generation(tok: Tokenizer, like: str) -> None:
    """As Gemma 4's template: the token that asks for the results ends generation, the name of the
    call is repeated, and the answer of the same message follows."""
    talk = [user("Hi"), says("assistant", "It is 42.", tool_calls=[CALL])]
    assert marked(tok, talk, CALL_THEN_ANSWER, like) == (
        "<|im_start|>user\nHi<|im_end|><|im_start|>assistant\n"
        "\u00ab<call>f</call><|im_end|>\u00bb\nresponse:f{}<|im_start|>\n"
        "\u00abIt is 42.<|im_end|>\u00bb"
    )
    beside = CALL_THEN_ANSWER.replace("{}<|im_start|>", " ")
    assert marked(tok, talk, beside, like).endswith("response:f \n\u00abIt is 42.<|im_end|>\u00bb")


@pytest.mark.parametrize("like", LIKES)
def test_each_call_in_a_turn(tok: Tokenizer, like: str) -> None:
    """Calls of one function are no repetitions if something else in them differs."""
    other = CALL | {"id": "2"}
    talk = [user("Hi"), says("assistant", "", tool_calls=[CALL, other]), says("tool", "42")]
    template = (
        "{% for m in messages %}{% if m.tool_calls %}{% for c in m.tool_calls %}"
        "<|im_start|>assistant\n<call>{{ c.function.name }} {{ c.id }}<|im_end|>"
        "{% endfor %}{% elif m.role == 'tool' %}<|im_start|>tool\n"
        "{{ messages[1].tool_calls[0].function.name }}: {{ m.content }}<|im_end|>"
        "{% else %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    start = "<|im_start|>assistant\n"
    assert marked(tok, talk, template, like) == (
        f"<|im_start|>user\nHi<|im_end|>{start}\u00ab<call>f 1<|im_end|>\u00bb"
        f"{start}\u00ab<call>f 2<|im_end|>\u00bb<|im_start|>tool\nf: 42<|im_end|>"
    )


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize("in_parts", [False, True])
def test_an_answer_in_several_turns(tok: Tokenizer, like: str, in_parts: bool) -> None:
    """A template may end each part of a message with a token that ends generation."""
    if in_parts:
        talk = [user("Hi"), says("assistant", "so#42")]
        parts = "[m.content.split('#')[0], m.content.split('#')[-1]]"
    else:
        talk = [user("Hi"), says("assistant", "42", reasoning_content="so")]
        parts = "[m.reasoning_content, m.content]"
    template = (
        "{% for m in messages %}{% if m.role == 'user' %}"
        "<|im_start|>user\n{{ m.content }}<|im_end|>"
        f"{{% else %}}{{% for part in {parts} %}}<|im_start|>assistant\n{{{{ part }}}}<|im_end|>"
        "{% endfor %}{% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    assert marked(tok, talk, template, like) == (
        "<|im_start|>user\nHi<|im_end|><|im_start|>assistant\n\u00abso<|im_end|>\u00bb"
        "<|im_start|>assistant\n\u00ab42<|im_end|>\u00bb"
    )


@pytest.mark.parametrize("like", LIKES)
@pytest.mark.parametrize("name", ["plain", "content only", "special tokens", "thinks with words"])
def test_users_text_is_never_masked(tok: Tokenizer, name: str, like: str) -> None:
    """Every answer's text is inside brackets, all other messages' texts outside."""
    found = marked(tok, TALK, TEMPLATES[name], like)
    inside = "".join(part.partition("\u00bb")[0] for part in found.split("\u00ab")[1:])
    outside = "".join(part.rpartition("\u00bb")[2] for part in found.split("\u00ab"))
    assert "It is 42." in inside and "Bye!" in inside
    for text in ("Be brief.", "Hi"):
        assert text in outside and text not in inside


def test_a_template_that_refuses_the_probe(tok: Tokenizer) -> None:
    template = (
        "{% if messages | length < 2 %}{{ raise_exception('short') }}{% endif %}"
        "{% for m in messages %}<|im_start|>{{ m.content }}<|im_end|>{% endfor %}"
    )
    found = marked(tok, [user("Hi"), says("assistant", "One")], template, "transformers")
    assert found == "<|im_start|>Hi<|im_end|><|im_start|>\u00abOne<|im_end|>\u00bb"


def test_conversations_as_json(tok: Tokenizer) -> None:
    data = (
        b'{"messages": [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "x"}]}'
    )
    assert marked(tok, data, QWEN, "llama.cpp").endswith("\u00abx<|im_end|>\u00bb\n")
