"""trim_chat removes the oldest turns, but no more than necessary."""

from __future__ import annotations

import random
from typing import Any

import pytest

import ggtok
from fixtures.build import CHAT
from tests.chat.requests import TOOLS, says, user

SYSTEM = {"role": "system", "content": "Answer in one sentence."}


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(CHAT)


def trimmed_naively(tok: ggtok.Tokenizer, messages: list[Any], budget: int, **options: Any) -> Any:
    """Drops the oldest turn until the rest fits, or returns None if the last turn doesn't fit."""
    kept = list(messages)
    while tok.count_chat(kept, **options) > budget:
        turns = [n for n, message in enumerate(kept) if message["role"] == "user"]
        if len(turns) < 2:
            return None
        del kept[turns[0] : turns[1]]
    return kept


def test_the_oldest_turns_are_dropped(tok: ggtok.Tokenizer) -> None:
    rng = random.Random(4)
    for _ in range(20):
        messages: list[Any] = [SYSTEM][: rng.randrange(2)]
        for i in range(rng.randrange(1, 9)):
            messages.append(user(f"question {i} " * rng.randrange(1, 5)))
            messages += [says("assistant", f"part {k}") for k in range(rng.randrange(3))]
        messages.append(user("the last one"))
        before = list(messages)
        for budget in (*range(20, 220, 25), 10_000):
            options = {"add_generation_prompt": bool(budget % 2)}
            want = trimmed_naively(tok, messages, budget, **options)
            if want is None:
                with pytest.raises(
                    ggtok.InvalidValueError, match=f"more than the budget of {budget}"
                ):
                    ggtok.trim_chat(tok, messages, budget, **options)
                continue
            kept = ggtok.trim_chat(tok, messages, budget, **options)
            assert kept == want
            assert kept is not messages and messages == before
            assert all(any(one is message for message in messages) for one in kept)


def test_the_function_is_the_method(tok: ggtok.Tokenizer) -> None:
    messages = [user("one " * 30), says("assistant", "x"), user("two")]
    n = tok.count_chat(messages) - 1
    assert tok.trim_chat(messages, n) == ggtok.trim_chat(tok, messages, n) == messages[2:]
    with pytest.raises(ggtok.InvalidTypeError, match=r"tok must be a ggtok.Tokenizer, not str"):
        ggtok.trim_chat("x", messages, n)  # type: ignore[arg-type]


def test_system_messages_and_tools_are_kept(tok: ggtok.Tokenizer) -> None:
    assert ggtok.trim_chat(tok, iter([SYSTEM, user("Hi")]), 100) == [SYSTEM, user("Hi")]
    n = tok.count_chat([SYSTEM])
    assert ggtok.trim_chat(tok, [SYSTEM], n) == [SYSTEM]
    with pytest.raises(ggtok.InvalidValueError, match=f"have {n} tokens"):
        ggtok.trim_chat(tok, [SYSTEM], n - 1)
    listed = "{% for m in messages %}{{ m.content }}{% endfor %}{{ tools | length }}"
    talk = [user("one"), says("assistant", "two"), user("three")]
    options: dict[str, Any] = {"template": listed, "continue_final_message": False}
    n = tok.count_chat(talk, tools=TOOLS, **options)
    assert ggtok.trim_chat(tok, talk, n - 1, tools=iter(TOOLS), **options) == talk[2:]


def test_wrong_arguments_raise_errors(tok: ggtok.Tokenizer) -> None:
    talk = [user("Hi")]
    with pytest.raises(ggtok.InvalidTypeError, match=r"tok must be a ggtok\.Tokenizer, not str"):
        ggtok.trim_chat("model.gguf", talk, 9)  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidTypeError, match="budget must be an integer, not str"):
        ggtok.trim_chat(tok, talk, "9")  # type: ignore[arg-type]
    with pytest.raises(ggtok.InvalidValueError, match="known="):
        ggtok.trim_chat(tok, talk, 9, known=(1, [2]))
    with pytest.raises(ggtok.InvalidTypeError, match="did you mean"):
        ggtok.trim_chat(tok, talk, 99, add_generation_promt=True)
    for wrong in (5, "Hi", [5]):
        with pytest.raises(ggtok.InvalidTypeError, match="messages"):
            ggtok.trim_chat(tok, wrong, 99)  # type: ignore[arg-type]
