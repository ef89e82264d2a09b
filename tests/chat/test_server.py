"""Prompts and ids compared with llama-server's: a sample of what `tests.chat.parity` compares."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime
from functools import partial
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

import ggtok
from ggtok import Tokenizer, load
from tests.chat import answers, parity
from tests.chat.generate import Generator
from tests.chat.llamaserver import ServerError, Servers
from tests.chat.made import TEMPLATES
from tests.chat.requests import REQUESTS, body, user
from tests.support.llamacpp import LlamaCpp
from tests.support.vocabularies import fixture, real

SEED = 19
# llama.cpp's templates: one without a handler, two with handlers, one that rejects many requests.
SAMPLE = ("Qwen-Qwen3-0.6B", "openai-gpt-oss-120b", "google-gemma-4-31B-it", "Kimi-K2-Instruct")
# The tests' own templates for which ggtok changes messages.
# (test_generated_requests_give_the_servers_prompts adds others.)
MADE = (
    "harmony",
    "minimax",
    "gemma, older",
    "deepseek 4",
    "translate gemma",
    "typed",
    "no system",
    "trimmed",
)


@pytest.fixture(scope="module")
def servers(llama: LlamaCpp) -> Iterator[Servers]:
    with Servers(fixture("bpe-llama3"), media=True) as servers:
        yield servers


@pytest.fixture(scope="module")
def tok() -> Tokenizer:
    return load(fixture("bpe-llama3"))


def check(result: parity.Result) -> None:
    assert not result.failures, "\n".join(result.shown)
    assert result.counts["same ids"]


@pytest.mark.full
@pytest.mark.parametrize("name", SAMPLE)
def test_recorded_requests_give_the_servers_prompts(
    name: str,
    servers: Servers,
    tok: Tokenizer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GGTOK_CHAT_ANSWERS", str(tmp_path))
    template = answers.templates()[name]
    record = answers.record(servers, "v", name, template, REQUESTS)
    assert answers.recorded("v", name, template) == record
    assert not answers.missing(record, REQUESTS)
    result = parity.Result()
    for key, answer in record["answers"].items():
        parity.compare(tok, template, answer, key, result)
    check(result)


@pytest.mark.parametrize("name", [*MADE, *random.Random(SEED).sample(sorted(TEMPLATES), 8)])
def test_generated_requests_give_the_servers_prompts(
    name: str, servers: Servers, tok: Tokenizer
) -> None:
    generator = Generator(SEED)
    result = parity.Result()
    template = TEMPLATES[name]
    try:
        server = servers.start(template)
    except ServerError:
        with pytest.raises(ggtok.TemplateError, match="llama-server doesn't start"):
            tok.apply_chat_template([user()], template=template)
        return
    with server:
        for _ in range(25):
            answer = answers.ask(server, generator.body())
            parity.compare(tok, template, answer, answer["body"], result)
    check(result)


def test_templates_that_the_server_rejects_raise_errors(servers: Servers, tok: Tokenizer) -> None:
    for name in ("only with tools", "only without a prompt"):
        with pytest.raises(ServerError, match="didn't start"):
            servers.start(TEMPLATES[name])
        with pytest.raises(ggtok.TemplateError, match="llama-server doesn't start"):
            tok.apply_chat_template([user()], template=TEMPLATES[name])


# Ways in which templates write a call of n with the arguments a, and whether the server can parse
# such a call.
CALLS = {
    """{{ '{"name": "' + n + '", "arguments": ' + a + '}' }}""": False,
    """{"name": "{{ n }}", "arguments": {{ a }}}""": False,
    """{"name": "{{ n }}\"""": False,
    """call: "{{ n }}\"""": False,
    """{"name": "{{ n }}", "limit": NaN}""": False,
    """{{ c | tojson }}{{ c | tojson }}""": False,
    """{{ m | tojson }}""": True,
    """[ {"name": "{{ n }}", "arguments": {{ a | tojson }}} ]""": True,
    """{'name': '{{ n }}', 'arguments': {{ a }}}""": True,
    """{{ n }}({{ a }})""": True,
}


@pytest.mark.parametrize("call", CALLS)
def test_calls_that_look_like_json_must_be(call: str, servers: Servers, tok: Tokenizer) -> None:
    template = (
        "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% for c in m.tool_calls or [] %}"
        "{% set n = c.function.name %}{% set a = c.function.arguments %}"
        + call
        + "{% endfor %}<end>{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}"
    )
    if CALLS[call]:
        with servers.start(template) as server:
            theirs, _ = server.prompt(body(user()))
        assert tok.apply_chat_template([user()], template=template) == theirs
        return
    with pytest.raises(ServerError, match="didn't start"):
        servers.start(template)
    with pytest.raises(ggtok.TemplateError, match="doesn't start with this chat template, because"):
        tok.apply_chat_template([user()], template=template)


def test_answers_that_the_servers_parser_cant_read(servers: Servers, tok: Tokenizer) -> None:
    """Qwen3-Coder's parser rejects the prompt of a template that begins answers in another way."""
    messages = [user(), {"role": "assistant", "content": None}]
    with servers.start(TEMPLATES["qwen coder"]) as server:
        prompt, error = server.prompt(body(*messages))
    assert prompt is None and any(pattern.search(error) for pattern in parity.EXCEPTIONS)
    assert tok.apply_chat_template(messages, template=TEMPLATES["qwen coder"])


def test_dates_are_local(servers: Servers, tok: Tokenizer) -> None:
    template, prompts = TEMPLATES["dates"], set()
    for zone in "Pacific/Kiritimati", "Pacific/Pago_Pago":
        now = partial(datetime.now, ZoneInfo(zone))
        before = tok.apply_chat_template([user()], template=template, clock=now)
        with servers.start(template, zone=zone) as server:
            prompt, _ = server.prompt(body(user()))
        assert prompt in (before, tok.apply_chat_template([user()], template=template, clock=now))
        prompts.add(prompt)
    assert len(prompts) == 2  # the time zones are 25 hours apart


def test_counts_equal_the_servers(servers: Servers, tok: Tokenizer) -> None:
    template = answers.templates()["Qwen-Qwen3-0.6B"]
    messages = [user("One, two"), *REQUESTS["object arguments"]["messages"]]
    with servers.start(template) as server:
        _, counted = server.post("/v1/chat/completions/input_tokens", body(*messages))
    assert tok.count_chat(messages, template=template) == counted["input_tokens"]


def test_the_command_finds_no_differences(
    capsys: pytest.CaptureFixture[str], llama: LlamaCpp
) -> None:
    arguments = ["--vocab", "llama-spm", "--template", "rwkv", "--random", "5"]
    assert parity.main(arguments) == 0
    assert "same ids" in capsys.readouterr().out


def test_the_command_finds_differences(
    capsys: pytest.CaptureFixture[str],
    llama: LlamaCpp,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GGTOK_CHAT_ANSWERS", str(tmp_path))
    name = "llama-cpp-rwkv-world"
    template = answers.templates()[name]
    with Servers(real("llama-spm"), media=True) as servers:
        record = answers.record(servers, "llama-spm", name, template, REQUESTS)
    record["answers"]["user"]["prompt"] += "?"
    record["answers"]["system"]["ids"][-1] += 1
    del record["answers"]["tools"]["prompt"]
    record["answers"]["no role"]["prompt"] = ""
    answers.write("llama-spm", name, record)
    assert parity.main(["--vocab", "llama-spm", "--template", name]) == 1
    printed = capsys.readouterr().out
    for kind in ("other text", "other ids", "only the server refuses", "only ggtok refuses"):
        assert f"1 {kind}" in printed
