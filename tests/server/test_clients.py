"""Tests the endpoints with popular client libraries. These need pip install ".[test-clients]", and
pip install --no-deps lm_eval."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

import ggtok
from tests.chat.requests import WEATHER
from tests.server.running import running
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
MESSAGES = [{"role": "user", "content": "Is the kettle on?"}]


@pytest.fixture(scope="module")
def tok(tmp_path_factory: pytest.TempPathFactory) -> ggtok.Tokenizer:
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", TEMPLATE.encode())
    gguf.write(path)
    return ggtok.load(path)


@pytest.fixture(scope="module")
def url(tok: ggtok.Tokenizer) -> Iterator[str]:
    with running({"m": tok}, api_keys=["key"]) as url:
        yield url


def test_anthropic(url: str, tok: ggtok.Tokenizer) -> None:
    anthropic = pytest.importorskip("anthropic")
    client = anthropic.Anthropic(base_url=url, api_key="key")
    found = client.messages.count_tokens(model="m", messages=MESSAGES, system="Be brief.")
    system = {"role": "system", "content": "Be brief."}
    assert found.input_tokens == tok.count_chat([system, *MESSAGES], trusted=True)
    tool = {"name": "f", "description": "d", "input_schema": {"type": "object"}}
    used = {"type": "tool_use", "id": "c", "name": "f", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "c", "content": "1"}
    more = [
        *MESSAGES,
        {"role": "assistant", "content": [used]},
        {"role": "user", "content": [result, {"type": "text", "text": "So?"}]},
    ]
    found = client.messages.count_tokens(model="m", messages=more, tools=[tool])
    assert found.input_tokens > tok.count_chat(MESSAGES, trusted=True)
    with pytest.raises(anthropic.NotFoundError, match="unknown model 'claude'; known: m"):
        client.messages.count_tokens(model="claude", messages=MESSAGES)
    with pytest.raises(anthropic.AuthenticationError):
        anthropic.Anthropic(base_url=url, api_key="no").messages.count_tokens(
            model="m", messages=MESSAGES
        )


def test_openai(url: str, tok: ggtok.Tokenizer) -> None:
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"{url}/v1", api_key="key")
    assert [model.id for model in client.models.list()] == ["m"]
    count = client.responses.input_tokens.count
    found = count(model="m", input="Is the kettle on?")
    assert found.input_tokens == tok.count_chat(MESSAGES, trusted=True)
    tool = {**WEATHER["function"], "type": "function"}
    found = count(model="m", input=MESSAGES, tools=[tool], instructions="Be brief.")
    assert found.object == "response.input_tokens"
    with pytest.raises(openai.BadRequestError, match="previous_response_id"):
        count(model="m", input="Hi", previous_response_id="r")


def test_lm_eval(url: str, tok: ggtok.Tokenizer) -> None:
    utils = pytest.importorskip("lm_eval.utils")
    base = f"{url}/v1/completions"
    assert utils.check_remote_tokenizer_support(base, auth_token="key")
    remote = utils.RemoteTokenizer(base, auth_token="key")
    ids = tok.encode("Is the kettle on?", add_special=False)
    assert remote.encode("Is the kettle on?") == ids
    assert remote.decode(ids) == tok.decode(ids, clean_spaces=False)
    assert (remote.bos_token_id, remote.eos_token_id) == (tok.bos_id, tok.eos_id)
    prompt = tok.apply_chat_template(MESSAGES, like="transformers", add_generation_prompt=True)
    assert remote.apply_chat_template(MESSAGES, bos_token="<s>") == prompt


def test_litellm(url: str, tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")  # otherwise litellm downloads it
    litellm = pytest.importorskip("litellm")

    def count(provider: str, base: str) -> Any:
        return asyncio.run(
            litellm.acount_tokens(
                model=f"{provider}/m", messages=MESSAGES, api_base=base, api_key="key"
            )
        )

    for provider, base in ("anthropic", url), ("openai", f"{url}/v1"):
        found = count(provider, base)
        assert found.total_tokens == tok.count_chat(MESSAGES, trusted=True)
        assert not found.error
