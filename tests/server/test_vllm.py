"""vLLM's endpoints: /tokenize with `prompt` or `messages`, /detokenize, /tokenizer_info."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok.chat import compiled
from tests.server.vllm_models import TEMPLATE, TokenizeResponse, TokenizerInfoResponse
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]


@pytest.fixture
def tok(tmp_path: Any) -> ggtok.Tokenizer:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", TEMPLATE.encode())
    gguf.set("general.architecture", b"llama")
    gguf.set("llama.context_length", 2048, "u32")
    gguf.write(tmp_path / "model.gguf")
    return ggtok.load(tmp_path / "model.gguf")


@pytest.fixture
def ask(serve: Serve, tok: ggtok.Tokenizer) -> Callable[..., TokenizeResponse]:
    client = serve({"m": tok})

    def ask(**body: object) -> TokenizeResponse:
        answer = client.post("/tokenize", json=body)
        assert answer.status_code == 200, answer.text
        return TokenizeResponse.model_validate(answer.json())

    return ask


def test_prompts(ask: Callable[..., TokenizeResponse], tok: ggtok.Tokenizer) -> None:
    for text in "Hi there", "", "<s>Hi</s>":
        found = ask(prompt=text)
        assert found.tokens == tok.encode(text, parse_special=True)
        assert found.count == len(found.tokens)
        assert found.max_model_len == 2048
        assert found.token_strs is None
        found = ask(prompt=text, add_special_tokens=False)
        assert found.tokens == tok.encode(text, add_special=False, parse_special=True)


def test_a_clients_template_is_not_kept(
    ask: Callable[..., TokenizeResponse], monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = [{"role": "user", "content": "Hi"}]
    monkeypatch.setattr(compiled, "_chats", OrderedDict())  # other tests use the same templates
    monkeypatch.setattr(compiled, "_n_bytes", 0)  # and may have filled the cache
    found = ask(messages=messages, chat_template="{{ messages[0].content }} there")
    assert found.count and not compiled._chats
    ask(messages=messages)
    assert len(compiled._chats) == 1


def test_token_texts(ask: Callable[..., TokenizeResponse], tok: ggtok.Tokenizer) -> None:
    found = ask(prompt="Hi there", return_token_strs=True)
    assert found.token_strs == [tok.token_text(id).decode() for id in found.tokens]
    assert found.token_strs[0] == "<s>"
    assert "▁there" in "".join(found.token_strs)


def test_messages(ask: Callable[..., TokenizeResponse], tok: ggtok.Tokenizer) -> None:
    messages = [{"role": "user", "content": "Hi"}]

    def ids(text: str, add_special: bool = False) -> list[int]:
        return tok.encode(text, add_special=add_special, parse_special=True)

    assert ask(messages=messages).tokens == ids("<s><user>Hi</s><assistant>")
    assert ask(messages=messages, add_special_tokens=True).tokens == ids(
        "<s><user>Hi</s><assistant>", True
    )
    assert ask(messages=messages, add_generation_prompt=False).tokens == ids("<s><user>Hi</s>")
    assert ask(messages=messages, chat_template_kwargs={"x": "y"}).tokens == ids(
        "<s><user>Hi<assistant>y"
    )
    assert ask(messages=messages, chat_template="{{ messages[0].content }}").tokens == ids("Hi")
    last = [*messages, {"role": "assistant", "content": "Hel"}]
    assert ask(
        messages=last, continue_final_message=True, add_generation_prompt=False
    ).tokens == ids("<s><user>Hi</s><assistant>Hel")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"prompt": 7}, "prompt must be a string, not a number"),
        ({"prompt": None}, "prompt must be a string, not null"),
        ({"prompt": ["Hi"]}, "prompt must be a string, not an array"),
        ({"prompt": "Hi", "add_special_tokens": "no"}, "add_special_tokens must be a boolean"),
        ({"messages": {}}, "messages must be an array, not an object"),
        ({"messages": []}, "messages"),
        ({"messages": [7]}, r"messages\[0\]"),
        ({"messages": [], "chat_template": 7}, "chat_template must be a string"),
        ({"messages": [{"role": "user", "content": "a"}], "tools": 7}, "tools must be an array"),
        (
            {"messages": [], "continue_final_message": True, "add_generation_prompt": True},
            "Cannot set both",
        ),
        (
            {"messages": [{"role": "user", "content": "a"}], "chat_template": "{% x %}"},
            "line 1",
        ),
    ],
)
def test_errors(body: object, message: str, serve: Serve, tok: ggtok.Tokenizer) -> None:
    answer = serve({"m": tok}).post("/tokenize", json=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    with pytest.raises(AssertionError, match=message):
        raise AssertionError(error.pop("message"))
    assert error == {"type": "BadRequestError", "param": None, "code": 400}


def test_unknown_models(serve: Serve, tok: ggtok.Tokenizer) -> None:
    client = serve({"m": tok, "n": tok})
    answer = client.post("/tokenize", json={"prompt": "Hi", "model": "x"})
    assert answer.status_code == 404
    assert answer.json()["error"]["type"] == "NotFoundError"
    assert answer.json()["error"]["message"] == "unknown model 'x'; known: m, n"
    answer = client.post("/tokenize", json={"prompt": "Hi"})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"].endswith("must name one: m, n")


def test_detokenize(serve: Serve, tok: ggtok.Tokenizer) -> None:
    ids = tok.encode("Hi there")
    answer = serve({"m": tok}).post("/detokenize", json={"tokens": ids}).json()
    assert answer["prompt"] == answer["content"] == "<s> Hi there"


def test_tokenizer_info(serve: Serve, tok: ggtok.Tokenizer) -> None:
    answer = serve({"m": tok, "n": tok}).get("/tokenizer_info?model=m").json()
    TokenizerInfoResponse.model_validate(answer)
    assert answer["bos_token"] == "<s>"
    assert answer["eos_token"] == "</s>"
    assert answer["mask_token"] is None
    assert answer["chat_template"] == TEMPLATE
    assert answer["model_max_length"] == 2048
    answer = serve({"m": tok, "n": tok}).get("/tokenizer_info")
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "BadRequestError"
