"""The endpoints that are proposed for Ollama, and those of KoboldCpp, llama-cpp-python,
text-generation-webui and tabbyAPI."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import ggtok
from ggtok.adapters.llamacpp import LlamaCppTokenizer
from ggtok.server import bodies
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("spm"))


@pytest.fixture
def client(serve: Serve, tok: ggtok.Tokenizer) -> TestClient:
    return serve({"m": tok})


def test_ollama(client: TestClient, tok: ggtok.Tokenizer) -> None:
    ids = tok.encode("<s>Hi there", add_special=False, parse_special=True)
    for name in "content", "text":
        answer = client.post("/api/tokenize", json={"model": "m", name: "<s>Hi there"}).json()
        assert answer.pop("total_duration") >= answer.pop("load_duration") >= 0
        assert answer == {"model": "m", "tokens": ids}
    answer = client.post("/api/detokenize", json={"tokens": ids}).json()
    assert (answer["model"], answer["content"]) == ("m", "<s> Hi there")


@pytest.mark.parametrize(
    ("path", "body", "status", "message"),
    [
        ("tokenize", {}, 400, "content must be a string, not null"),
        ("tokenize", [], 400, "the body must be an object, not an array"),
        ("tokenize", {"content": 7}, 400, "content must be a string, not a number"),
        ("tokenize", {"content": "x", "media_type": "image"}, 400, "media_type must be 'text'"),
        ("tokenize", {"content": "x", "model": "n"}, 404, "unknown model 'n'; known: m"),
        ("detokenize", {}, 400, "tokens must be an array, not null"),
        ("detokenize", {"tokens": ["a"]}, 400, "an id must be a number, not a string"),
        ("detokenize", {"tokens": [10**6]}, 400, "no token 1000000"),
    ],
)
def test_ollama_errors(
    path: str, body: object, status: int, message: str, client: TestClient
) -> None:
    answer = client.post(f"/api/{path}", json=body)
    assert answer.status_code == status
    assert answer.json()["error"].startswith(message)


def test_koboldcpp(client: TestClient, tok: ggtok.Tokenizer) -> None:
    def ask(**body: object) -> object:
        return client.post("/api/extra/tokencount", json=body).json()

    ids = tok.encode("Hi</s>", parse_special=True)
    assert ask(prompt="Hi</s>") == {"value": len(ids), "ids": ids}
    assert ask(prompt="Hi</s>", special=False) == {"value": len(ids) - 1, "ids": ids[1:]}
    assert ask() == {"value": 1, "ids": [tok.bos_id]}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "the body must be an object, not an array"),
        ({"prompt": ["a"]}, "prompt must be a string, not an array"),
    ],
)
def test_koboldcpp_errors(body: object, message: str, client: TestClient) -> None:
    answer = client.post("/api/extra/tokencount", json=body)
    assert answer.status_code == 400
    assert answer.json() == {"value": -1, "error": message}


TEXTS = ["Hi there", "", "<s>Hi</s>", " Grüße 👍", "<s> [INST] Hi"]


@pytest.mark.parametrize("text", TEXTS)
def test_llama_cpp_python(text: str, client: TestClient, tok: ggtok.Tokenizer) -> None:
    """Answers as llama-cpp-python's server, whose tokenizer ggtok's adapter replaces."""
    theirs = LlamaCppTokenizer(tok)
    ids = theirs.tokenize(text.encode(), add_bos=True, special=True)
    assert client.post("/extras/tokenize", json={"input": text}).json() == {"tokens": ids}
    assert client.post("/extras/tokenize/count", json={"input": text}).json() == {"count": len(ids)}
    for tokens in ids, ids[1:], [*ids, *ids]:
        answer = client.post("/extras/detokenize", json={"tokens": tokens}).json()
        assert answer == {"text": theirs.detokenize(tokens).decode("utf-8", "replace")}


@pytest.mark.parametrize(
    ("text", "adds_bos"), [("Hi", True), ("", True), ("<s>Hi", False), (" <s>", True)]
)
def test_text_generation_webui(
    text: str, adds_bos: bool, client: TestClient, tok: ggtok.Tokenizer
) -> None:
    """Its llama.cpp loader asks llama-server, and adds BOS unless the text begins with it."""
    body = {"content": text, "add_special": adds_bos}
    ids = client.post("/tokenize", json=body).json()["tokens"]
    assert ids[0] == tok.bos_id
    answer = client.post("/v1/internal/encode", json={"text": text}).json()
    assert answer == {"tokens": ids, "length": len(ids)}
    answer = client.post("/v1/internal/token-count", json={"text": text}).json()
    assert answer == {"length": len(ids)}
    content = client.post("/detokenize", json={"tokens": ids}).json()["content"]
    answer = client.post("/v1/internal/decode", json={"tokens": ids}).json()
    assert answer == {"text": content}


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ({}, "bos parsed"),
        ({"add_bos_token": None, "encode_special_tokens": None}, "bos parsed"),
        ({"add_bos_token": False}, "parsed"),
        ({"encode_special_tokens": False}, "bos plain"),
        ({"add_bos_token": False, "encode_special_tokens": False}, "plain"),
    ],
)
def test_tabby(
    flags: dict[str, Any], expected: str, client: TestClient, tok: ggtok.Tokenizer
) -> None:
    parse = "parsed" in expected
    ids = tok.encode("Hi</s>", add_special=False, parse_special=parse)
    if "bos" in expected:
        ids.insert(0, tok.bos_id or 0)
    answer = client.post("/v1/token/encode", json={"text": "Hi</s>", **flags}).json()
    assert answer == {"tokens": ids, "length": len(ids)}
    for special in True, False:
        body = {"tokens": ids, "decode_special_tokens": special}
        answer = client.post("/v1/token/decode", json=body).json()
        assert answer == {"text": tok.decode(ids, unparse_special=special)}


def test_tabby_adds_bos_even_if_the_vocabulary_does_not(serve: Serve) -> None:
    tok = ggtok.load(fixture("spm"), overrides={"tokenizer.ggml.add_bos_token": False})
    answer = serve({"m": tok}).post("/v1/token/encode", json={"text": "Hi"}).json()
    assert answer["tokens"] == [tok.bos_id, *tok.encode("Hi")]
    without = ggtok.load(fixture("rwkv"))
    assert without.bos_id is None
    answer = serve({"m": without}).post("/v1/token/encode", json={"text": "Hi"}).json()
    assert answer["tokens"] == without.encode("Hi")


TABBY_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}{{ m.name }}"
    "{% for c in m.tool_calls %}[{% for k in c.function.arguments %}{{ k }}{% endfor %}]"
    "{% endfor %}"
    "{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}{{ x }}"
)


def _calls(*arguments: object) -> list[dict[str, object]]:
    return [{"type": "function", "function": {"name": "f", "arguments": a}} for a in arguments]


@pytest.mark.parametrize(
    ("messages", "prompt"),
    [
        ([{"role": "user", "content": "Hi"}], "<user>Hi"),
        ([{"content": "Hi", "name": "left out"}], "<user>Hi"),
        (
            [{"role": "user", "content": [{"text": "a"}, {"type": "image_url"}, {"text": "b"}]}],
            "<user>ab",
        ),
        ([{"role": "a", "content": "", "tool_calls": _calls('{"k": 1}', {"q": 2})}], "<a>[k][q]"),
        ([{"role": "a", "content": "", "tool_calls": _calls("{k", "")}], "<a>[{k][]"),
        ([{"role": "a", "content": "", "tool_calls": 7}], None),
        ([7], None),
    ],
)
def test_tabby_renders_messages(
    messages: list[Any], prompt: str | None, serve: Serve, tmp_path: Path
) -> None:
    """As in tabbyAPI, BOS isn't added twice, and the prompt doesn't begin an answer."""
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", TABBY_TEMPLATE.encode())
    gguf.write(tmp_path / "m.gguf")
    tok = ggtok.load(tmp_path / "m.gguf")
    client = serve({"m": tok})
    answer = client.post("/v1/token/encode", json={"text": messages})
    if prompt is None:
        assert answer.status_code == 400 and "message" in answer.text
        return
    ids = [tok.bos_id, *tok.encode(prompt, add_special=False, parse_special=True)]
    assert answer.json() == {"tokens": ids, "length": len(ids)}
    for name in "template_vars", "chat_template_kwargs":
        body = {"text": messages, name: {"x": "end"}, "add_bos_token": False}
        ids = tok.encode(prompt + "end", add_special=False, parse_special=True)
        assert client.post("/v1/token/encode", json=body).json()["tokens"] == ids


@pytest.mark.parametrize(
    ("path", "body", "message"),
    [
        ("/extras/tokenize", {}, "input must be a string, not null"),
        ("/extras/tokenize", [], "the body must be an object, not an array"),
        ("/extras/tokenize/count", {"input": ["a"]}, "input must be a string, not an array"),
        ("/v1/internal/encode", {"text": 7}, "text must be a string, not a number"),
        ("/v1/internal/token-count", {}, "text must be a string, not null"),
        ("/v1/token/encode", {"text": {}}, "text must be a string or an array of messages"),
        ("/v1/token/encode", {"text": "", "add_bos_token": 1}, "add_bos_token must be a boolean"),
        ("/v1/token/encode", {"text": [], "template_vars": []}, "template_vars must be an object"),
    ],
)
def test_errors_of_python_servers(
    path: str, body: object, message: str, client: TestClient
) -> None:
    answer = client.post(path, json=body)
    assert answer.status_code == 400
    assert message in answer.json()["error"]["message"]


@pytest.mark.parametrize("path", ["/extras/detokenize", "/v1/internal/decode", "/v1/token/decode"])
@pytest.mark.parametrize(
    ("tokens", "message"),
    [
        (None, "tokens must be an array, not null"),
        (7, "tokens must be an array, not a number"),
        (["a"], "tokens[0] must be an integer, not 'a'"),
        ([1, 70.9], "tokens[1] must be an integer, not 70.9"),
        ([True], "tokens[0] must be an integer, not True"),
        ([1, -1], "tokens[1] is -1: not a token id of this vocabulary of 844 tokens"),
        ([2**32 + 1], "tokens[0] is 4294967297: not a token id of any vocabulary"),
        ([10**6], "tokens[0] is 1000000: not a token id of this vocabulary of 844 tokens"),
    ],
)
def test_ids_that_python_servers_refuse(
    path: str, tokens: object, message: str, client: TestClient
) -> None:
    """... unlike llama-server, which takes any number modulo 2**32."""
    answer = client.post(path, json={"tokens": tokens})
    assert answer.status_code == 400
    assert answer.json()["error"]["message"] == message


def test_arguments_are_bounded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JSON in a body's texts counts as the body's own, because it is parsed, too."""
    monkeypatch.setattr(bodies, "MOST_PARTS", 100)
    calls = _calls("[" + "[]," * 60 + "[]]", '"' + "[" * 90, "[" + "[]," * 60 + "[]]")
    body = {"text": [{"content": "", "tool_calls": calls[:2]}]}
    assert "lists, objects" not in client.post("/v1/token/encode", json=body).text
    body = {"text": [{"content": "", "tool_calls": calls}]}
    answer = client.post("/v1/token/encode", json=body)
    assert answer.status_code == 400 and "lists, objects" in answer.text
