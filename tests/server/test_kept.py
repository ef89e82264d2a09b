"""How many tokens of a prompt an earlier one begins with: what ``serve --upstream`` reports."""

from __future__ import annotations

import random
from array import array
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.server.kept import EarlierPrompts
from tests.chat.llamaserver import Server, write_model
from tests.server.running import ask, numbers, running
from tests.server.upstreams import COMPLETION, MESSAGES, Other, n, other, passing, tok
from tests.support.vocabularies import fixture

__all__ = ["n", "other", "tok"]  # fixtures

KEPT = "x-prompt-tokens-kept"
TEMPLATE = "{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"


# ---- the store ----


def common(a: array[int], b: array[int]) -> int:
    n = 0
    while n < min(len(a), len(b)) and a[n] == b[n]:
        n += 1
    return n


def test_the_longest_prefix_is_found() -> None:
    """Up to 16 prompts, no prompt is forgotten."""
    draw = random.Random(1)
    for _ in range(200):
        store = EarlierPrompts()
        earlier: list[array[int]] = []
        for _ in range(16):
            ids = array("i", draw.choices(range(2), k=draw.randrange(12)))
            assert store.add("m", [], ids) == max((common(ids, e) for e in earlier), default=0)
            earlier.append(ids)
        assert store.n_tokens == sum(map(len, earlier))


def test_long_prompts_are_compared_to_the_first_difference() -> None:
    store, ids = EarlierPrompts(), array("i", range(50_000))
    store.add("m", [], ids)
    for at in 0, 1, 4095, 4096, 4097, 49_999:
        changed = array("i", ids)
        changed[at] = -1
        assert store.add("m", [], changed) == at
    assert store.add("m", [], ids[:4096]) == 4096


def test_a_conversation_takes_one_place() -> None:
    store = EarlierPrompts()
    store.add("m", [], array("i", [7, 7]))
    for length in range(1, 100):
        assert store.add("m", [], array("i", range(length))) == length - 1
    assert store.add("m", [], array("i", [7, 7])) == 2
    for other_id in range(16):  # other prompts take its place
        store.add("m", [], array("i", [100 + other_id]))
    assert store.add("m", [], array("i", range(99))) == 0


def test_models_and_keys_have_their_own_prompts() -> None:
    store, ids = EarlierPrompts(), array("i", [1, 2, 3])
    owners: list[tuple[str | None, list[bytes]]] = [
        *[("m", []), ("n", []), (None, []), ("m", [b"k"]), ("m", [b"k", b"k"]), ("mk", [])],
        *[("m", [b"kk"]), ("\ud800", []), ("m", [b""])],
    ]
    assert [store.add(model, keys, ids) for model, keys in owners] == [0] * len(owners)
    assert [store.add(model, keys, ids) for model, keys in owners] == [3] * len(owners)


def test_the_size_is_bounded() -> None:
    """The owner that asked longest ago loses its prompts first, whatever the number of owners."""
    most = 100_000
    store = EarlierPrompts(most)
    for owner in range(1000):
        store.add(str(owner), [], array("i", range(10)))
        assert 0 < store.size <= most
        store.add("often", [], array("i", range(1000)))
    assert store.add("often", [], array("i", [0])) == 1
    assert store.add("999", [], array("i", [0])) == 1
    assert store.add("0", [], array("i", [0])) == 0
    store.add("large", [], array("i", bytes(4 * most)))
    assert store.size == 0
    store.add("large", [], array("i", [0]))
    assert 0 < store.size < 1000


# ---- the proxy ----


def conversation(*texts: str) -> list[dict[str, str]]:
    return [
        {"role": ("user", "assistant")[at % 2], "content": text} for at, text in enumerate(texts)
    ]


def test_the_header_and_the_metrics(other: Other, tok: ggtok.Tokenizer) -> None:
    def prompt(*texts: str) -> list[int]:
        return tok.encode_chat(conversation(*texts), trusted=True)

    first, second = ("Is the kettle on?",), ("Is the kettle on?", "It is.", "Thanks")
    kept = common(array("i", prompt(*first)), array("i", prompt(*second)))
    changed = common(array("i", prompt("Is the stove on?")), array("i", prompt(*second)))
    assert 0 < changed < kept
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    with_image = [{"role": "user", "content": [{"type": "text", "text": "Look"}, image]}]
    plain = common(array("i", prompt(*second)), array("i", tok.encode("Is the kettle on?")))
    cases: list[tuple[str, Any, str | None]] = [
        (COMPLETION, {"messages": conversation(*first)}, "0"),
        (COMPLETION, {"messages": conversation(*second)}, str(kept)),
        (COMPLETION, {"messages": conversation("Is the stove on?")}, str(changed)),
        ("/v1/messages", {"messages": conversation(*second)}, str(len(prompt(*second)))),
        (COMPLETION, {"messages": conversation(*second), "model": "m"}, "0"),
        (COMPLETION, {"messages": with_image}, None),
        ("/completion", {"prompt": "Is the kettle on?"}, str(plain)),
        ("/completion", {"prompt": ["a", "b"]}, None),
        ("/completion", {"prompt": [[5, 6, 7, 8]]}, "0"),
        ("/completions", {"prompt": [5, 6, 7, 9]}, "3"),
        ("/completions", {"prompt": [5, 1 << 40]}, "1"),
        ("/api/generate", {"prompt": "Is the kettle on?"}, str(len(prompt(*first)))),
        (COMPLETION, {"messages": 7}, None),
    ]
    with passing(other, {"m": tok}, count_header=True, image_tokens=7) as url:
        n_tokens = n_kept = 0
        for path, body, expected in cases:
            _, headers, _ = ask(url, "POST", path, body)
            assert headers.get(KEPT) == expected, (path, body)
            if expected is not None:
                n_tokens += int(headers["x-prompt-tokens"])
                n_kept += int(expected)
        found = numbers(ask(url, "GET", "/metrics")[2].decode())
        assert found["ggtok_prompt_tokens_total"] == n_tokens
        assert found["ggtok_prompt_tokens_kept_total"] == n_kept
        assert 0 < found["ggtok_earlier_prompts_bytes"] < 10_000


def test_keys_have_their_own_prompts(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    with passing(other, {"m": tok}, count_header=True, api_keys=["a", "b"]) as url:
        found = [
            ask(url, "POST", COMPLETION, {"messages": MESSAGES}, headers=headers)[1].get(KEPT)
            for headers in (
                *({"Authorization": "Bearer a"}, {"Authorization": "Bearer b"}),
                *({"Authorization": "Bearer a"}, {"Authorization": "Bearer c"}),
            )
        ]
    assert found == ["0", "0", str(n), None]


def test_refused_prompts_are_not_stored(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    with passing(other, {"m": tok}, count_header=True, limit=n) as url:
        for _ in range(2):
            assert ask(url, "POST", COMPLETION, {"messages": MESSAGES})[0] == 400
        assert numbers(ask(url, "GET", "/metrics")[2].decode())["ggtok_prompt_tokens_total"] == 0


def test_the_upstream_header_is_replaced(other: Other, tok: ggtok.Tokenizer) -> None:
    other.headers = [(KEPT.encode(), b"99")]
    with passing(other, {"m": tok}, count_header=True) as url:
        assert ask(url, "POST", COMPLETION, {"messages": MESSAGES})[1][KEPT] == "0"


# ---- a live server ----


def test_llama_server_keeps_as_many(tmp_path: Path) -> None:
    """llama-server always processes a prompt's last token, to get its logits."""
    pytest.importorskip("xllamacpp")
    model = write_model(
        fixture("bpe-llama3"),
        tmp_path / "model.gguf",
        {"tokenizer.chat_template": TEMPLATE.encode()},
    )
    texts = "Is the kettle on?", "It is.", "Thanks. And the stove?", "No.", "Good"
    requests = [conversation(*texts[:n]) for n in (1, 3, 5)]
    requests.append(conversation("Is the stove on?", *texts[1:]))
    requests.append(conversation(*texts[:2], "Well?"))
    requests.append(conversation(*texts[:2], "Well?"))
    with (
        Server(model, TEMPLATE) as live,
        running({"m": model}, upstream=live.url, count_header=True) as url,
    ):
        for messages in requests:
            body = {"messages": messages, "max_tokens": 1, "model": "m"}
            status, headers, answer = ask(url, "POST", COMPLETION, body)
            assert status == 200, answer
            n_prompt = answer["usage"]["prompt_tokens"]
            assert headers["x-prompt-tokens"] == str(n_prompt)
            cached = answer["usage"]["prompt_tokens_details"]["cached_tokens"]
            assert cached == min(int(headers[KEPT]), n_prompt - 1)
