"""The conversations that the chat tests render."""

from __future__ import annotations

from typing import Any

from tests.chat import requests
from tests.chat.requests import CALCULATE, call, says

# A function that declares a return type, which some templates render.
WEATHER = {
    "type": "function",
    "function": {**requests.WEATHER["function"], "return": {"type": "string"}},
}
TOOLS = [WEATHER, CALCULATE]

# A word that occurs in no template; tests replace it with hostile text.
WORD = "Wintermute"

CONVERSATIONS: dict[str, list[dict[str, Any]]] = {
    "none": [],
    "user": [says("user", f"Hello, {WORD}!")],
    "system": [says("system", f"Be brief, {WORD}."), says("user", "Hi")],
    "system only": [says("system", f"Be brief, {WORD}.")],
    "developer": [says("developer", f"Be brief, {WORD}."), says("user", "Hi")],
    "many turns": [
        says("system", "You answer\nin two lines.\n"),
        says("user", "  What is 1 + 1? "),
        says("assistant", f"2\n{WORD}\n\n"),
        says("user", f"And {WORD}?\n"),
        says("assistant", "\n\t4"),
        says("user", "Thanks"),
    ],
    "assistant last": [says("user", "Hi"), says("assistant", f"Hello, {WORD}.")],
    "empty texts": [says("system", ""), says("user", ""), says("assistant", ""), says("user", " ")],
    "no content": [says("user", "Hi"), says("assistant", None), {"role": "user", "content": WORD}],
    "unicode": [
        says("user", f"Grüße, 你好, \U0001f44d\u200d, e\u0301, \u00a0 {WORD} \u2028 end"),
        says("assistant", "\ufeff\u043c\u0438\u0440 \U000e0041 \x00 \x07 \r\n"),
        says("user", "\u0130I\u0131 ﬀ ß"),
    ],
    "reasoning": [
        says("user", "Why?"),
        says("assistant", f"Because, {WORD}.", reasoning_content=f"Let me think, {WORD}\nso.\n"),
        says("user", "And then?"),
        says("assistant", "Then.", reasoning="Hm.", thinking="Hmm."),
        says("user", "OK"),
    ],
    "reasoning inside": [
        says("user", "Why?"),
        says("assistant", f"<think>\nLet me see, {WORD}\n</think>\n\nBecause."),
        says("user", f"And </think> then {WORD}?"),
    ],
    "tool calls": [
        says("system", "Use tools."),
        says("user", f"Weather in {WORD}?"),
        says(
            "assistant", "", tool_calls=[call("abcdefgh1", "get_weather", {"city": f"São {WORD}"})]
        ),
        says(
            "tool",
            '{"temperature": 21.5, "sky": "<clear>"}',
            tool_call_id="abcdefgh1",
            name="get_weather",
        ),
        says("assistant", f"It is 21.5 °C, {WORD}."),
        says("user", "And 2 + 2?"),
    ],
    "parallel calls": [
        says("user", "Both"),
        says(
            "assistant",
            "I call.",
            reasoning_content="Two calls.",
            tool_calls=[
                call("abcdefgh1", "get_weather", {"city": "Rome", "unit": "C"}),
                call(
                    "abcdefgh2",
                    "calculate",
                    {"expression": f"2 < 3 && '{WORD}'", "n": [1, 2.5, None]},
                ),
            ],
        ),
        says("tool", f"sunny {WORD}", tool_call_id="abcdefgh1", name="get_weather"),
        says("tool", "True", tool_call_id="abcdefgh2", name="calculate"),
    ],
    "blocks": [
        says("user", [{"type": "text", "text": f"One, {WORD}"}, {"type": "text", "text": "two"}]),
        says("assistant", [{"type": "text", "text": "three"}]),
        says("user", "four"),
    ],
    "wrong order": [says("assistant", "First"), says("assistant", WORD), says("user", "Last")],
    "strange role": [says("wizard", "Abracadabra"), says("user", WORD)],
}

# Pairs of tools and variables for the template.
SETTINGS: dict[str, tuple[list[dict[str, Any]] | None, dict[str, Any]]] = {
    "plain": (None, {}),
    "tools": (TOOLS, {}),
    "thinking": (None, {"enable_thinking": True, "thinking": True, "reasoning_effort": "high"}),
    "no thinking": (TOOLS, {"enable_thinking": False, "date_string": "1 Jan 2030"}),
    "documents": (None, {"documents": [{"title": WORD, "text": "Of <b>it</b>"}]}),
}


def replaced(value: Any, old: str, new: str) -> Any:
    """Returns a copy of the value with `new` instead of `old` in all texts."""
    if isinstance(value, str):
        return value.replace(old, new)
    if isinstance(value, dict):
        return {key: replaced(item, old, new) for key, item in value.items()}
    if isinstance(value, list):
        return [replaced(item, old, new) for item in value]
    return value
