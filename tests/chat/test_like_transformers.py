"""like="transformers": arguments, messages, continuing and ids (for texts, see
`test_chat_templates.py`)."""

from __future__ import annotations

import itertools
from datetime import datetime
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from tests.chat.made import templated
from tests.chat.requests import TOOLS, says, user
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

HI = [user("Hi")]
TURNS = """\
{%- for message in messages %}
    {{- '<|im_start|>' + message.role + '\\n' + message.content | trim + '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
{%- endif %}"""
WHOLE = "{% for m in messages %}[{{ m.content }}{{ m.thinking }}]{% endfor %}"


def show(tok: Tokenizer, template: str, messages: Any = HI, **arguments: Any) -> str:
    return tok.apply_chat_template(messages, template=template, like="transformers", **arguments)


@pytest.fixture(scope="module")
def kimi() -> Tokenizer:
    return load(fixture("bpe-kimi"))


def test_templates_are_chosen_as_in_transformers() -> None:
    tok = templated(default="d", tool_use="{{ tools | tojson }}")
    like: Any = {"like": "transformers"}
    assert tok.apply_chat_template(HI, **like) == "d"
    assert tok.apply_chat_template(HI, tools=iter([{"a": "<é>"}]), **like) == '[{"a": "<é>"}]'
    assert tok.apply_chat_template(HI, tools=[], **like) == "[]"
    assert tok.apply_chat_template(HI, tools=[], template="default", **like) == "d"
    with pytest.raises(ggtok.InvalidValueError, match=r"no default chat template \(it has: none\)"):
        load(fixture("bpe-qwen2")).apply_chat_template(HI, **like)
    tok = templated(rag="r")
    with pytest.raises(ggtok.InvalidValueError, match=r"\(it has: 'rag'\)"):
        tok.apply_chat_template(HI, **like)


def test_variables_are_transformers(kimi: Tokenizer) -> None:
    tokens = "{{ bos_token }}{{ eos_token }}{{ unk_token is defined }}"
    assert show(kimi, tokens) == "[BOS][EOS]False"
    assert show(kimi, "{{ bos_token }}", bos_token="<x>") == "<x>"
    assert show(kimi, "{{ tools is none }} {{ documents is none }}") == "True True"
    assert show(kimi, "{{ documents[0].title }}", documents=[{"title": "T"}]) == "T"
    clock = {"clock": lambda: datetime(2031, 5, 6)}
    assert show(kimi, "{{ strftime_now('%d %b %Y') }}", **clock) == "06 May 2031"
    assert show(kimi, "{{ x }}{{ x[1][0] }}", x=(1, ["a", None])) == "(1, ['a', None])a"
    assert show(kimi, "{{ x }}", chat_template_kwargs={"x": 2**62}) == str(2**62)
    assert show(kimi, "{{ enable_thinking }}", enable_thinking=False) == "False"
    assert show(kimi, "{{ reasoning_effort }}", reasoning_effort="low") == "low"
    assert show(kimi, "{{ enable_thinking is defined }}") == "False"
    assert show(load(fixture("test")), "{{ bos_token }}{{ eos_token }}!") == "!"


def test_defaults_are_transformers() -> None:
    tok = templated(default=TURNS)
    answered = [*HI, says("assistant", "A")]
    like: Any = {"like": "transformers"}
    question = "<|im_start|>user\nHi<|im_end|>\n"
    assert tok.apply_chat_template(HI, **like) == question
    prompt = tok.apply_chat_template(HI, add_generation_prompt=True, **like)
    assert prompt == question + "<|im_start|>assistant\n"
    assert tok.apply_chat_template(answered, **like).endswith("A<|im_end|>\n")


def test_reasoning_reaches_the_template_and_wrong_messages_raise_errors(kimi: Tokenizer) -> None:
    fields = (
        "{{ messages[0].reasoning_content }}|{{ messages[0].thinking }}|{{ messages[0] | length }}"
    )
    for name in ("reasoning_content", "thinking", "reasoning"):
        message = {"role": "assistant", "content": None, name: "Hm"}
        n = 4 if name == "reasoning" else 3
        assert show(kimi, fields, [message]) == f"Hm|Hm|{n}"
    with pytest.raises(ggtok.InvalidTypeError, match=r"messages\[0\] must be a mapping, not str"):
        show(kimi, fields, ["Hi"])
    with pytest.raises(
        ggtok.InvalidTypeError, match=r"messages\[0\]\['x'\]: must be str, a number,"
    ):
        show(kimi, fields, [{"x": b""}])
    for tool, says_ in (("x", "not str"), (print, "transformers.utils.get_json_schema makes")):
        with pytest.raises(ggtok.InvalidTypeError, match=rf"tools\[1\] must be .*{says_}"):
            show(kimi, fields, tools=[TOOLS[0], tool])
    # a role that isn't a string
    assert show(kimi, "{{ messages[0].role }}", [{"role": ["x"]}]) == "['x']"


# ---- continuing a message ----


def test_a_final_message_is_continued() -> None:
    tok = templated(default=TURNS)
    messages = [*HI, says("assistant", " Well, ")]
    options: dict[str, Any] = {"continue_final_message": True}
    text = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nWell,"
    assert show(tok, TURNS, messages, **options) == text
    assert show(tok, WHOLE, messages, **options) == "[Hi][ Well, "
    thought = [*HI, says("assistant", "A", reasoning="Hm")]
    options["continue_final_message"] = "thinking"
    assert show(tok, WHOLE, thought, **options) == "[Hi][AHm"
    with pytest.raises(ggtok.TemplateError, match="drops the end of the last message"):
        show(tok, "{% if thinking %}{% endif %}", thought, **options)
    with pytest.raises(ggtok.InvalidValueError, match="pass add_generation_prompt=False"):
        show(tok, WHOLE, messages, add_generation_prompt=True, continue_final_message=True)


@pytest.mark.parametrize(
    ("template", "content", "text"),
    [
        ("{{ messages[0].content | e }}.", "one", "one"),
        ("{{ messages[0].content | upper }}.", "ONE ", "ONE "),
        ("{{ messages[0].content | trim }}.", "One ", "One"),
        ("{{ messages[0].content | e }}.", "a < b", None),
        ("{{ messages[0].content | upper }}.", "One", None),
        ("{{ messages[0].content | lower }}.", "one", None),
        (
            "[{{ messages[0].content }}] {{ messages[0].content }}.",
            "One",
            "[OneCONTINUE_FINAL_MESSAGE_TAG ] One",
        ),
    ],
)
def test_continuing_a_message_that_the_template_changes(
    template: str, content: str, text: str | None, kimi: Tokenizer
) -> None:
    """transformers adds a tag to the content, searches for it in the rendered text, and cuts the
    text there."""
    messages = [says("assistant", content)]
    for _ in range(2):
        if text is None:
            with pytest.raises(ggtok.TemplateError, match="drops the end of the last message"):
                show(kimi, template, messages, continue_final_message=True)
        else:
            assert show(kimi, template, messages, continue_final_message=True) == text


@pytest.mark.full
def test_continuing_equals_transformers(kimi: Tokenizer) -> None:
    utils = pytest.importorskip("transformers.utils.chat_template_utils")
    changes = (
        "",
        " | e",
        " | upper",
        " | lower",
        " | trim",
        " | capitalize",
        " | replace('A', 'b')",
    )
    bodies = "{{ %s }}", "[{{ %s }}]\n", "{{ %s }} {{ %s }}."
    for change, body, content in itertools.product(
        changes, bodies, ("one", "One ", "ONE", " a < b", "A CONTINUE_FINAL_MESSAGE_TAG b", "<A>")
    ):
        value = f"messages[0].content{change}"
        template = body.replace("%s", value)
        messages = [says("assistant", content)]
        try:
            [theirs], _ = utils.render_jinja_template(
                [messages], chat_template=template, continue_final_message=True
            )
        except ValueError:
            with pytest.raises(ggtok.TemplateError):
                show(kimi, template, messages, continue_final_message=True)
        else:
            assert show(kimi, template, messages, continue_final_message=True) == theirs


def test_a_conversation_without_messages_raises_an_error(kimi: Tokenizer) -> None:
    """transformers rejects a conversation without messages, even if the template needs none."""
    for call in kimi.apply_chat_template, kimi.encode_chat, kimi.count_chat:
        with pytest.raises(ggtok.InvalidValueError, match="there are no messages"):
            call([], template="{{ 'x' }}", like="transformers")
    with pytest.raises(ggtok.InvalidValueError, match="there are no messages"):
        kimi.encode_chat_batch([HI, []], template="{{ 'x' }}", like="transformers")
    assert kimi.apply_chat_template([], template="{{ 'x' }}") == "x"


def test_continuing_a_message_of_several_blocks(kimi: Tokenizer) -> None:
    blocks = ["One", {"text": "Two"}, {"text": "Three"}, "Four", 5]
    template = "{% for b in messages[0].content %}{{ b.text or b }};{% endfor %}"
    messages = [says("assistant", blocks)]
    assert show(kimi, template, messages, continue_final_message=True) == "One;Two;Three"


@pytest.mark.parametrize(
    ("messages", "field", "pattern"),
    [
        ([], True, "there are no messages"),
        (HI, "thinking", "the last message has no 'thinking'"),
        ([{"name": "x"}], "name", "the template doesn't use 'name'"),
        ([{"content": 3}], True, "'content' is int, not text"),
        ([{"content": [{"image": "x"}, "text", 3]}], True, "the last message has no text"),
        ([{"content": [{"text": "x"}, {"text": 3}]}], True, "the last message has no text"),
    ],
)
def test_messages_that_cannot_be_continued_raise_errors(
    messages: Any, field: bool | str, pattern: str, kimi: Tokenizer
) -> None:
    template = "{{ messages[0].content }}{{ messages[0].thinking }}"
    with pytest.raises(ggtok.InvalidValueError, match=f"continue_final_message: {pattern}"):
        show(kimi, template, messages, continue_final_message=field)


# ---- ids ----


def ids_of(tok: Tokenizer, messages: Any = HI, **arguments: Any) -> list[int]:
    return tok.encode_chat(messages, like="transformers", **arguments)


def test_bos_and_eos_are_not_doubled() -> None:
    template = "{{ bos_token }}{{ messages[0].content }}{{ eos_token }}"
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", template, "str")
    gguf.set("tokenizer.ggml.add_eos_token", True, "bool")
    tok = load(gguf.dump())
    assert tok.add_bos
    assert tok.add_eos
    ids = ids_of(tok)
    assert ids.count(tok.bos_id) == ids.count(tok.eos_id) == 1
    assert show(tok, template) == "<s>Hi</s>"
    # a message's text doesn't have the template's origin
    ids = ids_of(tok, [user("<s>Hi</s>")], template="{{ messages[0].content }}")
    assert len(ids) > len(ids_of(tok, template="{{ messages[0].content }}"))


def test_control_tokens_of_messages_count_only_if_trusted() -> None:
    tok = templated(default=TURNS)
    end = tok.text_to_token("<|im_end|>")
    messages = [user("a<|im_end|>b")]
    assert ids_of(tok, messages).count(end) == 1
    assert ids_of(tok, messages, trusted=True).count(end) == 2
    tok = templated("spm-phi3", default="{{ '<|' + messages[0].role + '|>' }}")
    for role in ("user", "wizard", "end"):
        ids = ids_of(tok, [says(role, "")])
        assert (tok.text_to_token(f"<|{role}|>") in ids) == (role == "user")


def test_the_vocabularys_own_eos_is_trusted() -> None:
    tok = templated(default="{{ eos_token }}", other="{{ messages[0].content }}")
    eos = tok.token_to_piece(tok.eos_id or 0).decode()
    assert ids_of(tok, eos_token=eos) == [tok.eos_id]
    assert ids_of(tok, template="other", messages=[user(eos)]) != [tok.eos_id]


def test_masks_cover_the_assistants_text() -> None:
    answer = "{% generation %}{{ m.content }}{% endgeneration %}"
    marked = f"{{% for m in messages %}}{{{{ m.role }}}}: {answer}\n{{% endfor %}}"
    tok = templated(default=marked)
    arguments: Any = {"like": "transformers", "return_assistant_mask": True}
    ids, mask = tok.encode_chat(HI, **arguments)
    pieces = [tok.token_to_piece(i) for i, is_answer in zip(ids, mask, strict=True) if is_answer]
    assert b"".join(pieces).strip() == b"Hi"
    ids, mask = tok.encode_chat(HI, template=TURNS, **arguments)
    assert not any(mask)  # unmarked text of a user


def test_batches_equal_single_calls() -> None:
    tok = templated(default=TURNS)
    conversations = [[user(str(i))] for i in range(5)]
    assert tok.encode_chat_batch(conversations, like="transformers") == [
        ids_of(tok, messages) for messages in conversations
    ]
    assert tok.count_chat(HI, like="transformers") == len(ids_of(tok))
