"""Random bodies of chat requests, some of them malformed, reproducible from a seed."""

from __future__ import annotations

import random
from typing import Any

from tests.chat.mediafiles import AUDIO, IMAGE, INPUT_VIDEO, VIDEO
from tests.chat.requests import BARE, CALCULATE, NESTED, SCHEMA, WEATHER, Body, call, text

_WORDS = (
    "Hello",
    "",
    " ",
    "two\nlines\n",
    "  padded\t",
    "<think>",
    "</think>",
    "<|im_end|>",
    "<|eot_id|>",
    "</s>",
    "[INST]",
    "{{ x }}",
    "{% if %}",
    "'\"\\",
    "Grüße 你好 \U0001f44d",
    "\u00a0\u2028",
    "\x00\x1b",
    "e\u0301",
    '{"a": 1}',
    "null",
    "[1, 2]",
    "12",
    "<tool_call>",
    "\r\n",
    "x" * 40,
)
_ROLES = ("user",) * 6 + ("assistant",) * 5 + ("system", "tool", "tool", "developer", "wizard")
_NUMBERS = (
    0,
    -1,
    7,
    2**31,
    2**63 - 1,
    -(2**63),
    2**64 - 1,
    2**64,
    10**30,
    0.5,
    -0.0,
    1e-9,
    1e22,
    2.0,
)
_IDS = ("abcdefgh1", "abcdefgh2", "call_3", "")
_NAMES = ("get_weather", "calculate", "now", "book", "é")
_KEYWORDS: dict[str, tuple[object, ...]] = {
    "enable_thinking": (True, False, None, 1, "false"),
    "reasoning_effort": ("low", "high", "none", "", None, 3),
    "preserve_reasoning": (True, False, "yes"),
    "thinking": (True, False),
    "documents": ([], [{"title": "T", "text": "One"}]),
    "builtin_tools": (["wolfram_alpha"], []),
    "date_string": ("1 Jan 2020", None),
    "custom_tools": (None, []),
    "messages": ([{"role": "user", "content": "other"}],),
    "tools": (None,),
    "bos_token": ("<B>",),
    "eos_token": (None,),
    "add_generation_prompt": (False, True),
    "tools_in_user_message": (False, True),
    "response_format": ({"type": "x"},),
    "keep_past_thinking": (True,),
    "clear_thinking": (True, False),
    "truncate_history_thinking": (False,),
    "tool_call_format": ("json", "xml"),
    "source_lang_code": ("de", "fr"),
    "target_lang_code": ("en",),
}
_FIELDS: dict[str, tuple[object, ...]] = {
    "tool_choice": ("auto", "none", "required", "any", None, {"type": "function"}, 1),
    "parallel_tool_calls": (True, False, None, 1),
    "response_format": (
        None,
        {},
        {"type": "text"},
        {"type": "json_object"},
        {"type": "json_object", "schema": SCHEMA},
        {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
        {"type": "json_schema"},
        {"type": None},
        {"type": "yaml"},
        "text",
    ),
    "json_schema": (SCHEMA, {}, None),
    "reasoning_format": ("none", "auto", "deepseek", "deepseek-legacy", "x"),
    "reasoning_effort": ("low", "medium", "high", "none", "", None, 1),
    "add_generation_prompt": (True, False, None, "no"),
    "continue_final_message": (True, False, "content", "reasoning_content", "x", None),
    "stream": (True, False),
    "grammar": ("root ::= 'a'", "", None),
}


class Generator:
    """Generates bodies from a seed. `wrong` is the probability that a value has the wrong type."""

    def __init__(self, seed: int, wrong: float = 0.01) -> None:
        self._random = random.Random(seed)
        self._wrong = wrong

    def body(self) -> Body:
        rng = self._random
        new: Body = {"messages": [self._message() for _ in range(rng.choice((1, 1, 2, 3, 4, 6)))]}
        if rng.random() < 0.5:
            new["messages"] = [*new["messages"], {"role": "user", "content": self._content()}]
        if rng.random() < 0.3:
            new["messages"] = self._calling() + new["messages"]
        if rng.random() < 0.35:
            new["tools"] = self._or_wrong(self._tools())
        for name, choices in _FIELDS.items():
            if rng.random() < 0.08:
                new[name] = rng.choice(choices)
        if new.get("continue_final_message") and rng.random() < 0.8:
            new["add_generation_prompt"] = False
        if rng.random() < 0.3:
            names = rng.sample(sorted(_KEYWORDS), rng.choice((1, 1, 2, 3)))
            new["chat_template_kwargs"] = {name: rng.choice(_KEYWORDS[name]) for name in names}
        return new

    def _or_wrong(self, value: object) -> Any:
        if self._random.random() >= self._wrong:
            return value
        return self._random.choice((None, 1, 0.5, True, "x", [], {}, [None], ["x"], {"a": 1}))

    def _text(self) -> str:
        n = self._random.choice((1, 1, 1, 2, 3))
        return "".join(self._random.choice(_WORDS) for _ in range(n))

    def _content(self) -> Any:
        rng = self._random
        if rng.random() < 0.2:
            parts = [self._or_wrong(self._part()) for _ in range(rng.choice((0, 1, 2, 3)))]
            return self._or_wrong(parts)
        return self._or_wrong(None if rng.random() < 0.04 else self._text())

    def _part(self) -> Any:
        rng = self._random
        if rng.random() < 0.3:
            return rng.choice((IMAGE, IMAGE, AUDIO, VIDEO, INPUT_VIDEO))
        return text(self._text())

    def _message(self) -> Any:
        rng = self._random
        role = rng.choice(_ROLES)
        new: dict[str, Any] = {"role": self._or_wrong(role), "content": self._content()}
        if role == "assistant":
            if rng.random() < 0.3:
                new["reasoning_content"] = self._or_wrong(self._text())
            if rng.random() < 0.25:
                new["tool_calls"] = self._or_wrong(
                    [self._call() for _ in range(rng.choice((0, 1, 2)))]
                )
                if rng.random() < 0.3:
                    del new["content"]
        if role == "tool":
            new["tool_call_id"] = self._or_wrong(rng.choice(_IDS))
        if role == "tool" or rng.random() < 0.05:
            new["name"] = self._or_wrong(rng.choice(_NAMES))
        if rng.random() < 0.02:
            del new[rng.choice(sorted(new))]
        return self._or_wrong(new)

    def _call(self) -> Any:
        rng = self._random
        new = call(rng.choice(_IDS), rng.choice(_NAMES), self._arguments())
        if rng.random() < 0.2:
            del new["id"]
        new["function"] = self._or_wrong(new["function"])
        return self._or_wrong(new)

    def _arguments(self) -> Any:
        rng = self._random
        if rng.random() < 0.15:
            return self._or_wrong(
                rng.choice(('{"city": "Rome", "n": [1, 2.50, null]}', "{}", " {} "))
            )
        return self._or_wrong({rng.choice(("city", "n", "x y")): self._value(2) for _ in range(2)})

    def _value(self, levels: int) -> Any:
        rng = self._random
        kind = rng.randrange(6 if levels else 4)
        if kind == 0:
            return self._text()
        if kind == 1:
            return rng.choice(_NUMBERS)
        if kind == 2:
            return rng.choice((None, True, False))
        if kind == 3:
            return rng.random() * 10 ** rng.randrange(-8, 20)
        if kind == 4:
            return [self._value(levels - 1) for _ in range(rng.randrange(3))]
        return {self._text(): self._value(levels - 1) for _ in range(rng.randrange(3))}

    def _calling(self) -> list[Any]:
        """Returns a question, tool calls, and their results in any order."""
        rng = self._random
        calls = [self._call() for _ in range(rng.choice((1, 1, 2, 3)))]
        results = [
            {"role": "tool", "content": self._content(), "tool_call_id": rng.choice(_IDS)}
            for _ in calls
        ]
        answer = {"role": "assistant", "content": self._content(), "tool_calls": calls}
        if rng.random() < 0.4:
            answer["reasoning_content"] = self._text()
        return [{"role": "user", "content": self._text()}, answer, *results]

    def _tools(self) -> list[Any]:
        rng = self._random
        tools = rng.sample((WEATHER, CALCULATE, BARE, NESTED), rng.choice((0, 1, 1, 2, 3)))
        return [self._or_wrong({**t, "function": self._tool_function(t)}) for t in tools]

    def _tool_function(self, tool: dict[str, Any]) -> Any:
        rng = self._random
        function = dict(tool["function"])
        for key in ("name", "description", "parameters"):
            if key in function and rng.random() < self._wrong:
                function[key] = self._or_wrong(rng.choice((None, {}, "")))
        return self._or_wrong(function)
