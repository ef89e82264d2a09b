"""Requests written by hand that cover every field that an endpoint reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tests.chat.requests import BARE, CALCULATE, NESTED, SCHEMA, WEATHER, call, says, user
from tests.server.generate import Request, post

GETS = ("/health", "/v1/health", "/v1/models", "/models", "/props", "/props?model=", "/nothing")
UNKNOWN = (
    Request("GET", "/tokenize", None),
    Request("GET", "/v1/messages/count_tokens", None),
    Request("POST", "/health", b"{}"),
    Request("POST", "/v1/models", b"{}"),
    Request("POST", "/nothing", b"{}"),
    Request("POST", "/v1/tokenize", b"{}"),
    Request("POST", "/tokenize/", b"{}"),
    Request("PUT", "/tokenize", b"{}"),
    Request("DELETE", "/tokenize", None),
    Request("POST", "/v1/apply-template", b"{}"),
)
# Bodies that aren't JSON, or aren't objects. Some of them are sent to each endpoint.
RAW = (
    b"",
    b" ",
    b"{",
    b"{}",
    b"[]",
    b"null",
    b"7",
    b'"text"',
    b"{} {}",
    b"{'content': 'Hi'}",
    b'{"content": "Hi",}',
    b'{"content": NaN}',
    b'{"content": -Infinity}',
    b'{"content": 1e999}',
    b'{"content": "\xff"}',
    b'{"content": "\xed\xa0\x80"}',
    b'{"content": "\\ud83d\\udc4d"}',
    b'{"content": "\\ud83d"}',
    b'{"content": "\\udc4d"}',
    b'{"content": "a\nb"}',
    b'{"content": "\\u0000"}',
    b'{"content": "\\x"}',
    b'\xef\xbb\xbf{"content": "Hi"}',
    b'{"content": "Hi", "content": "there"}',
    b'{"content": "Hi"} // comment',
    b'{"content": 01}',
    b'{"content": [-0, 1.0, 2e0]}',
)
TEXTS = (
    "Hi",
    "",
    " ",
    "  leading and trailing  ",
    "the theatre\n\n\tthere",
    "don't 12345 3.14",
    "Grüße, 你好 👍🏽 e\u0301",
    "\u00a0\u2028\ufeff",
    "<s>[INST] Hi [/INST]</s>",
    "<|begin_of_text|><|eot_id|>",
    "[CLS] Hi [SEP]",
    "<0x41>▁Ġ",
    "x" * 200,
)
FLAGS: tuple[dict[str, Any], ...] = (
    {"add_special": True},
    {"parse_special": False},
    {"add_special": True, "parse_special": False, "with_pieces": True},
    {"add_special": 1},
    {"add_special": "true"},
    {"add_special": None, "parse_special": None, "with_pieces": None},
    {"with_pieces": 0},
    {"unknown": True},
)
CONTENTS: tuple[Any, ...] = (
    ["Hi", 5, "there"],
    [5, "Hi"],
    ["", "Hi"],
    [],
    [[5]],
    [None],
    ["Hi", None],
    [True, False],
    [1.9, -1.9],
    [2**31, -(2**31) - 1, 2**32 + 5, 2**63],
    [1e10, -1e10, 1e300],
    ["<s>", 5, "<s>"],
    None,
    7,
    True,
    {},
    {"text": "Hi"},
)
TOKENS: tuple[Any, ...] = (
    [],
    [5],
    [5, 6, 7, 300],
    list(range(300)),
    [1.9],
    [True],
    [-1],
    [2**32 + 5],
    [1000000],
    [5, None],
    ["5"],
    [[5]],
    None,
    5,
    "5",
    {},
    {"a": 5},
)
CHATS: tuple[Any, ...] = (
    {"messages": [user()]},
    {"messages": [says("system", "Be brief."), user()]},
    {"messages": [user(), says("assistant", "Hello"), user("And?")]},
    {"messages": []},
    {"messages": None},
    {"messages": {}},
    {"messages": "Hi"},
    {"messages": ["Hi"]},
    {"messages": [{}]},
    {"messages": [{"role": "user"}]},
    {"messages": [{"content": "Hi"}]},
    {"messages": [says("assistant", None)]},
    {"messages": [{"role": "assistant"}]},
    {"messages": [says(7, "Hi")]},  # type: ignore[arg-type]
    {"messages": [user(7)]},
    {"messages": [user({})]},
    {"messages": [user([])]},
    {"messages": [user([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}])]},
    {"messages": [user([{"type": "text"}])]},
    {"messages": [user([{"text": "a"}])]},
    {"messages": [user(["a"])]},
    {"messages": [user([{"type": "image_url", "image_url": {"url": "data:,"}}])]},
    {"messages": [user([{"type": "input_audio", "input_audio": {"data": "", "format": "wav"}}])]},
    {"messages": [user([{"type": "video_url"}])]},
    {"messages": [user([{"type": "media_marker", "text": "x"}])]},
    {"messages": [user("<|eot_id|></s><|im_end|>")]},
    {"messages": [user()], "tools": [WEATHER, CALCULATE]},
    {"messages": [user()], "tools": [BARE, NESTED], "tool_choice": "required"},
    {"messages": [user()], "tools": []},
    {"messages": [user()], "tools": {}},
    {"messages": [user()], "tools": [{"type": "x"}]},
    {"messages": [user()], "tools": [{"type": "function"}]},
    {"messages": [user()], "tools": [WEATHER], "tool_choice": "any"},
    {"messages": [user()], "tools": [WEATHER], "tool_choice": {"type": "function"}},
    {"messages": [user()], "tools": [WEATHER], "grammar": "root ::= 'a'"},
    {"messages": [user()], "grammar": "root ::= 'a'", "json_schema": SCHEMA},
    {"messages": [user()], "response_format": {"type": "json_object"}},
    {"messages": [user()], "response_format": {"type": "yaml"}},
    {"messages": [user()], "reasoning_format": "x"},
    {"messages": [user()], "reasoning_format": None},
    {"messages": [user()], "reasoning_effort": "none"},
    {"messages": [user()], "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": [user()], "chat_template_kwargs": {"enable_thinking": "false"}},
    {"messages": [user()], "chat_template_kwargs": [1]},
    {"messages": [user()], "chat_template_kwargs": "x"},
    {"messages": [user()], "add_generation_prompt": False},
    {"messages": [user()], "continue_final_message": True},
    {"messages": [user()], "continue_final_message": "x", "add_generation_prompt": False},
    {"messages": [user()], "continue_final_message": 0},
    {"messages": [user(), says("assistant", "Hel")]},
    {"messages": [user(), says("assistant", "a"), says("assistant", "b")]},
    {"messages": [user(), says("assistant", "", tool_calls=[call("c", "now", {})])]},
    {"messages": [user(), says("assistant", "", tool_calls={"a": call("c", "now", {})}), user()]},
    {"messages": [user(), says("assistant", "", tool_calls="x"), user()]},
    {"messages": [user(), says("assistant", "", tool_calls=[{"type": "function"}]), user()]},
    {
        "messages": [
            user(),
            {"role": "assistant", "tool_calls": [call("c", "now", '{"a": 1}')]},
            says("tool", "12:00", tool_call_id="c"),
        ]
    },
    {"messages": [user(), says("assistant", "", tool_calls=[call("c", "f", "{x")]), user()]},
    {"messages": [user()], "logprobs": True, "top_logprobs": 3},
    {"messages": [user()], "top_logprobs": 3},
    {"messages": [user()], "logprobs": True, "stream": True, "tools": [WEATHER]},
    {"messages": [user()], "stop": "x", "stream": "yes", "n_predict": [], "seed": {}},
)


def _item(kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, **more}


def _input(*items: Any) -> dict[str, Any]:
    return {"input": list(items)}


_ANSWER = _item("message", role="assistant", content=[_item("output_text", text="Hello")])
_FUNCTION = _item("function_call", call_id="c", name="f", arguments='{"a": 1}')
_THOUGHT = _item("reasoning", summary=[], content=[_item("reasoning_text", text="Hm")])
RESPONSES: tuple[Any, ...] = (
    {"input": "Hi"},
    {"input": "Hi", "instructions": "Be brief."},
    {"input": "Hi", "instructions": 7},
    {"input": "Hi", "previous_response_id": "r"},
    {"input": "Hi", "previous_response_id": ""},
    {"input": 7},
    {"input": {}},
    {"instructions": "Hi"},
    _input(),
    _input(user()),
    _input(_item("message", role="user", content="Hi", status="completed")),
    _input(user([_item("input_text", text="a"), _item("input_text", text="b")])),
    _input(user([_item("input_text")])),
    _input(user([_item("input_image", image_url="data:,")])),
    _input(user([_item("input_image")])),
    _input(user([_item("input_file", file_id="f")])),
    _input(user([_item("text", text="a")])),
    _input(says("wizard", "Hi")),
    _input(says("assistant", "Hi")),
    _input(user(), _ANSWER, user("And?")),
    _input(user(), _item("function_call_output", call_id="c", output=[_item("input_image")])),
    _input(user(), _item("message", role="assistant", content=[_item("refusal")]), user()),
    _input(user(), _ANSWER, _ANSWER, user()),
    _input(user(), _item("message", role="assistant", content="Hello"), user()),
    _input(user(), _item("message", role="assistant", content=[_item("x")]), user()),
    _input(user(), _item("message", role="assistant", content=[_item("output_text")]), user()),
    _input(
        user(),
        _item("message", role="assistant", content=[_item("refusal", refusal="No")]),
        user(),
    ),
    _input(user(), _item("message", role="assistant"), user()),
    _input(user(), _FUNCTION, _item("function_call_output", call_id="c", output="1")),
    _input(user(), _ANSWER, _FUNCTION, _FUNCTION, _item("function_call_output", call_id="c")),
    _input(
        user(),
        _THOUGHT,
        _ANSWER,
        _FUNCTION,
        _item("function_call_output", call_id="c", output=[_item("input_text", text="1")]),
    ),
    _input(user(), _FUNCTION, _item("function_call_output", call_id="c", output=[_item("x")])),
    _input(user(), _FUNCTION, _item("function_call_output", call_id="c", output=[{}])),
    _input(user(), _item("function_call", call_id="c", name="f", arguments={})),
    _input(user(), _THOUGHT, user()),
    _input(user(), _item("reasoning", summary=[]), user()),
    _input(user(), _item("reasoning", summary=[], content=[]), user()),
    _input(user(), _item("reasoning", summary=[], content=[{}]), user()),
    _input("Hi"),
    _input(None),
    _input(_item("web_search_call")),
    {"input": "Hi", "tools": [{**WEATHER["function"], "type": "function"}]},
    {"input": "Hi", "tools": [_item("web_search")]},
    {"input": "Hi", "tools": None},
    {"input": "Hi", "tools": ["x"]},
    {"input": "Hi", "tools": [_item("function")]},
    {"input": "Hi", "reasoning": {"effort": "none"}},
    {"input": "Hi", "reasoning": "none"},
    {"input": "Hi", "max_output_tokens": 100},
)


def _said(*blocks: Any, role: str = "user") -> dict[str, Any]:
    return {"messages": [{"role": role, "content": list(blocks)}], "max_tokens": 10}


def _block(text: str) -> dict[str, Any]:
    return _item("text", text=text)


_SOURCE = {"type": "base64", "media_type": "image/png", "data": "AAAA"}
_USE = _item("tool_use", id="c", name="f", input={"a": [1, 2.50, None], "b": {"c": 1e22}})
ANTHROPIC: tuple[Any, ...] = (
    {"messages": [user()]},
    {"messages": [user()], "system": "Be brief."},
    {"messages": [user()], "system": [_block("Be "), _block("brief."), _item("x", text="!")]},
    {"messages": [user()], "system": 7},
    {"messages": [user()], "system": []},
    {"messages": [user()], "system": "x-anthropic-billing-header: v=2; cch=a5145;You are"},
    {"messages": [user()], "system": "x-anthropic-billing-header: v=2; cch=b5145;You are"},
    {"messages": [user()], "system": "x-anthropic-billing-header: v=2; cch=b514;You are"},
    {"messages": [user()], "system": " x-anthropic-billing-header: cch=b5145;You are"},
    {"messages": []},
    {"messages": {}},
    {"messages": "Hi"},
    {"system": "Hi"},
    {"messages": ["Hi"]},
    {"messages": [{"role": "user"}]},
    {"messages": [user(), {"role": "assistant"}, user()]},
    {"messages": [user(7)]},
    {"messages": [says("assistant", "Hi")]},
    _said(_block("a"), _block("b")),
    _said(),
    _said(_item("text")),
    _said("a"),
    _said(_item("text", text="a", cache_control={"type": "ephemeral"})),
    _said(_item("image", source=_SOURCE)),
    _said(_item("image", source={"type": "url", "url": "http://x"})),
    _said(_item("image", source={"type": "file"}), _block("a")),
    _said(_item("image")),
    _said(_item("document", source=_SOURCE), _block("a")),
    _said(_item("redacted_thinking", data="x")),
    _said(_item("thinking", thinking="Hm", signature="s"), _block("a"), role="assistant"),
    _said(_item("thinking", thinking="Hm"), role="assistant"),
    {"messages": [user(), *_said(_USE, role="assistant")["messages"]]},
    {
        "messages": [
            user(),
            *_said(_item("thinking", thinking="Hm"), _block("a"), _USE, role="assistant")[
                "messages"
            ],
            *_said(_item("tool_result", tool_use_id="c", content="1"), _block("Go on"))["messages"],
        ]
    },
    _said(_item("tool_use", id="c", name="f", input="x"), role="assistant"),
    _said(_item("tool_use"), role="assistant"),
    _said(_item("tool_result", tool_use_id="c", content=[_block("1"), _block("2")])),
    _said(_item("tool_result", tool_use_id="c", content=[_item("image", source=_SOURCE)])),
    _said(_item("tool_result", tool_use_id="c")),
    _said(_item("tool_result", tool_use_id=7, content=7)),
    {"messages": [user()], "tools": [{"name": "f", "description": "d", "input_schema": SCHEMA}]},
    {"messages": [user()], "tools": [{}]},
    {"messages": [user()], "tools": ["x"]},
    {"messages": [user()], "tools": {}},
    {"messages": [user()], "tools": [{"name": "f"}], "tool_choice": {"type": "any"}},
    {"messages": [user()], "tool_choice": "any"},
    {"messages": [user()], "thinking": {"type": "enabled", "budget_tokens": 1024}},
    {"messages": [user()], "thinking": 7, "metadata": 7, "stop_sequences": 7},
    {"messages": [user()], "chat_template_kwargs": {"enable_thinking": False}},
    {"messages": [user()], "chat_template_kwargs": 7},
)


def _all() -> Iterable[Request]:
    for path in GETS:
        yield Request("GET", path, None)
    yield from UNKNOWN
    for data in RAW:
        yield Request("POST", "/tokenize", data)
    for path in (
        "/detokenize",
        "/apply-template",
        "/v1/chat/completions/input_tokens",
        "/responses/input_tokens",
        "/v1/messages/count_tokens",
    ):
        for data in RAW[:10]:
            yield Request("POST", path, data)
    for text in TEXTS:
        yield post("/tokenize", {"content": text})
        yield post("/tokenize", {"content": text, "add_special": True, "with_pieces": True})
    for flags in FLAGS:
        yield post("/tokenize", {"content": "<s>Hi</s><|eot_id|>", **flags})
    for content in CONTENTS:
        yield post("/tokenize", {"content": content})
    yield post("/tokenize", {"content": ["Hi", 5], "add_special": True, "with_pieces": True})
    yield post("/tokenize", {"content": [-1], "with_pieces": True})
    for tokens in TOKENS:
        yield post("/detokenize", {"tokens": tokens})
    for i, body in enumerate(CHATS):
        path = "/v1/chat/completions/input_tokens" if i % 3 else "/chat/completions/input_tokens"
        yield post("/apply-template", body)
        yield post(path, body)
    for body in RESPONSES:
        yield post("/v1/responses/input_tokens", body)
    for body in ANTHROPIC:
        yield post("/v1/messages/count_tokens", body)


REQUESTS = list(_all())
