"""The endpoints that are proposed for Ollama, and those of KoboldCpp."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

import ggtok
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
