"""compare_prompts finds the token at which a prompt's cache ends, and why."""

from __future__ import annotations

import json
import random
import warnings
from datetime import datetime
from typing import Any

import numpy as np
import pytest

import ggtok
from fixtures.build import CHAT
from tests.chat.answers import templates
from tests.chat.requests import CALCULATE, WEATHER, says, user
from tests.support.vocabularies import fixture

DAYS = datetime(2026, 3, 1), datetime(2026, 3, 2)
ROME, PARIS = user("What is the weather in Rome?"), user("And in Paris?")
THOUGHT = says("assistant", "Sunny.", reasoning_content="Let me think about Rome.")

# Templates that write the date; that write tools; and that drop the reasoning of earlier turns.
DATED = (
    "Apertus-8B-Instruct Mistral-Small-3.2-24B-Instruct-2506 fireworks-ai-llama-3-firefunction-v2 "
    "ibm-granite-granite-3.3-2B-Instruct meta-llama-Llama-3.1-8B-Instruct "
    "meta-llama-Llama-3.2-3B-Instruct meta-llama-Llama-3.3-70B-Instruct muse-glimmer "
    "openai-gpt-oss-120b upstage-Solar-Open-100B"
).split()
WITH_TOOLS = (
    "Qwen-Qwen2.5-7B-Instruct Qwen-Qwen3-0.6B Qwen3-Coder GLM-4.6 Kimi-K2-Instruct MiniMax-M2 "
    "google-gemma-4-31B-it meta-llama-Llama-3.1-8B-Instruct openai-gpt-oss-120b "
    "mistralai-Mistral-Nemo-Instruct-2407"
).split()
DROPPING = (
    "Apriel-1.6-15b-Thinker-fixed GLM-4.6 Kimi-K2-Thinking MiniMax-M2 Qwen-Qwen3-0.6B Qwen3.5-4B "
    "StepFun3.5-Flash deepseek-ai-DeepSeek-V3.1 Qwen-QwQ-32B tencent-Hy3"
).split()


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ggtok.VocabWarning)
        return ggtok.load(fixture("bpe-qwen2"))


def compared(
    tok: ggtok.Tokenizer, name: str, a: Any, b: Any, **options: Any
) -> ggtok.PromptComparison:
    return ggtok.compare_prompts(tok, a, b, template=templates()[name], **options)


@pytest.mark.parametrize("name", DATED)
def test_dates_in_templates(tok: ggtok.Tokenizer, name: str) -> None:
    request = {"messages": [ROME]}
    same = compared(tok, name, request, request, times=(DAYS[0], DAYS[0]))
    assert (same.lost, same.a.where, same.b.where) == (0, "end", "end")
    found = compared(tok, name, request, request, times=DAYS)
    assert found.lost > 10 and not found.same_text
    for side, day in ((found.a, 1), (found.b, 2)):
        assert (side.where, side.message) == ("request", None)
        assert str(day) in side.text[:3]


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_the_order_of_tools(tok: ggtok.Tokenizer, name: str) -> None:
    tools = [WEATHER, CALCULATE]
    a, b = ({"messages": [ROME], "tools": order} for order in (tools, tools[::-1]))
    found = compared(tok, name, a, b)
    assert found.lost > 100
    assert (found.a.where, found.b.where) == ("request", "request")
    assert "weather" in found.a.text and "weather" not in found.b.text[:20]


@pytest.mark.parametrize("name", DROPPING)
def test_dropped_reasoning(tok: ggtok.Tokenizer, name: str) -> None:
    """The template writes the reasoning of the last turn only."""
    a = {"messages": [ROME, THOUGHT], "add_generation_prompt": False}
    found = compared(tok, name, a, {"messages": [ROME, THOUGHT, PARIS]})
    shown = found.a.text, found.b.text
    assert found.lost > 5
    assert "think about Rome" in shown[0] and "think about Rome" not in shown[1]
    assert "Sunny" in shown[1]


@pytest.mark.parametrize("name", DROPPING)
def test_answers_that_are_tokenized_again(tok: ggtok.Tokenizer, name: str) -> None:
    """The model wrote the answer with other tokens than its text has."""
    messages = [ROME, says("assistant", "kettle on fire"), PARIS]
    request = {"messages": messages}
    ids = tok.encode_chat(messages, template=templates()[name])
    answer = tok.encode("kettle", add_special=False)
    at = next(
        i for i in range(len(ids)) if ids[i : i + len(answer)] == answer and tok.decode(ids[i:])
    )
    letters = [id for c in "kettle" for id in tok.encode(c, add_special=False)]
    generated = [*ids[:at], *letters, *ids[at + len(answer) :]]
    found = compared(tok, name, generated, request)
    shared = next(i for i, pair in enumerate(zip(ids, generated, strict=False)) if len({*pair}) > 1)
    assert found.same_text and found.common == shared
    assert found.a.where == "ids" and found.a.ids[0] == generated[shared]
    assert (found.b.where, found.b.message) == ("messages[1].content", 1)


@pytest.mark.parametrize("name", WITH_TOOLS)
def test_trimmed_turns(tok: ggtok.Tokenizer, name: str) -> None:
    turns = [ROME, says("assistant", "Sunny."), PARIS]
    found = compared(tok, name, {"messages": turns}, {"messages": turns[2:]})
    assert found.lost > 10
    for side, text in ((found.a, "What is the weather"), (found.b, "And in Paris")):
        assert (side.where, side.message, side.field) == ("messages[0].content", 0, "content")
        assert side.text.startswith(text[:3])


def test_a_prompt_that_grows_loses_nothing() -> None:
    tok = ggtok.load(CHAT)
    turns = [ROME, says("assistant", "Sunny."), PARIS]
    found = ggtok.compare_prompts(
        tok, {"messages": turns[:1]}, json.dumps({"messages": turns}).encode()
    )
    n = tok.count_chat(turns[:1])
    assert (found.common, found.lost, found.a.n_tokens) == (n, 0, n)
    assert (found.a.where, found.a.text, found.a.ids) == ("end", "", ())
    assert found.b.where == "messages[1].content" and found.b.text.startswith("Sunny.")


def test_texts_and_ids(tok: ggtok.Tokenizer) -> None:
    rng = random.Random(3)
    for _ in range(200):
        a, b = (tuple(rng.randrange(3) for _ in range(rng.randrange(5))) for _ in range(2))
        found = ggtok.compare_prompts(tok, a, np.array(b, np.int32))
        n = next((i for i, pair in enumerate(zip(a, b, strict=False)) if pair[0] != pair[1]), None)
        assert found.common == (min(len(a), len(b)) if n is None else n)
        assert found.lost == len(a) - found.common
        assert found.a.ids == a[found.common :][:8] and found.b.n_tokens == len(b)
    texts = "the kettle is on", "the kettle was on"
    by_text = ggtok.compare_prompts(tok, *texts)
    by_ids = ggtok.compare_prompts(tok, *(tok.encode(t, parse_special=True) for t in texts))
    assert by_text.common == by_ids.common and by_text.a.ids == by_ids.a.ids
    assert (by_text.a.where, by_ids.a.where) == ("text", "ids")
    assert by_text.a.text == " is on"[6 - len(by_text.a.text) :]
    assert ggtok.compare_prompts(tok, '{"a": 1}', b'{"a": 2}').a.where == "text"
    assert ggtok.compare_prompts(tok, "{", "{").a.where == "end"


def test_lists_of_messages(tok: ggtok.Tokenizer) -> None:
    messages = [{"role": "user", "content": "Is the kettle on?"}]
    request = {"messages": messages}
    for other in messages, tuple(messages), json.dumps(messages), json.dumps(request).encode():
        found = ggtok.compare_prompts(tok, request, other)
        assert (found.common, found.lost) == (tok.count_chat(messages), 0)
    text = json.dumps([{"content": "x"}])
    assert ggtok.compare_prompts(tok, text, text).a.n_tokens == tok.count(text, parse_special=True)


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        (3, "a must be a request, a text or token ids, not int"),
        ({}, "a: the request has no messages"),
        ([1 << 20], "a"),
        ([1.5], "a"),
    ],
)
def test_wrong_prompts(tok: ggtok.Tokenizer, prompt: Any, message: str) -> None:
    with pytest.raises(ggtok.ArgumentError, match=message):
        ggtok.compare_prompts(tok, prompt, "x")
    with pytest.raises(ggtok.InvalidTypeError, match=r"tok must be a ggtok\.Tokenizer"):
        ggtok.compare_prompts("x", "x", "x")  # type: ignore[arg-type]
