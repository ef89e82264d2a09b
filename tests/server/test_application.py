"""The application's answers to requests."""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server.auth import LONGEST_KEY
from ggtok.server.completions import COMPLETIONS
from tests.server.running import ask, running
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]


def test_health(serve: Serve) -> None:
    assert serve().get("/health").json() == {"status": "ok"}


def test_tokenize_and_detokenize(serve: Serve) -> None:
    client = serve()
    ids = ggtok.load(fixture("bpe-llama3")).encode("Hi there", add_special=False)
    answer = client.post("/tokenize", json={"content": "Hi there"})
    assert answer.json() == {"tokens": ids, "count": len(ids)}
    assert answer.headers["content-type"] == "application/json; charset=utf-8"
    assert client.post("/detokenize", json={"tokens": ids}).json()["content"] == "Hi there"


def test_large_bodies_are_answered_by_threads(serve: Serve) -> None:
    client, text = serve(), "Hi there. " * 50_000
    ids = ggtok.load(fixture("bpe-llama3")).encode(text, add_special=False)
    assert client.post("/tokenize", json={"content": text}).json()["tokens"] == ids


def test_unknown_paths_and_methods(serve: Serve) -> None:
    client = serve()
    for answer in client.get("/tokenize"), client.post("/nothing"), client.get("/health/"):
        assert answer.status_code == 404
        assert answer.json()["error"] == {
            "code": 404,
            "message": "File Not Found",
            "type": "not_found_error",
        }


def test_paths_that_generate_name_the_upstream(serve: Serve) -> None:
    client = serve()
    for path in COMPLETIONS:
        answer = client.post(path, json={})
        assert answer.status_code == 404
        assert "ggtok generates nothing; start it with --upstream URL" in answer.text


def test_malformed_json(serve: Serve) -> None:
    answer = serve().post("/tokenize", content=b'{"content": ')
    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


def test_bodies_are_limited(serve: Serve) -> None:
    client = serve(max_body=100)
    assert client.post("/tokenize", content=b" " * 101).status_code == 413
    parts = (b" " * 60 for _ in range(2))
    answer = client.post("/tokenize", content=parts)
    assert answer.status_code == 413
    assert answer.json()["error"]["message"] == "the body is longer than 100 bytes"


def test_keys(serve: Serve) -> None:
    client = serve(api_keys=["k1", "k2"])
    assert client.get("/health").status_code == 200
    answer = client.post("/tokenize", json={})
    assert answer.status_code == 401
    assert answer.json()["error"] == {
        "code": 401,
        "message": "Invalid API Key",
        "type": "authentication_error",
    }
    for headers in (
        {"Authorization": "Bearer k1"},
        {"Authorization": "k2"},
        {"X-Api-Key": "k2"},
    ):
        assert client.post("/tokenize", json={}, headers=headers).status_code == 200
    for headers in {"Authorization": "Bearer k"}, {"X-Api-Key": ""}, {"Authorization": b"\xe9"}:
        assert client.post("/tokenize", json={}, headers=headers).status_code == 401


@pytest.mark.parametrize("key", ["a b", '~!"#,=/+-._', "k" * LONGEST_KEY])
def test_keys_that_clients_can_send(key: str) -> None:
    with running(fixture("bpe-llama3"), api_keys=["other", key]) as url:
        for headers in {"Authorization": f"Bearer {key}"}, {"X-Api-Key": f" {key} "}:
            assert ask(url, "POST", "/tokenize", {}, headers)[0] == 200
        for wrong in key[:-1], key + "x", key.upper() + key[0], "other key":
            assert ask(url, "POST", "/tokenize", {}, {"X-Api-Key": wrong})[0] == 401


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("", "is empty"),
        ("schlüssel", "printable ASCII"),
        ("\N{GREEK SMALL LETTER ALPHA}", "printable ASCII"),
        ("\udcff", "printable ASCII"),
        (" secret", "no space at its ends"),
        ("secret ", "no space at its ends"),
        ("secret\n", "printable ASCII"),
        ("k\r\nX-Api-Key: other", "printable ASCII"),
        ("secret\0", "printable ASCII"),
        ("secret\tkey", "printable ASCII"),
        ("k" * (LONGEST_KEY + 1), "at most 4096 work"),
        (7, "must be a string, not int"),
        (b"secret", "must be a string, not bytes"),
    ],
)
def test_keys_that_clients_cannot_send(key: Any, message: str) -> None:
    wrong = (ggtok.InvalidValueError, ggtok.InvalidTypeError)
    with pytest.raises(wrong, match=message) as error:
        server.app(fixture("spm"), api_keys=["k", key])
    assert not key or str(key) not in str(error.value)
    with pytest.raises(wrong, match=message):
        server.app(fixture("spm"), upstream="http://127.0.0.1:1", upstream_key=key)


def test_a_string_is_not_a_list_of_keys() -> None:
    with pytest.raises(ggtok.InvalidTypeError, match="api_keys must be a list"):
        server.app(fixture("spm"), api_keys="key")


def test_names_that_are_not_utf8(serve: Serve, tmp_path: Path) -> None:
    name = os.fsdecode(b"a\xff.gguf")
    shutil.copy(fixture("spm"), tmp_path / name)
    answer = serve([tmp_path / name]).get("/v1/models")
    assert answer.json()["data"][0]["id"] == "a\ufffd.gguf"


def test_mounted(serve: Serve) -> None:
    tokens = server.app(fixture("spm"), api_keys=["k"])
    client = TestClient(Starlette(routes=[Mount("/tokens", tokens)]), "http://127.0.0.1")
    assert client.get("/tokens/health").status_code == 200
    assert client.post("/tokens/tokenize", json={}).status_code == 401
    headers = {"X-Api-Key": "k"}
    answer = client.post("/tokens/tokenize", json={"content": "Hi"}, headers=headers)
    assert answer.json()["count"]


@pytest.mark.parametrize("data", [b"[" * 200_000, b'{"a":' * 100_000, b"[" * 2000 + b"]" * 2000])
def test_deep_nesting(data: bytes, serve: Serve) -> None:
    answer = serve().post("/tokenize", content=data)
    assert answer.status_code == 400
    assert "isn't valid JSON" in answer.json()["error"]["message"]


def test_a_missing_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "starlette", None)
    with pytest.raises(ggtok.MissingExtraError, match=r"pip install 'ggtok\[serve\]'"):
        server.app(fixture("spm"))


def test_internal_errors(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("a text")

    monkeypatch.setattr(ggtok.Tokenizer, "encode_array", fail)
    answer = serve().post("/tokenize", json={"content": "Hi"})
    assert answer.status_code == 500
    error = {"code": 500, "message": "Internal Server Error", "type": "server_error"}
    assert answer.json() == {"error": error}


def test_a_full_queue(serve: Serve) -> None:
    client = serve()
    client.app.state.workers._free = {False: 0, True: 0}  # type: ignore[attr-defined]
    answer = client.post("/apply-template", json={"messages": []})
    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "unavailable_error"


def test_templates_that_fail(serve: Serve, tmp_path: Path) -> None:
    """llama-server doesn't start with such a template; ggtok's server rejects the requests that
    need it."""
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", b"{% if %}")
    gguf.write(tmp_path / "a.gguf")
    client = serve(tmp_path / "a.gguf")
    assert client.get("/props").json()["chat_template"] == "{% if %}"
    answer = client.post("/apply-template", json={"messages": [{"role": "user", "content": "a"}]})
    assert answer.status_code == 500
    assert "line 1" in answer.json()["error"]["message"]


def test_a_template_for_tools(serve: Serve, tmp_path: Path) -> None:
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", b"{{ messages[0].content }}")
    gguf.set("tokenizer.chat_template.tool_use", b"tools {{ messages[0].content }}{{ tools }}")
    gguf.write(tmp_path / "a.gguf")
    assert serve(tmp_path / "a.gguf").get("/props").json()["chat_template_tool_use"] == (
        "tools {{ messages[0].content }}{{ tools }}"
    )


def test_models_that_are_not_loaded(serve: Serve, tmp_path: Path) -> None:
    client = serve({"a": fixture("spm"), "b": tmp_path / "missing.gguf"})
    client.post("/tokenize", json={"model": "a", "content": "Hi"})
    rows = client.get("/v1/models").json()["data"]
    assert [(row["id"], row["meta"] is None) for row in rows] == [("a", False), ("b", True)]
    answer = client.post("/tokenize", json={"model": "b", "content": "Hi"})
    assert answer.status_code == 503
    assert answer.json()["error"]["type"] == "unavailable_error"


def test_a_client_that_leaves() -> None:
    app = server.app(fixture("spm"))
    scope = {"type": "http", "method": "POST", "path": "/tokenize", "headers": []}
    scope |= {"query_string": b"", "root_path": "", "scheme": "http", "http_version": "1.1"}
    sent: list[Any] = []

    async def receive() -> dict[str, str]:
        return {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(app(scope, receive, send))
    assert sent[0]["status"] == 400
