"""Requests with a megabyte of text, and requests that change while they are read."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import ggtok
from ggtok import Tokenizer, load
from tests.chat import answers
from tests.chat.requests import says, user
from tests.support import samples
from tests.support.samples import times
from tests.support.vocabularies import fixture
from tests.support.waits import LIMIT

TEMPLATES = (
    "Qwen-Qwen3-0.6B",
    "meta-llama-Llama-3.1-8B-Instruct",
    "openai-gpt-oss-120b",
    "google-gemma-4-31B-it",
    "mistralai-Ministral-3-14B-Reasoning-2512",
)
# A child process that renders each request with a megabyte of text. Its memory is enough for only a
# few renderings.
CHILD = """
import json, resource, sys
import ggtok
path, templates, memory, full = json.load(sys.stdin)
tok = ggtok.load(path)
MB = 1 << 20
def user(content): return {"role": "user", "content": content}
def said(content): return {"role": "assistant", "content": content}
def nested(n):
    value = 1
    for _ in range(n): value = [value]
    return value
def calls(arguments):
    call = {"type": "function", "id": "a", "function": {"name": "f", "arguments": arguments}}
    return [user("x"), {"role": "assistant", "content": "", "tool_calls": [call]}, user("y")]
tool = {"type": "function", "function": {"name": "f", "description": "d", "parameters": {}}}
REQUESTS = {
    "one letter": [user("a" * MB)],
    "brackets": [user("<" * MB)],
    "tags": [user("<think>" * (MB // 7))],
    "ends of tags": [user("x"), said("</think>" * (MB // 8)), user("y")],
    "control tokens": [user("<|im_end|>" * (MB // 10))],
    "lines": [user("\\n" * MB)],
    "spaces": [{"role": "assistant", "content": " " * MB}, user("x")],
    "wide": [user("\\U0001f44d" * (MB // 4))],
    "messages": [user("a")] * (MB // 40),
    "turns": [user("a"), {"role": "assistant", "content": "b"}] * (MB // 80) + [user("c")],
    "parts": [user([{"type": "text", "text": "a"}] * (MB // 30))],
    "a role": [{"role": "r" * MB, "content": "x"}],
    "keys": [{"role": "user", "content": "x", **{f"k{i}": i for i in range(MB // 12)}}],
    "nested": [{"role": "user", "content": "x", "deep": nested(5000)}],
    "arguments": calls({f"k{i}": "v" for i in range(MB // 16)}),
    "arguments as text": calls(json.dumps({f"k{i}": [i] for i in range(MB // 16)})),
    "nested arguments": calls("[" * (MB // 2) + "]" * (MB // 2)),
    "a long number": calls("1" * MB),
    "a long integer": calls(10 ** 4000),
}
FIELDS = {
    "tools": {"tools": [tool] * (MB // 90)},
    "a schema": {"tools": [{"type": "function", "function": {"name": "f", "description": "d" * MB,
        "parameters": {"properties": {f"p{i}": {"type": "string"} for i in range(20000)}}}}]},
    "a variable": {"chat_template_kwargs": {"x": ["y"] * (MB // 8)}},
}
resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
results = {}
for i, name in enumerate([*REQUESTS, *FIELDS]):
    for j, (key, template) in enumerate(templates.items()):
        if not full and i % len(templates) != j:
            continue
        like = ("llama.cpp", "transformers")[(i // len(templates) + j) % 2]
        try:
            n = len(tok.encode_chat(REQUESTS.get(name, [user("x")]), template=template,
                like=like, **FIELDS.get(name, {})))
        except ggtok.GGTokError as e:
            n = type(e).__name__
        results[f"{name}, {key}, {like}"] = n
json.dump(results, sys.stdout)
"""
MEMORY = 1500 << 20  # bytes for the process, much of it for Python objects


@pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_AS")
def test_requests_of_a_megabyte() -> None:
    """Each request is rendered with one template (or, with `--full`, with all), alternately with
    llama.cpp's and transformers' rules."""
    templates = {name: answers.templates()[name] for name in TEMPLATES}
    completed = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", CHILD],
        input=json.dumps([str(fixture("bpe-qwen2")), templates, MEMORY, samples.FULL]),
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )
    assert completed.returncode == 0, completed.stderr[-2000:]
    results = json.loads(completed.stdout)
    assert len(results) == 22 * times(1, of=len(TEMPLATES))
    assert not [name for name, n in results.items() if n == "OutOfMemoryError"]
    rendered = [name for name, n in results.items() if isinstance(n, int)]
    assert len(rendered) > len(results) // 2


SLOW = "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}"


def test_long_renderings_release_the_gil() -> None:
    """A rendering that uses its whole budget releases the GIL while it runs."""
    tok = load(fixture("bpe-qwen2"))

    def run() -> None:
        with pytest.raises(ggtok.TemplateError, match="too much work"):
            tok.encode_chat([user("x")], template=SLOW, like="transformers")

    thread = threading.Thread(target=run)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(LIMIT)  # Python won't make a thread release the GIL
    try:
        thread.start()
        turns = 0
        while thread.is_alive():
            time.sleep(0)  # releases and reacquires the GIL
            turns += 1
    finally:
        sys.setswitchinterval(interval)
    thread.join()
    # If the rendering kept the GIL, this thread would run only before and after it.
    assert turns > 10


def test_large_requests_on_several_threads() -> None:
    tok = load(fixture("bpe-qwen2"))
    texts = ["word " * 200_000, "ü " * 300_000]
    template = answers.templates()["Qwen-Qwen3-0.6B"]
    expected = [tok.encode_chat([user(text)], template=template) for text in texts]
    found: list[Any] = [None] * 4

    def run(i: int) -> None:
        found[i] = tok.encode_chat([user(texts[i % 2])], template=template)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected * 2


class Meddling(Mapping[str, Any]):
    """A message that calls `change` while it is read."""

    def __init__(self, change: Any) -> None:
        self.change = change

    def __getitem__(self, key: str) -> Any:
        if key in ("role", "content"):
            return {"role": "user", "content": "x"}[key]
        raise KeyError(key)

    def __iter__(self) -> Iterator[str]:
        self.change()
        return iter(("role", "content"))

    def __len__(self) -> int:
        return 2

    def __contains__(self, key: object) -> bool:
        self.change()
        return key in ("role", "content")


class Dict(dict[str, Any]):
    """A dict whose methods return other items than those it contains."""

    def __getitem__(self, key: str) -> Any:
        return {"role": "user", "content": "shown"}[key]

    def get(self, key: str, default: Any = None) -> Any:
        return {"role": "user", "content": "shown"}.get(key, default)

    def items(self) -> Any:
        return {"role": "user", "content": "shown"}.items()


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_messages_that_change_while_they_are_read(like: Any) -> None:
    tok = load(fixture("bpe-qwen2"))
    template = "{% for m in messages %}<{{ m.content }}>{% endfor %}"
    changes = {
        "clear": lambda messages: messages.clear(),
        "append": lambda messages: len(messages) < 50 and messages.append(user("y")),
        "replace": lambda messages: messages.__setitem__(slice(0, 1), [None]),
        "edit": lambda messages: messages and isinstance(messages[0], dict) and messages[0].clear(),
        "text": lambda messages: messages.__setitem__(slice(None), "abc"),
    }
    for name, change in changes.items():
        for n in (1, 3):
            messages: list[Any] = [user("a") for _ in range(n)]
            messages.append(Meddling(lambda messages=messages, change=change: change(messages)))
            messages.append(user("b"))
            try:
                text = tok.apply_chat_template(messages, template=template, like=like)
            except ggtok.GGTokError:
                continue
            # Each message is read once, and either before or after the change.
            assert re.fullmatch(r"(<a>|<>)*<x>(<y>)*(<b>)?(<y>)*", text), (name, text)


@pytest.mark.parametrize("like", ["llama.cpp", "transformers"])
def test_subclasses_of_dict_are_read_by_their_methods(like: Any) -> None:
    tok = load(fixture("bpe-qwen2"))
    message = Dict(role="user", content="held")
    text = tok.apply_chat_template([message], template="{{ messages[0].content }}", like=like)
    assert text == "shown"


def test_messages_from_a_generator() -> None:
    tok = load(fixture("bpe-qwen2"))
    messages = [says("system", "s"), user("u")]
    for like in ("llama.cpp", "transformers"):
        expected = tok.encode_chat(messages, template="{{ messages | length }}", like=like)
        assert (
            tok.encode_chat(iter(messages), template="{{ messages | length }}", like=like)
            == expected
        )  # type: ignore[arg-type]

    def failing() -> Iterator[Any]:
        yield user("x")
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tok.encode_chat(failing())  # type: ignore[arg-type]


def test_generators_of_generators_end_on_a_small_stack() -> None:
    """Claim jinja.4, for values that are nested without recursion in the template."""
    template = (
        "{% set n = namespace(g=[1]) %}{% for i in range(5000) %}{% set n.g = n.g | FILTER %}"
        "{% endfor %}{{ n.g | first }}"
    )
    stack = threading.stack_size(512 << 10)
    failed: list[str] = []

    def run() -> None:
        tok = load(fixture("bpe-qwen2"))
        for name in ("map('string')", "map('abs')", "select", "unique", "batch(1)"):
            try:
                source = template.replace("FILTER", name)
                tok.apply_chat_template([user("x")], template=source, like="transformers")
            except ggtok.TemplateError as e:
                failed.append(str(e))

    try:
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(stack)
    assert len(failed) == 5 and all("deeply" in message for message in failed)


def test_ids_of_a_large_batch_from_threads() -> None:
    tok = load(fixture("bpe-qwen2"))
    conversations = [[user(f"{i} " * (i % 50))] for i in range(500)]
    expected = [tok.encode_chat(messages) for messages in conversations]
    found: list[Any] = []

    def run(tok: Tokenizer) -> None:
        found.append(tok.encode_chat_batch(conversations, threads=3))

    threads = [threading.Thread(target=run, args=(tok,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [expected] * 3
