"""The handlers for families of templates: messages, prompts and continued answers."""

from __future__ import annotations

from typing import Any

import pytest

from ggtok.chat import handlers
from ggtok.chat.handlers import Answer, Handler
from ggtok.chat.messages import Message
from ggtok.chat.prompt import Prompt
from ggtok.errors import InvalidTypeError
from tests.chat.made import TEMPLATES
from tests.chat.requests import call, says, text, user

BAR = "\N{FULLWIDTH VERTICAL LINE}"


def handler_of(name: str) -> Handler:
    handler = handlers.find(TEMPLATES[name])
    assert handler is not None
    return handler


def unfinished_answer(
    name: str,
    *,
    reasoning: str = "R",
    in_content: bool = True,
    prompt: str = "",
    thinking: bool = True,
    **variables: Any,
) -> str:
    """Returns the text of an unfinished answer whose content is C."""
    message = Message("assistant", "C", reasoning=reasoning)
    ranges = ((0, len(prompt)),) if prompt else ()
    written = Prompt(prompt, ranges)
    answer = Answer(message, in_content, TEMPLATES[name], variables, thinking, written)
    pieces = handlers.pieces(handler_of(name), answer)
    assert all(is_own for piece, is_own in pieces if piece not in ("", "C", "R"))
    assert not any(is_own for piece, is_own in pieces if piece in ("C", "R"))
    return "".join(piece for piece, _ in pieces)


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
        ("gemma", "<|channel>thought\nR<channel|>C"),
        ("gemma, older", "<|channel>thought\nR<channel|>C"),
        ("minicpm", "<|im_start|>assistant\n<think>\nR\n</think>\n\nC"),
        ("translate gemma", "<start_of_turn>model\nC"),
        ("qwen thinker", "<|im_start|>assistant\n<think>\nR\n</think>\n\nC"),
        ("qwen coder", "<|im_start|>assistant\nC"),
    ],
)
def test_unfinished_answers(name: str, text: str) -> None:
    assert unfinished_answer(name) == text
    shorter = unfinished_answer(name, in_content=False)
    if handler_of(name).always_content:
        assert shorter == text
    else:
        assert text.startswith(shorter)
        assert not shorter.endswith("C")
        assert shorter.endswith("R") == handler_of(name).reasons


def test_answers_depend_on_prompt_and_variables() -> None:
    assert unfinished_answer("gemma", prompt="<turn|>\n").startswith(
        "<|turn>model\n<|channel>thought\n"
    )
    assert unfinished_answer("deepseek 4", reasoning="") == f"<{BAR}Assistant{BAR}></think>C"
    for effort, tag in (("medium", "think_fast"), ("low", "think_faster"), ("x", "think")):
        assert f"<ifm|{tag}>\n" in unfinished_answer("k2 horizon", reasoning_effort=effort)
    assert "<ifm|think>\n" in unfinished_answer(
        "k2 horizon", reasoning_effort="low", thinking=False
    )
    plain = unfinished_answer("k2 horizon, not thinking", reasoning_effort="low", thinking=False)
    assert "<ifm|think_faster>\n" in plain


def test_wrong_variables_raise_errors() -> None:
    handler_of("k2 horizon").check({"reasoning_effort": "low", "other": 1})
    for name, variable in (
        ("k2 horizon", "reasoning_effort"),
        ("k2 horizon", "tool_call_format"),
        ("translate gemma", "source_lang_code"),
    ):
        with pytest.raises(InvalidTypeError, match=f"{variable} must be str .*, not NoneType"):
            handler_of(name).check({variable: None})


def test_handlers_change_the_ends_of_prompts() -> None:
    finish = handler_of("harmony").finish
    assert finish is not None
    assert finish(Prompt("a<|return|>", ())).text == "a<|end|>"
    assert Prompt("a<turn|>\n", ()).turn(*handler_of("gemma").turn) == [("<|turn>model\n", False)]
    assert Prompt("a", ()).turn(*handler_of("gemma").turn) == []
    assert Prompt("a", ()).turn(*handler_of("ling").turn) == []


def handled(name: str, *messages: dict[str, Any], **variables: Any) -> list[dict[str, Any]]:
    return handler_of(name).messages(list(messages), variables)


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
        says("assistant", "A", reasoning_content="R", tool_calls=[]),
        says("assistant", [text("B")], reasoning_content="R"),
    ]
    assert handled("ministral", *messages) == [
        says("system", [text("S")]),
        user(),
        says("assistant", [thought, text("A")], tool_calls=[]),
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
    unnamed = says("assistant", "", tool_calls=[{"type": "function", "function": {"name": "f"}}])
    question = user("between")

    def order(*messages: dict[str, Any]) -> list[str]:
        return [m["content"] for m in handled("deepseek 4", *messages) if m is not calls]

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
            {"name": "3", "response": [text("x")]},
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


def test_families_are_found_by_their_texts() -> None:
    assert handlers.find(TEMPLATES["plain"]) is None
    assert [row.reasons for row in handlers.HANDLERS].count(False) == 4
    for name, source in TEMPLATES.items():
        fitting = [
            row for row in handlers.HANDLERS if handlers.fits(source, row.present, row.absent)
        ]
        assert (handlers.find(source) is None) == (not fitting), name
    assert handler_of("gemma") is not handler_of("gemma, older")
    assert handler_of("deepseek 4").schema_variable == "response_format"
