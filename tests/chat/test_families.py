"""llama-server's rules for families of templates: messages, prompts and continued answers."""

from __future__ import annotations

from typing import Any

import pytest

from ggtok import InvalidTypeError, TemplateError, Tokenizer, load
from ggtok.chat.compiled import TemplateFacts, chat_of
from ggtok.native import chat_calls
from tests.chat.calls import parts, prompt, variables
from tests.chat.families import families
from tests.chat.made import TEMPLATES
from tests.chat.requests import call, says, text, user
from tests.support.vocabularies import fixture

BAR = "\N{FULLWIDTH VERTICAL LINE}"
ALWAYS_CONTENT = ("functionary", "gigachat", "translate gemma")


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-qwen2"))


def facts_of(tok: Tokenizer, template: str) -> TemplateFacts:
    return chat_of(tok._loaded, "llama.cpp", template, None).facts_for(has_tools=False)


def unfinished_answer(
    tok: Tokenizer,
    name: str,
    *,
    reasoning: str = "R",
    in_content: bool = True,
    thinking: bool = True,
    **variables: Any,
) -> str:
    """Returns the text of an unfinished answer whose content is C."""
    answer = says("assistant", "C", reasoning_content=reasoning)
    fields: dict[str, Any] = {
        "continue_final_message": "content" if in_content else "reasoning_content",
        "add_generation_prompt": False,
        "chat_template_kwargs": {"enable_thinking": thinking, **variables},
    }
    given = {**fields, "messages": [user("?"), answer]}
    pieces = parts(prompt(tok, given, template=TEMPLATES[name]))
    # The prompt before the answer is the one with, or without, the template's generation prompt.
    question = {**fields, "messages": [user("?")], "continue_final_message": False}
    begins = [
        prompt(tok, {**question, "add_generation_prompt": add}, template=TEMPLATES[name]).text
        for add in (True, False)
    ]
    whole = "".join(piece for piece, _ in pieces)
    begin = next(begin for begin in begins if whole.startswith(begin))
    text, at = whole[len(begin) :], 0
    for piece, is_own in pieces:
        if at >= len(begin):
            assert is_own == (piece not in ("C", "R"))
        at += len(piece)
    return text


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ministral", "[THINK]R[/THINK]C"),
        (
            "llm-jp",
            "<|start|>assistant<|channel|>analysis<|message|>R"
            "<|end|><|start|>assistant<|channel|>final<|message|>C",
        ),
        (
            "harmony",
            "<|start|>assistant<|channel|>analysis<|message|>R"
            "<|end|><|start|>assistant<|channel|>final<|message|>C",
        ),
        (
            "muse",
            "<|start|>assistant to=self<|message|>R<|eom|><|start|>assistant to=user<|message|>C",
        ),
        ("functionary", "<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\nC"),
        ("kimi k2", "<|im_assistant|>assistant<|im_middle|><think>R</think>C"),
        (
            "kimi k3",
            '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>R'
            "<|close|>think<|sep|><|open|>response<|sep|>C",
        ),
        ("k2 horizon", "<|ifm|im_start|>assistant\n<ifm|think>\nR</ifm|think>C"),
        ("ling", "<role>ASSISTANT</role>\n<think>R</think>C"),
        (
            "cohere",
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>R"
            "<|END_THINKING|><|START_TEXT|>C",
        ),
        ("lfm", "<|im_start|>assistant\n<think>R</think>C"),
        ("lfm 2.5", "<|im_start|>assistant\n<think>R</think>C"),
        ("gigachat", "assistant<|role_sep|>\nC"),
        ("minimax", "<mm:think>R</mm:think>C"),
        ("deepseek 3.2", f"<{BAR}Assistant{BAR}><think>R</think>C"),
        ("deepseek 4", f"<{BAR}Assistant{BAR}><think>R</think>C"),
        ("gemma", "<|turn>model\n<|channel>thought\nR<channel|>C"),
        ("gemma, older", "<|turn>model\n<|channel>thought\nR<channel|>C"),
        ("minicpm", "<|im_start|>assistant\n<think>\nR\n</think>\n\nC"),
        ("translate gemma", "<start_of_turn>model\nC"),
        ("qwen thinker", "<|im_start|>assistant\n<think>\nR\n</think>\n\nC"),
        ("qwen coder", "<|im_start|>assistant\nC"),
    ],
)
def test_unfinished_answers(tok: Tokenizer, name: str, text: str) -> None:
    assert unfinished_answer(tok, name) == text
    shorter = unfinished_answer(tok, name, in_content=False)
    if name in ALWAYS_CONTENT:
        assert shorter == text
    else:
        assert text.startswith(shorter)
        assert not shorter.endswith("C")
        assert shorter.endswith("R") == facts_of(tok, TEMPLATES[name]).thinks


def test_answers_depend_on_variables_and_reasoning(tok: Tokenizer) -> None:
    assert unfinished_answer(tok, "deepseek 4", reasoning="") == f"<{BAR}Assistant{BAR}></think>C"
    for effort, tag in (("medium", "think_fast"), ("low", "think_faster"), ("x", "think")):
        assert f"<ifm|{tag}>\n" in unfinished_answer(tok, "k2 horizon", reasoning_effort=effort)
    assert "<ifm|think>\n" in unfinished_answer(
        tok, "k2 horizon", reasoning_effort="low", thinking=False
    )
    plain = unfinished_answer(
        tok, "k2 horizon, not thinking", reasoning_effort="low", thinking=False
    )
    assert "<ifm|think_faster>\n" in plain


def test_wrong_variables_raise_errors(tok: Tokenizer) -> None:
    def render(name: str, given: dict[str, Any]) -> str:
        return tok.apply_chat_template(
            [user()], template=TEMPLATES[name], chat_template_kwargs=given
        )

    assert render("k2 horizon", {"reasoning_effort": "low", "other": 1})
    for name, variable in (
        ("k2 horizon", "reasoning_effort"),
        ("k2 horizon", "tool_call_format"),
        ("translate gemma", "source_lang_code"),
    ):
        with pytest.raises(InvalidTypeError, match=f"{variable}.* must be str .*, not None"):
            render(name, {variable: None})


def test_families_change_the_ends_of_prompts(tok: Tokenizer) -> None:
    def end(name: str, template: str, generation: bool) -> str:
        given = {"messages": [user("a")], "add_generation_prompt": generation}
        marks = TEMPLATES[name].partition("-#}")[0] + "#}"
        return prompt(tok, given, template=marks + template).text

    said = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert end("harmony", said + "<|return|>", False) == "a<|end|>"
    assert end("harmony", said + "<|return|>", True) == "a<|return|>"
    assert end("gemma", said + "<turn|>\n\n", True) == "a<turn|>\n<|turn>model\n"
    assert end("gemma", said + "<turn|>\n\n", False) == "a<turn|>\n"
    assert end("gemma", said, True) == "a"
    assert end("ling", said + "<turn|>\n\n", True) == "a<turn|>\n"


def handled(name: str, *messages: dict[str, Any], **given: Any) -> Any:
    """Returns the messages that the template of a family gets."""
    body = {"messages": [*messages], "chat_template_kwargs": given}
    tok = load(fixture("bpe-qwen2"))
    found = variables(tok, body, template=TEMPLATES[name], bits=chat_calls.NO_PREFILL)
    return found["messages"]


def test_reasoning_gets_the_familys_name() -> None:
    reasoned = says("assistant", "A", reasoning_content="R")
    both = {**reasoned, "thinking": "R"}
    calls = {"tool_calls": [call("1", "f", {})]}
    for name in ("lfm", "lfm 2.5", "harmony", "llm-jp"):
        assert handled(name, user(), reasoned) == [user(), both]
    assert handled("lfm", {**reasoned, **calls}) == [{**both, **calls}]
    without_content = {k: v for k, v in both.items() if k != "content"}
    assert handled("harmony", {**reasoned, **calls}) == [{**without_content, **calls}]
    assert handled("harmony", says("assistant", "A", **calls)) == [says("assistant", "A", **calls)]
    silent = says("assistant", "A")
    assert handled("k2 horizon", user(), silent, reasoned) == [
        user(),
        {**silent, "reasoning_content": ""},
        reasoned,
    ]


def test_contents_become_blocks() -> None:
    thought = {"type": "thinking", "thinking": "R"}
    messages = [
        says("system", "S"),
        user(),
        says("assistant", "A", reasoning_content="R"),
        says("assistant", [text("B")], reasoning_content="R"),
    ]
    assert handled("ministral", *messages) == [
        says("system", [text("S")]),
        user(),
        says("assistant", [thought, text("A")]),
        says("assistant", [thought, text("B")]),
    ]


def test_contents_get_languages() -> None:
    messages = [user("a"), user([text("b"), text("c")]), says("assistant", "d")]

    def part(content: str, source: str, target: str) -> list[dict[str, str]]:
        return [{**text(content), "source_lang_code": source, "target_lang_code": target}]

    assert handled("translate gemma", *messages, source_lang_code="de") == [
        user(part("a", "de", "en-GB")),
        user(part("b\nc", "de", "en-GB")),
        says("assistant", "d"),
    ]


def results(*ids: str) -> list[dict[str, Any]]:
    return [says("tool", id.upper(), tool_call_id=id) for id in ids]


def test_results_get_the_order_of_calls() -> None:
    calls = says("assistant", "", tool_calls=[call(id, "f", {}) for id in ("a", "b", "c")])
    unnamed = says(
        "assistant",
        "",
        tool_calls=[{"type": "function", "function": {"name": "f", "arguments": {}}}],
    )
    question = user("between")

    def order(*messages: dict[str, Any]) -> list[str]:
        return [
            m["content"]
            for m in handled("deepseek 4", *messages)
            if len(m.get("tool_calls", ())) < 3
        ]

    assert order(calls, *results("c", "a", "b")) == ["A", "B", "C"]
    b, a = results("b", "a")
    assert order(calls, b, question, a) == ["A", "between", "B"]
    # an id that belongs to no call counts as the first call's
    assert order(calls, *results("b", "x", "a")) == ["X", "A", "B"]
    assert order(*results("b", "a")) == ["B", "A"]
    assert order(unnamed, *results("b", "a"))[1:] == ["B", "A"]
    assert order(calls, *results("b"), says("system", "s"), *results("a")) == ["B", "s", "A"]
    # results get the order of the closest preceding calls
    assert order(calls, says("assistant", "no calls"), *results("b", "a"))[1:] == ["A", "B"]


def test_results_become_tool_responses() -> None:
    calls = [call("1", "f", {}), call("2", "g", {})]
    calling = says("assistant", "dropped", tool_calls=calls, reasoning_content="R")
    messages = [
        user(),
        calling,
        says("tool", '{"t": 21.5}', tool_call_id="1"),
        says("tool", "warm", tool_call_id="2"),
        says("tool", [text("x")], tool_call_id="3"),
        says("assistant", "It is."),
        user("OK"),
    ]
    merged = {
        "role": "assistant",
        "tool_calls": calls,
        "tool_responses": [
            {"name": "f", "response": {"t": 21.5}},
            {"name": "g", "response": "warm"},
            {"name": "3", "response": "x"},
        ],
        "content": "It is.",
        "reasoning_content": "R",
    }
    assert handled("gemma, older", *messages) == [user(), merged, user("OK")]
    alone = says("assistant", "", tool_calls=calls)
    without_content = {"role": "assistant", "tool_calls": calls}
    assert handled("gemma, older", alone, alone, says("assistant", "")) == [
        without_content,
        without_content,
        says("assistant", ""),
    ]


def test_families_are_found_by_their_texts(tok: Tokenizer) -> None:
    """The first row of the table whose texts fit is a template's family."""
    rows = families()
    assert len(rows) == 22 and [row.reasons for row in rows].count(False) == 4
    found = set()
    for name, source in TEMPLATES.items():
        try:
            facts = facts_of(tok, source)
        except TemplateError:
            continue
        fitting = [
            row
            for row in rows
            if all(text in facts.source for text in row.present)
            and not any(text in facts.source for text in row.absent)
        ]
        assert facts.family == (fitting[0].name if fitting else None), name
        assert not fitting or facts.thinks == fitting[0].reasons, name
        found.add(facts.family)
    assert len(found) == 23  # every family, and None
    schema = {"messages": [user()], "response_format": {"type": "json_object"}}
    shown = variables(tok, schema, template=TEMPLATES["deepseek 4"])
    assert shown["response_format"] == {"type": "object"}
    assert "response_format" not in variables(tok, schema, template=TEMPLATES["plain"])
