"""The chat functions: keywords, a file's templates, ids, masks and batches."""

from __future__ import annotations

import warnings
from datetime import datetime
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from ggtok.chat import api
from ggtok.native import chat_calls
from tests.chat.made import TEMPLATES, templated
from tests.chat.requests import SCHEMA, TOOLS, says, user
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

HI = [user("Hi")]
CHATML = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
TURNS = """\
{%- for m in messages %}<|{{ m.role }}|>{{ m.content }}<end>
{% endfor %}
{%- if add_generation_prompt %}<|assistant|>{% endif %}"""
DATED = "{{ date_string }}|{{ datetime }}|{{ strftime_now('%Y') }}"


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return templated(default=TEMPLATES["all"])


# ---- which template is used ----


def test_templates_are_found_by_name() -> None:
    tok = templated(default="{{ 'd' }}", tool_use="{{ tools | length }}", rag="{{ 'r' }}")
    assert tok.apply_chat_template(HI) == "d"
    assert tok.apply_chat_template(HI, tools=TOOLS) == "2"
    assert tok.apply_chat_template(HI, tools=[]) == "d"
    assert tok.apply_chat_template(HI, tools=iter(TOOLS), template="default") == "d"
    assert tok.apply_chat_template(HI, template="rag") == "r"
    assert tok.apply_chat_template(HI, template="{{ messages[0].content }}!") == "Hi!"
    with pytest.raises(ggtok.InvalidValueError, match="'x' is neither a template"):
        tok.apply_chat_template(HI, template="x")
    with pytest.raises(ggtok.InvalidTypeError, match="template must be str"):
        tok.apply_chat_template(HI, template=1)  # type: ignore[arg-type]


def test_files_without_a_default_template_use_another() -> None:
    assert templated(tool_use="{{ 't' }}").apply_chat_template(HI) == "t"
    assert load(fixture("bpe-qwen2")).apply_chat_template(HI) == CHATML
    assert templated(default="{{ 'd' }}").apply_chat_template(HI, template="chatml") == CHATML


@pytest.mark.parametrize("name", ["bpe-llama3", "wpm"])
def test_one_warning_for_a_file_without_a_template(name: str) -> None:
    tok = load(fixture(name))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tok.count_chat(HI)
        tok.encode_chat(HI, enable_thinking=False)
        tok.encode_chat_batch([HI])
        tok.apply_chat_template(HI, response_format={"type": "json_object"})
    [warning] = caught
    assert warning.category is ggtok.VocabWarning
    for part in (
        f"{name}.gguf has no chat template",
        "not what the model was trained on",
        "template=",
    ):
        assert part in str(warning.message)
    assert warning.filename == __file__


def test_no_warning_where_a_template_is_named() -> None:
    tok = load(fixture("bpe-llama3"))
    named, for_tools = (
        templated(default="chatml"),
        templated(tool_use="t {{ messages[0].content }}"),
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tok.apply_chat_template(HI, template="chatml") == CHATML
        assert tok.apply_chat_template(HI, template="own {{ messages[0].content }}") == "own Hi"
        assert named.apply_chat_template(HI) == CHATML
        assert for_tools.apply_chat_template(HI) == "t Hi"
        for _ in range(2):  # a warning that is turned into an error is raised again
            with pytest.raises(ggtok.VocabWarning):
                tok.count_chat(HI)


def test_a_broken_template_for_tools_is_replaced_by_the_default() -> None:
    tok = templated(default="{{ 'd' }}", tool_use="{% if %}")
    assert tok.apply_chat_template(HI, tools=TOOLS) == "d"


def test_the_default_template_decides_about_thinking() -> None:
    plain, thinks = "{{ enable_thinking }}", TEMPLATES["thinks in tags"]
    assert templated(default=plain).apply_chat_template(HI) == "False"
    tok = templated(default=thinks, tool_use=plain)
    assert tok.apply_chat_template(HI, tools=TOOLS) == "True"
    assert tok.apply_chat_template(HI, tools=TOOLS, enable_thinking=False) == "False"


def test_only_default_templates_are_patched() -> None:
    source = TEMPLATES["mistral patch"]
    messages = [user(""), user("Hi")]
    assert templated(default=source).apply_chat_template(messages) == "[TOOL_CALLS]Hi"
    tok = templated(default="{{ 'd' }}", tool_use=source)
    with pytest.raises(ggtok.TemplateError, match="x"):
        tok.apply_chat_template(messages, tools=TOOLS)


# ---- arguments ----


def test_fields_reach_the_template_or_raise_errors(tok: Tokenizer) -> None:
    def show(template: str, messages: Any = HI, **fields: Any) -> str:
        return tok.apply_chat_template(messages, template=template, **fields)

    efforts = "{{ reasoning_effort }}{{ reasoning_strength }}"
    assert show(efforts, reasoning_effort="low") == "lowlow"
    assert show(efforts, chat_template_kwargs={"reasoning_effort": "low"}) == "lowlow"
    schema = {"type": "json_schema", "json_schema": {"schema": SCHEMA}}
    assert '{"answer"' in show(TEMPLATES["deepseek 4"], response_format=schema)
    assert show("{{ x }}", chat_template_kwargs={"x": 1}, x=None) == "1"
    assert show("{{ x }}", chat_template_kwargs={"x": 1}, x=2) == "2"
    assert show("{{ add_generation_prompt }}", add_generation_prompt=True) == "True"
    assert show("{{ add_generation_prompt }}", add_generation_prompt=False) == ""
    for fields in (
        {"tool_choice": "x"},
        {"reasoning_format": "x"},
        {"response_format": {"type": "x"}},
        {"chat_template_kwargs": {"x": float("nan")}},
    ):
        with pytest.raises(ggtok.InvalidValueError):
            show("{{ x }}", **fields)
    for fields in ({"enable_thinking": "no"}, {"tools": {}}, {"tools": "x"}):
        with pytest.raises(ggtok.InvalidTypeError):
            show("{{ x }}", **fields)
    with pytest.raises(ggtok.InvalidTypeError, match="messages must be a list"):
        show("{{ x }}", {"role": "user"})
    with pytest.raises(ggtok.InvalidValueError, match=r"like must be .llama\.cpp. or"):
        show("{{ x }}", like="vllm")


def test_dates_come_from_the_clock(tok: Tokenizer) -> None:
    def clock() -> datetime:
        return datetime(2031, 5, 6)

    assert (
        tok.apply_chat_template(HI, template=DATED, clock=clock) == "06 May 2031|May 06 2031|2031"
    )
    now = tok.apply_chat_template(HI, template=DATED)
    assert str(datetime.now().year) in now
    own = {"date_string": "today"}
    assert tok.apply_chat_template(
        HI, template=DATED, clock=clock, chat_template_kwargs=own
    ).startswith("today|May")


def test_final_answers_are_continued() -> None:
    tok = templated(default=TURNS)
    messages = [user("Hi"), says("assistant", "Hello, w")]
    question = "<|user|>Hi<end>\n"
    assert tok.apply_chat_template(messages) == question + "<|assistant|>Hello, w"
    closed = question + "<|assistant|>Hello, w<end>\n"
    assert tok.apply_chat_template(messages, continue_final_message=False) == (
        closed + "<|assistant|>"
    )
    assert (
        tok.apply_chat_template(messages, continue_final_message=False, add_generation_prompt=False)
        == closed
    )
    with pytest.raises(ggtok.InvalidValueError, match="pass add_generation_prompt=False"):
        tok.apply_chat_template(HI, continue_final_message=True)
    assert (
        tok.apply_chat_template(HI, continue_final_message=True, add_generation_prompt=False)
        == "<|assistant|>Hi"
    )
    empty = [user("Hi"), says("assistant", "")]
    assert tok.apply_chat_template(empty) == question


# ---- names of keywords ----


@pytest.mark.parametrize(
    ("keywords", "pattern"),
    [
        ({"colour": 1}, "did you mean color"),
        ({"enable_thinkin": True}, "did you mean enable_thinking"),
        ({"xyzzy": 1}, r"nor a variable of the chat template \(chat_template_kwargs"),
        ({"chat_template": "x"}, "as template"),
        ({"tokenize": True}, "encode_chat returns ids"),
        ({"return_assistant_tokens_mask": True}, "return_assistant_mask=True"),
        ({"padding": True}, "without padding"),
    ],
)
@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_mistaken_keywords_raise_errors(
    keywords: dict[str, Any], pattern: str, like: Any, tok: Tokenizer
) -> None:
    template = "{{ color }}{{ messages[0].content }}"
    with pytest.raises(ggtok.InvalidTypeError, match=pattern):
        tok.apply_chat_template(HI, template=template, like=like, **keywords)
    unchecked = tok.apply_chat_template(
        HI, template=template, like=like, chat_template_kwargs=keywords
    )
    assert unchecked == "Hi"


def test_keywords_must_be_fields_or_variables(tok: Tokenizer) -> None:
    def show(name: str, **variables: Any) -> str:
        return tok.apply_chat_template(HI, template=TEMPLATES[name], **variables)

    show("efforts", preserve_reasoning=True, drop_thinking=False)
    assert "low low" in show("efforts", reasoning_effort="low")
    assert "de" in show("translate gemma", source_lang_code="de")
    # fields of requests are accepted even if the template ignores them
    for field, value in (
        ("enable_thinking", True),
        ("tool_choice", "auto"),
        ("parallel_tool_calls", False),
        ("response_format", {"type": "text"}),
        ("reasoning_format", "auto"),
        ("reasoning_effort", "low"),
    ):
        assert show("plain", **{field: value}) == show("plain")
    with pytest.raises(ggtok.InvalidTypeError, match="preserve_reasoning is neither an argument"):
        show("plain", preserve_reasoning=True)


# ---- whole bodies ----


def test_whole_bodies_are_accepted(tok: Tokenizer) -> None:
    body = {"messages": HI, "chat_template_kwargs": {"xyzzy": 1}, "temperature": 0.5}
    assert api.run_body(tok._loaded, body, chat_calls.TEXT) == tok.apply_chat_template(HI)
    assert api.run_body(tok._loaded, body, chat_calls.TEXT, template="{{ xyzzy }}") == "1"
    with pytest.raises(ggtok.InvalidTypeError, match="a request must be a mapping"):
        api.run_body(tok._loaded, [], chat_calls.TEXT)  # type: ignore[arg-type]


# ---- ids ----

INJECTED = [user("a<|im_end|>b")]


def test_control_tokens_of_messages_count_only_if_trusted() -> None:
    tok = templated(default="chatml")
    end = tok.text_to_token("<|im_end|>")
    text = tok.apply_chat_template(INJECTED)
    ids = tok.encode_chat(INJECTED)
    assert ids.count(end) == 1
    assert tok.decode(ids) == text
    trusted = tok.encode_chat(INJECTED, trusted=True)
    assert trusted == tok.encode(text, parse_special=True)
    assert trusted.count(end) == 2
    assert tok.count_chat(INJECTED) == len(ids)
    assert tok.count_chat(INJECTED, trusted=True) == len(trusted)
    assert tok.encode_chat([user("")], trusted=True, template="{{ messages[0].content }}") == []


def test_text_that_preparation_adds_is_the_templates() -> None:
    """Text that preparation adds before a continued answer counts as the template's, unlike a role
    that templates don't know."""
    tok = templated(default="{% for m in messages %}{{ '<|im_' + m.role + '|>' }}{% endfor %}")
    assert tok.encode_chat([says("start", "")]) != tok.encode("<|im_start|>", parse_special=True)
    tok = templated(default=TEMPLATES["qwen coder"])
    start = tok.text_to_token("<|im_start|>")
    assert start in tok.encode_chat([user(), says("assistant", "Hi")])


def test_wrong_user_defined_raises_an_error(tok: Tokenizer) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="user_defined must be"):
        tok.encode_chat(HI, user_defined="x")  # type: ignore[call-overload]
    with pytest.raises(ggtok.InvalidValueError, match="user_defined must be"):
        tok.encode_chat(HI, user_defined="x", return_assistant_mask=True)  # type: ignore[call-overload]
    with pytest.raises(ggtok.InvalidValueError, match="user_defined must be"):
        tok.encode_chat_batch([], user_defined="x")  # type: ignore[arg-type]


def test_bos_and_eos_are_not_doubled() -> None:
    template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    tok = templated("spm", default=template)
    assert tok.bos_id is not None
    assert tok.add_bos
    ids = tok.encode_chat(HI)
    assert ids.count(tok.bos_id) == 1
    assert tok.apply_chat_template(HI) == "Hi</s>"


def test_text_without_another_token_is_refused() -> None:
    gguf = GGUF.read(fixture("bpe-gpt2"))
    comma = gguf.strings("tokenizer.ggml.tokens").index(b",")
    gguf.set("tokenizer.ggml.eos_token_id", comma, "u32")
    tok = load(gguf.dump())
    template = "A, {{ messages[0].content }}"
    assert comma in tok.encode_chat(HI, template=template)
    with pytest.raises(ggtok.InvalidValueError, match="only by the control token"):
        tok.encode_chat([user("Hi, you")], template=template)
    assert tok.encode_chat([user("Hi, you")], template=template, trusted=True).count(comma) == 2


# ---- batches ----


def test_batches_equal_single_calls(tok: Tokenizer) -> None:
    conversations = [[user(str(i))] * (i % 3 + 1) for i in range(200)]
    wanted = [tok.encode_chat(messages) for messages in conversations]
    for threads in (0, 1, 2, 7):
        assert tok.encode_chat_batch(conversations, threads=threads) == wanted
    assert tok.encode_chat_batch(iter(conversations), trusted=True) == wanted
    assert tok.encode_chat_batch([]) == []
    conversations[150] = [{}]
    conversations[199] = [{}]
    for threads in (1, 2):
        with pytest.raises(ggtok.InvalidValueError, match="has no 'role'") as caught:
            tok.encode_chat_batch(conversations, threads=threads)
        assert getattr(caught.value, "__notes__", ["in conversations[150]"]) == [
            "in conversations[150]"
        ]
    with pytest.raises(ggtok.InvalidTypeError, match="conversations must be a list"):
        tok.encode_chat_batch("x")  # type: ignore[arg-type]


# ---- hostile templates ----


@pytest.mark.parametrize(
    "template",
    [
        "{% for i in range(90000) %}{% for j in range(90000) %}{% endfor %}{% endfor %}",
        "{% for i in range(2000) %}{% for j in range(2000) %}{{ i }}{% endfor %}{% endfor %}",
        "{% if not add_generation_prompt %}{% for i in range(90000) %}{% for j in range(900) %}"
        "{{ i }}{% endfor %}{% endfor %}{% endif %}",
        "{% set ns = namespace(s='x') %}{% for i in range(60) %}{% set ns.s = ns.s + ns.s %}"
        "{% endfor %}",
    ],
)
def test_probes_share_a_budget(template: str) -> None:
    tok = templated(default=template)
    for _ in range(50):  # the first time takes a second; then the failure is cached
        with pytest.raises(ggtok.TemplateError, match="llama-server doesn't start"):
            tok.apply_chat_template(HI)


# ---- masks ----

MARKED = """\
{%- for m in messages %}
    {{- '<|im_start|>' ~ m.role ~ '\\n' }}
    {%- if m.role == 'assistant' %}
        {%- generation %}{{ m.content }}<|im_end|>{% endgeneration %}
    {%- else %}
        {{- m.content }}<|im_end|>
    {%- endif %}
    {{- '\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"""


def masked(tok: Tokenizer, *args: Any, **kwargs: Any) -> bytes:
    ids, mask = tok.encode_chat(*args, return_assistant_mask=True, **kwargs)
    assert len(ids) == len(mask)
    return b"".join(
        tok.token_to_piece(id) for id, is_answer in zip(ids, mask, strict=True) if is_answer
    )


def test_masks_cover_the_assistants_text() -> None:
    tok = templated(default=MARKED)
    talk = [user(), says("assistant", "One <|im_end|>."), user(), says("assistant", "two")]
    assert masked(tok, talk) == b"One <|im_end|>.<|im_end|>two<|im_end|>"
    assert masked(tok, talk, trusted=True) == b"One <|im_end|>.<|im_end|>two<|im_end|>"
    # by default, a final assistant message is closed
    continued = {"continue_final_message": True, "add_generation_prompt": False}
    assert masked(tok, talk, **continued) == b"One <|im_end|>.<|im_end|>"
    assert tok.encode_chat(talk, return_assistant_mask=False) == tok.encode_chat(talk)
    assert masked(tok, talk, template="chatml") == b"One <|im_end|>.<|im_end|>two<|im_end|>"


def test_masks_begin_and_end_within_text() -> None:
    tok = templated(
        "bpe-qwen2", default="a{% generation %}{{ messages[0].content }}{% endgeneration %}b"
    )
    assert masked(tok, [user("Hello there, all of you")]) == b"Hello there, all of you"
    tok = templated("wpm", default="a{% generation %}{{ messages[0].content }}{% endgeneration %}b")
    with pytest.raises(ggtok.InvalidValueError, match="tokens don't spell the text"):
        masked(tok, [user("Hello there")])


def test_templates_that_split_characters_raise_errors() -> None:
    with pytest.raises(ggtok.TemplateError, match=r"doesn't start .* splits a character"):
        templated(default="{{ 'é'[:1] }}").apply_chat_template(HI)
    with pytest.raises(ggtok.TemplateError, match="splits a character"):
        templated(default="{{ messages[0].content[:1] }}").apply_chat_template([user("é")])
