"""llama-server's special rules for families of templates.

A template's family is recognized by texts in its source. A row of `HANDLERS` says how the
family's messages are changed before rendering, how the prompt is changed afterwards, and how the
beginning of an answer is appended. The first row that matches is used. `reasoning` handles
templates that match no row. `llama` has the few rules that don't fit into a row: patched checks,
trimmed contents, the role `developer`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ggtok.chat import values
from ggtok.chat.messages import Message, separated
from ggtok.chat.prompt import Prompt, joined, own
from ggtok.errors import InvalidTypeError, InvalidValueError

Json = dict[str, Any]
Messages = list[Json]


@dataclass(frozen=True, slots=True)
class Answer:
    """The beginning of an answer to be continued, and its context."""

    message: Message
    in_content: bool  # whether the content is continued, not the reasoning
    source: str
    variables: Json  # the request's variables
    thinking: bool
    prompt: Prompt  # the prompt before the answer


# The text before the reasoning, and the text between the reasoning and the content.
Opening = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Handler:
    present: tuple[str, ...]
    opening: Opening | Callable[[Answer], Opening]
    absent: tuple[str, ...] = ()
    # Whether the model reasons: if so, enable_thinking defaults to true, and a continued answer is
    # written with its reasoning.
    reasons: bool = True
    always_content: bool = False  # whether to write the content even if the reasoning is continued
    # Whether to write the opening after the template's own generation prompt.
    after_prompt: bool = False
    # Changes the messages. If keeps_plain, messages without calls and reasoning stay the same.
    messages: Callable[[Messages, Json], Messages] | None = None
    keeps_plain: bool = True
    # Changes a prompt that has no generation prompt.
    finish: Callable[[Prompt], Prompt] | None = None
    # Two texts. If a prompt ends with the first, the second is appended. This applies to prompts
    # with a generation prompt, and to prompts before a continued answer.
    turn: tuple[str, str] = ("", "")
    schema_variable: str = ""  # the variable that gets the schema from response_format
    reads: frozenset[str] = frozenset()  # variables that the handler reads and that must be str

    def check(self, variables: Json) -> None:
        for name in self.reads & variables.keys():
            if not isinstance(variables[name], str):
                kind = type(variables[name]).__name__
                raise InvalidTypeError(f"{name} must be str for this template, not {kind}")


def pieces(handler: Handler, answer: Answer) -> list[tuple[str, bool]]:
    """Returns the answer as pieces: pairs of a text and whether it is the template's own."""
    opening = handler.opening
    before, between = opening(answer) if callable(opening) else opening
    found = [*answer.prompt.turn(*handler.turn), (before, True)]
    if handler.reasons:
        found.append((answer.message.reasoning, False))
    if answer.in_content or handler.always_content:
        found += [(between, True), *answer.message.pieces()]
    return found


# ---- messages ----


def _thinking(messages: Messages, variables: Json) -> Messages:
    """Adds each message's reasoning under the name ``thinking``, which the template reads."""
    return [
        {**m, "thinking": m["reasoning_content"]} if "reasoning_content" in m else m
        for m in messages
    ]


def _harmony(messages: Messages, variables: Json) -> Messages:
    """Adds ``thinking``, and drops the content of messages with reasoning and calls."""
    messages = _thinking(messages, variables)
    for message in messages:
        if "thinking" in message and message.get("tool_calls"):
            del message["content"]
    return messages


def _blocks(messages: Messages, variables: Json) -> Messages:
    """For Ministral: converts reasoning and content of system and assistant messages to a list of
    parts."""
    changed = []
    for message in messages:
        if message["role"] in ("system", "assistant"):
            content: list[Json] = []
            if "reasoning_content" in message:
                thought = message["reasoning_content"]
                content.append({"type": own("thinking"), "thinking": thought})
            given = message.get("content")
            if isinstance(given, str):
                content.append({"type": own("text"), "text": given})
            elif isinstance(given, list):
                content += given
            message = {k: v for k, v in message.items() if k != "reasoning_content"}
            message["content"] = content
        changed.append(message)
    return changed


def _always_reasoning(messages: Messages, variables: Json) -> Messages:
    return [
        {**m, "reasoning_content": ""}
        if m["role"] == "assistant" and "reasoning_content" not in m
        else m
        for m in messages
    ]


def _translated(messages: Messages, variables: Json) -> Messages:
    """For TranslateGemma: converts a user's content to one part that names the languages."""
    codes = ("source_lang_code", "target_lang_code")
    languages = {code: variables.get(code, "en-GB") for code in codes}
    changed = []
    for message in messages:
        if message["role"] == "user":
            content = message["content"]
            if isinstance(content, list):
                content = joined(separated([part["text"] for part in content], "\n"))
            part = {"type": own("text"), "text": content, **languages}
            message = {**message, "content": [part]}
        changed.append(message)
    return changed


def _in_order_of_calls(messages: Messages, variables: Json) -> Messages:
    """For DeepSeek V4: sorts the tool results between two answers in the order of the calls."""
    order: dict[str, int] = {}
    changed = list(messages)
    i = 0
    while i < len(changed):
        message = changed[i]
        if message["role"] == "assistant" and message.get("tool_calls"):
            order = {c["id"]: k for k, c in enumerate(message["tool_calls"]) if c.get("id")}
        if message["role"] not in ("user", "tool"):
            i += 1
            continue
        begin = i
        while i < len(changed) and changed[i]["role"] in ("user", "tool"):
            i += 1
        where = [k for k in range(begin, i) if changed[k]["role"] == "tool"]
        if order:
            results = [changed[k] for k in where]
            results.sort(key=lambda result: order.get(result.get("tool_call_id", ""), 0))
            for k, result in zip(where, results, strict=True):
                changed[k] = result
    return changed


def _with_responses(messages: Messages, variables: Json) -> Messages:
    """For older Gemma 4 templates: merges a message with tool calls, their results, and the next
    answer into one message."""
    changed: Messages = []
    i = 0
    while i < len(messages):
        message = messages[i]
        i += 1
        if message["role"] != "assistant" or not message.get("tool_calls"):
            changed.append(message)
            continue
        calls = message["tool_calls"]
        merged: Json = {"role": message["role"], "tool_calls": calls}
        responses: list[Json] = []
        while i < len(messages) and messages[i]["role"] == "tool":
            responses.append(_response(messages[i], calls, len(responses)))
            i += 1
        if responses:
            merged["tool_responses"] = responses
        if i < len(messages) and messages[i]["role"] == "assistant":
            answer = messages[i]
            if answer.get("content") and not answer.get("tool_calls"):
                merged["content"] = answer["content"]
                i += 1
        if "reasoning_content" in message:
            merged["reasoning_content"] = message["reasoning_content"]
        changed.append(merged)
    return changed


def _response(result: Json, calls: list[Json], index: int) -> Json:
    content = result.get("content")
    if isinstance(content, str):
        with suppress(InvalidValueError):  # content that isn't JSON stays text
            content = values.parse(content, "the tool's answer")
    name = calls[index]["function"]["name"] if index < len(calls) else ""
    return {"name": name or result.get("tool_call_id", ""), "response": content}


# ---- prompts ----


def _end_for_return(prompt: Prompt) -> Prompt:
    return prompt.with_last("<|return|>", "<|end|>")


# ---- openings ----


def _k2_horizon(answer: Answer) -> Opening:
    effort = answer.variables.get("reasoning_effort", "high")
    tag = {"medium": "ifm|think_fast", "low": "ifm|think_faster"}.get(effort, "ifm|think")
    if not answer.thinking and "enable_thinking" in answer.source:
        tag = "ifm|think"
    return f"<|ifm|im_start|>assistant\n<{tag}>\n", f"</{tag}>"


def _deepseek_v4(answer: Answer) -> Opening:
    if answer.message.reasoning:
        return _DEEPSEEK + "<think>", "</think>"
    return _DEEPSEEK + "</think>", ""


_DEEPSEEK = "<\N{FULLWIDTH VERTICAL LINE}Assistant\N{FULLWIDTH VERTICAL LINE}>"
_GEMMA = ("<|channel>thought\n", "<channel|>")
_GEMMA_TURN = ("<turn|>\n", "<|turn>model\n")
_IM_ASSISTANT = "<|im_start|>assistant\n"
_GPT_OSS = (
    "<|start|>assistant<|channel|>analysis<|message|>",
    "<|end|><|start|>assistant<|channel|>final<|message|>",
)

HANDLERS = (
    # Ministral, Magistral
    Handler(
        ("[SYSTEM_PROMPT]", "[TOOL_CALLS]", "[ARGS]"),
        ("[THINK]", "[/THINK]"),
        absent=("[CALL_ID]",),
        messages=_blocks,
        keeps_plain=False,
    ),
    # LLM-jp in harmony format
    Handler(
        ("chat_format=llm-jp-harmony-v1",), _GPT_OSS, messages=_harmony, finish=_end_for_return
    ),
    # gpt-oss
    Handler(("<|channel|>",), _GPT_OSS, messages=_harmony, finish=_end_for_return),
    # Muse Glimmer
    Handler(
        ("<atem:function_calls>", "<|eom|>"),
        ("<|start|>assistant to=self<|message|>", "<|eom|><|start|>assistant to=user<|message|>"),
    ),
    # Functionary 3.2
    Handler(
        (">>>all", ">>>${recipient}"),
        ("<|start_header_id|>assistant<|end_header_id|>\n\n>>>all\n", ""),
        reasons=False,
        always_content=True,
    ),
    # Kimi K2 Thinking
    Handler(
        ("<|tool_calls_section_begin|>", "<|tool_call_begin|>"),
        ("<|im_assistant|>assistant<|im_middle|><think>", "</think>"),
    ),
    # Kimi K3
    Handler(
        ("<|open|>", "<|close|>", "<|end_of_msg|>"),
        (
            '<|open|>message role="assistant"<|sep|><|open|>think<|sep|>',
            "<|close|>think<|sep|><|open|>response<|sep|>",
        ),
    ),
    # K2 Horizon
    Handler(
        ("<|ifm|im_start|>", "<ifm|tool_calls>"),
        _k2_horizon,
        messages=_always_reasoning,
        keeps_plain=False,
        reads=frozenset({"reasoning_effort", "tool_call_format"}),
    ),
    # Ling 3.0
    Handler(
        ("<role>ASSISTANT</role>", "<arg_key>"), ("<role>ASSISTANT</role>\n<think>", "</think>")
    ),
    # Cohere2 MoE
    Handler(
        ("<|START_TEXT|>", "<|START_ACTION|>"),
        (
            "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|><|START_THINKING|>",
            "<|END_THINKING|><|START_TEXT|>",
        ),
    ),
    # LFM2
    Handler(
        ("<|tool_list_start|>", "<|tool_list_end|>"),
        (_IM_ASSISTANT + "<think>", "</think>"),
        messages=_thinking,
    ),
    # LFM2.5
    Handler(
        ("List of tools: [",),
        (_IM_ASSISTANT + "<think>", "</think>"),
        absent=("<|tool_list_start|>",),
        messages=_thinking,
    ),
    # GigaChat 3
    Handler(
        ("<|role_sep|>", "<|message_sep|>"),
        ("assistant<|role_sep|>\n", ""),
        absent=("<|function_call|>",),
        reasons=False,
        always_content=True,
    ),
    # MiniMax M3
    Handler(
        ("]<]minimax[>[", "<tool_call>", "<invoke name="),
        ("<mm:think>", "</mm:think>"),
        after_prompt=True,
    ),
    # DeepSeek V3.2, whose block of tool calls has a different name from that in V4
    Handler(("dsml_token", "DSML", "function_calls"), (_DEEPSEEK + "<think>", "</think>")),
    # DeepSeek V4
    Handler(
        ("dsml_token", "DSML", "tool_calls"),
        _deepseek_v4,
        messages=_in_order_of_calls,
        schema_variable="response_format",
    ),
    # Gemma 4, then its older templates
    Handler(("'<|tool_call>call:'", "{#- OpenAI Chat Completions:"), _GEMMA, turn=_GEMMA_TURN),
    Handler(("'<|tool_call>call:'",), _GEMMA, messages=_with_responses, turn=_GEMMA_TURN),
    # MiniCPM5
    Handler(
        ("Tool usage guidelines:", '<function name="', '<param name="'),
        (_IM_ASSISTANT + "<think>\n", "\n</think>\n\n"),
    ),
    # TranslateGemma
    Handler(
        ("[source_lang_code]", "[target_lang_code]"),
        ("<start_of_turn>model\n", ""),
        reasons=False,
        always_content=True,
        messages=_translated,
        keeps_plain=False,
        reads=frozenset({"source_lang_code", "target_lang_code"}),
    ),
    # Qwen3-Coder, Qwen3.5, Nemotron Nano 3, StepFun 3.5: first with thinking, then without
    Handler(
        ("<tool_call>", "<function=", "<parameter=", "<think>"),
        (_IM_ASSISTANT + "<think>\n", "\n</think>\n\n"),
        absent=("'<tool_call><function=' ~ tool_call.name ~ '>'",),
    ),
    Handler(
        ("<tool_call>", "<function=", "<parameter="),
        (_IM_ASSISTANT, ""),
        absent=("'<tool_call><function=' ~ tool_call.name ~ '>'", "<think>"),
        reasons=False,
    ),
)


def find(source: str) -> Handler | None:
    return next((row for row in HANDLERS if fits(source, row.present, row.absent)), None)


def fits(source: str, present: Iterable[str], absent: Iterable[str]) -> bool:
    return all(text in source for text in present) and not any(text in source for text in absent)
