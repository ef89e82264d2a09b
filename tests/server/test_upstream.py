"""Requests that are forwarded to an upstream server: what it receives, what the client receives,
and what happens when one side disconnects."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount
from starlette.testclient import TestClient

import ggtok
import ggtok.server
from ggtok.server import context, upstream
from tests.server.running import ask, connect, listening, numbers, running, until_closed
from tests.server.upstreams import COMPLETION, MESSAGES, Other, n, other, passing, sent, tok
from tests.support import waits

__all__ = ["n", "other", "tok"]  # fixtures


def test_what_is_passed_on(other: Other, tok: ggtok.Tokenizer) -> None:
    with passing(other, {"m": tok}) as url:
        for method, path in [
            *[("GET", "/slots?a=%20b&c"), ("DELETE", "/api/a%2Fb"), ("PUT", "/x"), ("GET", "/")],
            *[("POST", "/v1/embeddings"), ("OPTIONS", "/x"), ("POST", "/v1/models")],
        ]:
            status, _, answer = ask(url, method, path, {"a": 1} if method != "GET" else None)
            assert (status, list(answer)) == (200, ["path"]), path
            request = other.requests[-1]
            assert request["method"] == method
            target = request["raw_path"].decode()
            if request["query_string"]:
                target += "?" + request["query_string"].decode()
            assert target == path
            assert request["body"] == (b'{"a": 1}' if method != "GET" else b"")
        n = len(other.requests)
        assert ask(url, "GET", "/health")[2] == {"status": "ok"}
        assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
        assert len(other.requests) == n


def test_the_alias_for_every_name_lists_the_upstream_models(
    other: Other, tok: ggtok.Tokenizer
) -> None:
    with passing(other, {"*": tok}, api_keys=["k"]) as url:
        for path in "/v1/models", "/models":
            assert ask(url, "GET", path)[0] == 401
            status, _, answer = ask(url, "GET", path, headers={"Authorization": "Bearer k"})
            assert (status, list(answer)) == (200, ["path"])
            assert other.requests[-1]["path"] == path
        assert len(other.requests) == 2


@pytest.mark.parametrize("path", ["/v1/models", "/models"])
def test_lists_of_models_are_merged(path: str, other: Other, tok: ggtok.Tokenizer) -> None:
    """The upstream server's models come first, as they are. The alias * is never listed."""
    theirs = [{"id": "llama3.2:3b", "owned_by": "library"}, {"id": "shared", "meta": {"size": 7}}]
    other.answers = {path: {"object": "list", "data": theirs, "first_id": "x"}}
    models = {"*": tok, "m": tok, "shared": tok}
    with passing(other, models, api_keys=["k"], upstream_key="theirs") as url:
        assert ask(url, "GET", path)[0] == 401 and not other.requests
        status, _, answer = ask(url, "GET", path, headers={"X-Api-Key": "k"})
        assert status == 200
        assert sent(other.requests[-1], "authorization") == ["Bearer theirs"]
        own = answer["data"].pop()
        assert (own["id"], own["owned_by"], own["meta"]["n_vocab"]) == ("m", "ggtok", tok.n_tokens)
        assert answer == {"object": "list", "data": theirs, "first_id": "x"}
        # llama-server has a second list.
        other.answers[path]["models"] = [{"name": "shared"}, 7, {"name": ["m"]}]
        _, _, answer = ask(url, "GET", path, headers={"X-Api-Key": "k"})
        assert answer["models"][:3] == other.answers[path]["models"]
        assert [row["name"] for row in answer["models"][3:]] == ["m"]


@pytest.mark.parametrize("depth", [200, 400, 800])
def test_deep_lists_of_models(depth: int, other: Other, tok: ggtok.Tokenizer) -> None:
    """A list that is nested too deeply for an answer is ignored. The query is passed on."""
    row = {"id": "deep", "meta": json.loads("[" * depth + "]" * depth)}
    other.answers = {"/v1/models": {"object": "list", "data": [row]}}
    with passing(other, {"m": tok, "x": tok}) as url:
        status, _, answer = ask(url, "GET", "/v1/models?limit=2&x=%2F")
    assert other.requests[-1]["query_string"] == b"limit=2&x=%2F"
    own = ["m", "x"]
    assert status == 200
    assert [row["id"] for row in answer["data"]] == (own if depth > 254 else ["deep", *own])


@pytest.mark.parametrize("answer", [None, [], {}, {"data": {}}, {"data": None, "models": []}])
def test_an_upstream_without_a_list(answer: Any, other: Other, tok: ggtok.Tokenizer) -> None:
    other.answers = {"/other": 1} if answer is None else {"/v1/models": answer}
    with passing(other, {"*": tok, "m": tok}) as url:
        status, _, found = ask(url, "GET", "/v1/models")
    assert (status, found["object"]) == (200, "list")
    assert [row["id"] for row in found["data"]] == ["m"]
    assert [row["name"] for row in found["models"]] == ["m"]


def test_an_upstream_that_does_not_answer_lists_no_models(
    other: Other, tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def wait(request: Any, receive: Any, send: Any) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass

    monkeypatch.setattr(upstream, "LIST_SECONDS", 0.1)
    with running({"m": tok}, upstream="http://127.0.0.1:9") as url:
        assert [row["id"] for row in ask(url, "GET", "/v1/models")[2]["data"]] == ["m"]
    other.act = wait
    with passing(other, {"m": tok}) as url:
        assert [row["id"] for row in ask(url, "GET", "/v1/models")[2]["data"]] == ["m"]
        monkeypatch.setattr(upstream, "LIST_SECONDS", 1e3)
        n = len(other.requests)
        with connect(url) as client:
            client.sendall(b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n")
            waits.until(lambda: len(other.requests) > n)
        waits.until(lambda: _active(url) == 0)
        monkeypatch.setattr(upstream, "_MOST", 0)
        assert [row["id"] for row in ask(url, "GET", "/v1/models")[2]["data"]] == ["m"]
        assert len(other.requests) == n + 1


def _active(url: str) -> float:
    return numbers(ask(url, "GET", "/metrics")[2].decode())["ggtok_upstream_requests"]


def test_nothing_is_passed_on_without_a_key(other: Other, tok: ggtok.Tokenizer) -> None:
    with passing(other, {"m": tok}, api_keys=["k"]) as url:
        for method, path in [
            *[("GET", "/x"), ("POST", COMPLETION), ("OPTIONS", "/x"), ("OPTIONS", "/health")],
            *[("POST", "/health"), ("DELETE", "/v1/health"), ("POST", "//health")],
            *[("GET", "/"), ("HEAD", "/"), ("GET", "/?health"), ("GET", "/health/")],
        ]:
            assert ask(url, method, path)[0] == 401, (method, path)
        assert ask(url, "GET", "/health")[0] == 200
        assert not other.requests


def test_headers(other: Other, tok: ggtok.Tokenizer) -> None:
    other.headers = [
        *[(b"set-cookie", b"a=1"), (b"set-cookie", b"b=2"), (b"x-own", b"1"), (b"x-hop", b"1")],
        *[(b"connection", b"x-hop"), (b"keep-alive", b"timeout=1")],
        (b"access-control-allow-origin", b"*"),
    ]
    headers = {
        "X-Kept": "1",
        "Connection": "X-Dropped, keep-alive",
        "X-Dropped": "1",
        "TE": "trailers",
        "Proxy-Authorization": "p",
        "Accept-Encoding": "br",
        "Cookie": "c=1",
        "Authorization": "Bearer theirs",
        "X-Api-Key": "theirs",
    }
    with passing(other, {"m": tok}) as url:
        _, found, _ = ask(url, "GET", "/x", headers=headers)
        request = other.requests[-1]
        assert {name: sent(request, name) for name in ("x-kept", "accept-encoding", "cookie")} == {
            "x-kept": ["1"],
            "accept-encoding": ["br"],
            "cookie": ["c=1"],
        }
        assert sent(request, "authorization") == ["Bearer theirs"]
        assert sent(request, "x-api-key") == ["theirs"]
        for name in "x-dropped", "te", "proxy-authorization", "keep-alive", "user-agent":
            assert not sent(request, name), name
        assert sent(request, "host") != [urlsplit(url).netloc]
        assert found["x-own"] == "1"
        assert "a=1" in found["set-cookie"] or "b=2" in found["set-cookie"]
        for name in "x-hop", "keep-alive", "access-control-allow-origin":
            assert name not in found
        # Only the client stores cookies; the server doesn't.
        ask(url, "GET", "/x")
        assert not sent(other.requests[-1], "cookie")


@pytest.mark.parametrize("key", [None, "theirs"])
def test_our_key_is_never_passed_on(key: str | None, other: Other, tok: ggtok.Tokenizer) -> None:
    with passing(other, {"m": tok}, api_keys=["ours", "too"], upstream_key=key) as url:
        assert ask(url, "GET", "/x")[0] == 401 and not other.requests
        for headers in [
            {"Authorization": "Bearer ours"},
            {"Authorization": "ours"},
            {"X-Api-Key": "too"},
            {"X-Api-Key": "too", "Authorization": "Bearer ours", "X-Other": "bearer  ours"},
        ]:
            assert ask(url, "GET", "/x", headers=headers)[0] == 200
            names = sent(other.requests[-1], "authorization")
            assert names == ([f"Bearer {key}"] if key else [])
            text = str(other.requests[-1]["headers"])
            assert "ours" not in text and "too" not in text
        # The client's key is forwarded, unless the server has its own key for the upstream server.
        both = {"Authorization": "Bearer ours", "X-Api-Key": "client"}
        ask(url, "GET", "/x", headers=both)
        assert sent(other.requests[-1], "x-api-key") == ([] if key else ["client"])


def test_answers_are_streamed(other: Other, tok: ggtok.Tokenizer) -> None:
    go = threading.Event()

    async def act(request: Any, receive: Any, send: Any) -> None:
        kind = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": kind})
        await send({"type": "http.response.body", "body": b"data: 1\n\n", "more_body": True})
        await asyncio.to_thread(go.wait, waits.LIMIT)
        await send({"type": "http.response.body", "body": b"data: 2\n\n"})

    other.act = act
    with passing(other, {"m": tok}) as url, connect(url) as connection:
        connection.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = b""
        while b"data: 1\n\n" not in data:
            data += connection.recv(1000)
        assert b"data: 2" not in data
        go.set()
        assert b"data: 2\n\n" in until_closed(connection)


def test_bodies_are_streamed(other: Other, tok: ggtok.Tokenizer) -> None:
    first = threading.Event()

    async def act(request: Any, receive: Any, send: Any) -> None:
        more = True
        while more:
            message = await receive()
            request["body"] += message.get("body", b"")
            more = message.get("more_body", False)
            first.set()
        await send({"type": "http.response.start", "status": 204, "headers": []})
        await send({"type": "http.response.body"})

    other.act = act
    with passing(other, {"m": tok}, max_body=10) as url, connect(url) as connection:
        connection.sendall(
            b"POST /x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n8\r\n12345678\r\n"
        )
        assert first.wait(waits.LIMIT)
        connection.sendall(b"8\r\n90123456\r\n0\r\n\r\n")
        assert until_closed(connection).startswith(b"HTTP/1.1 204")
    assert other.requests[0]["body"] == b"1234567890123456"


def test_a_client_that_goes_away_ends_the_upstream_request(
    other: Other, tok: ggtok.Tokenizer
) -> None:
    gone = threading.Event()

    async def act(request: Any, receive: Any, send: Any) -> None:
        if request["method"] == "POST":
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b"1", "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass
        gone.set()

    other.act = act
    with passing(other, {"m": tok}) as url:
        # The client disconnects while it waits for the answer, while the answer is streamed, and
        # while it sends the body.
        for begin in (
            b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n",
            b"POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1\r\n\r\n1",
            b"PUT /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\n1",
        ):
            gone.clear()
            n = len(other.requests)
            with connect(url) as connection:
                connection.sendall(begin)
                waits.until(lambda n=n: len(other.requests) > n)  # type: ignore[misc]
            assert gone.wait(waits.LIMIT)


FACES = [
    (COMPLETION, lambda body: body["error"]["type"] == "server_error"),
    ("/v1/messages", lambda body: body["type"] == "error" and body["error"]["type"] == "api_error"),
    ("/api/chat", lambda body: isinstance(body["error"], str)),
]


@pytest.mark.parametrize(("path", "right"), FACES)
def test_an_upstream_that_is_not_there(
    path: str, right: Callable[[Any], bool], tok: ggtok.Tokenizer
) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        upstream = f"http://127.0.0.1:{unused.getsockname()[1]}"
        with running({"m": tok}, upstream=upstream, limit=0) as url:
            status, _, body = ask(url, "POST", path, {"messages": MESSAGES, "model": "m"})
            assert status == 502 and right(body) and "127.0.0.1" not in json.dumps(body)
            assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200


@pytest.mark.parametrize(("path", "right"), FACES)
def test_an_upstream_that_breaks_off(
    path: str, right: Callable[[Any], bool], other: Other, tok: ggtok.Tokenizer
) -> None:
    kind = b"application/x-ndjson" if path.startswith("/api") else b"text/event-stream"

    async def act(request: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", kind)]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": b"begun", "more_body": True})

    other.act = act
    with passing(other, {"m": tok}) as url, connect(url) as connection:
        head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        connection.sendall(head.encode())
        text = until_closed(connection)
    assert b"begun" in text
    last = text[text.rindex(b"{") if b'{"error":"' in text else text.index(b'{"') :]
    assert right(json.JSONDecoder().raw_decode(last.decode())[0])


@pytest.mark.parametrize("begun", [b"", b'{"a":1}\n', b'{"a":1}'])
def test_lines_of_json_that_break_off(begun: bytes, other: Other, tok: ggtok.Tokenizer) -> None:
    """The error is on a separate line, and no line is empty: Ollama's client couldn't read that."""

    async def act(request: Any, receive: Any, send: Any) -> None:
        headers = [(b"content-type", b"application/x-ndjson")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        await send({"type": "http.response.body", "body": begun, "more_body": True})

    other.act = act
    with passing(other, {"m": tok}) as url:
        text = httpx2.post(f"{url}/api/chat", json={"stream": True}, timeout=waits.LIMIT).content
    assert text.endswith(b"\n") and text.startswith(begun)
    lines = [json.loads(line) for line in text[:-1].split(b"\n")]
    assert "broke off the answer" in lines.pop()["error"]
    assert lines == [{"a": 1}] * bool(begun)


def test_an_incomplete_answer_stays_incomplete(other: Other, tok: ggtok.Tokenizer) -> None:
    kind = (b"content-type", b"text/event-stream")
    for header in (b"content-length", b"1000"), (b"content-encoding", b"gzip"), (b"x", b""):
        headers = [kind, header] if header[0] != b"x" else []

        async def act(request: Any, receive: Any, send: Any, headers: Any = headers) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b"begun", "more_body": True})

        other.act = act
        with passing(other, {"m": tok}) as url, connect(url) as connection:
            connection.sendall(b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n")
            text = until_closed(connection)
        assert b"begun" in text and not text.endswith(b"0\r\n\r\n")


# ---- counts and limits ----


def test_counts_with_images(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    file = {"type": "file", "file": {}}
    text = {"type": "text", "text": MESSAGES[0]["content"]}
    messages = [{"role": "user", "content": [text, image, file, image]}]
    expected = tok.count_chat(
        [{"role": "user", "content": [text, image, image]}], trusted=True, image_tokens=70
    )
    assert expected > n + 139
    with passing(other, {"m": tok}, count_header=True, image_tokens=70) as url:
        _, headers, _ = ask(url, "POST", COMPLETION, {"messages": messages})
        assert headers["x-prompt-tokens"] == str(expected)
        _, headers, _ = ask(url, "POST", COMPLETION, {"messages": MESSAGES})
        assert headers["x-prompt-tokens"] == str(n)


def test_counts(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    text = MESSAGES[0]["content"]
    image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}
    parts = [{"type": "text", "text": text}, image]
    n_text = tok.count(text)
    cases: list[tuple[str, Any, int | None]] = [
        (COMPLETION, {"messages": MESSAGES}, n),
        ("/chat/completions", {"messages": MESSAGES, "model": "m"}, n),
        (COMPLETION, {"messages": [{"role": "user", "content": parts}]}, n),
        ("/v1/responses", {"input": text}, n),
        ("/v1/messages", {"messages": MESSAGES}, n),
        ("/api/chat", {"messages": MESSAGES}, n),
        ("/api/generate", {"prompt": text}, n),
        ("/api/generate", {"prompt": text, "raw": True}, n_text),
        ("/v1/completions", {"prompt": text}, n_text),
        ("/completion", {"prompt": [text, text]}, 2 * n_text),
        ("/completions", {"prompt": [1, 2, 3]}, 3),
        ("/completions", {"prompt": [[1, 2, 3], text, [text, 5]]}, 4 + 2 * n_text),
        ("/completion", {"prompt": {"prompt_string": text}}, n_text),
        # A request that can't be counted is forwarded, and the upstream server rejects it.
        (COMPLETION, {"messages": 7}, None),
        (COMPLETION, {"messages": MESSAGES, "model": "unknown"}, None),
        (COMPLETION, b"not JSON", None),
        ("/completion", {}, None),
        ("/v1/embeddings", {"input": text}, None),
    ]
    with passing(other, {"m": tok}, count_header=True) as url:
        for path, body, count in cases:
            status, headers, _ = ask(url, "POST", path, body)
            assert status == 200
            found = headers.get("x-prompt-tokens")
            assert found == (None if count is None else str(count)), (path, body)
            expected = body if isinstance(body, bytes) else json.dumps(body).encode()
            assert other.requests[-1]["body"] == expected


def test_limits(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    with passing(other, {"m": tok}, limit=n) as url:
        status, _, body = ask(url, "POST", COMPLETION, {"messages": MESSAGES})
        assert status == 400
        message = body["error"].pop("message")
        assert f"maximum context length is {n} tokens" in message
        assert body["error"] == {
            "type": "invalid_request_error",
            "param": "messages",
            "code": "context_length_exceeded",
        }
        for model in 7, [], "", None:
            body = {"messages": MESSAGES, "model": model}
            assert ask(url, "POST", COMPLETION, body)[0] == 400
        _, _, body = ask(url, "POST", "/v1/messages", {"messages": MESSAGES})
        assert body["error"]["message"] == f"prompt is too long: {n} tokens > {n} maximum"
        assert ask(url, "POST", "/api/chat", {"messages": MESSAGES})[0] == 400
        assert not other.requests
        status, headers, _ = ask(url, "POST", "/completion", {"prompt": ["a", "b"]})
        assert status == 200 and "x-prompt-tokens" not in headers
        # The limit of an unknown model can't be enforced.
        status, _, body = ask(url, "POST", COMPLETION, {"messages": MESSAGES, "model": "x"})
        assert status == 404 and "known: m" in body["error"]["message"]
    with passing(other, {"m": tok}, limit=n + 1) as url:
        assert ask(url, "POST", COMPLETION, {"messages": MESSAGES})[0] == 200


@pytest.mark.parametrize(
    ("path", "answer"),
    [
        ("/props", lambda n: {"default_generation_settings": {"n_ctx": n}}),
        ("/api/ps", lambda n: {"models": [{"name": "m:latest", "context_length": n}]}),
        ("/v1/models", lambda n: {"data": [{"id": "x"}, {"id": "m", "max_model_len": n}]}),
        ("/api/v0/models", lambda n: {"data": [{"id": "m", "loaded_context_length": n}]}),
    ],
)
def test_the_limit_of_the_upstream_server(
    path: str,
    answer: Callable[[int], Any],
    other: Other,
    tok: ggtok.Tokenizer,
    n: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(context, "KNOWN_SECONDS", -1.0)
    other.answers = {path: answer(n), "/chat/completions": {"ok": True}}
    body = {"messages": MESSAGES, "model": "m"}
    with passing(other, {"m": tok}, limit=0, upstream_key="k") as url:
        assert ask(url, "POST", "/chat/completions", body)[0] == 400
        assert sent(other.requests[-1], "authorization") == ["Bearer k"]
        other.answers[path] = answer(n + 1)
        assert ask(url, "POST", "/chat/completions", body)[0] == 200
        # Requests to Ollama may set their own context size.
        asked = {**body, "options": {"num_ctx": n}}
        assert ask(url, "POST", "/api/chat", asked)[0] == 400
        del other.answers[path]
        status, _, found = ask(url, "POST", "/chat/completions", body)
        assert status == 500 and "--limit N" in found["error"]["message"]


def test_a_model_that_ollama_has_not_loaded(other: Other, tok: ggtok.Tokenizer, n: int) -> None:
    async def act(request: Any, receive: Any, send: Any) -> None:
        loaded = any(r["path"] == "/api/generate" for r in other.requests)
        rows = [{"model": "m", "context_length": n}] if loaded else []
        known = request["path"] in ("/api/ps", "/api/generate")
        status = 200 if known else 404
        await send({"type": "http.response.start", "status": status, "headers": []})
        await send({"type": "http.response.body", "body": json.dumps({"models": rows}).encode()})

    other.act = act
    with passing(other, {"m": tok}, limit=0) as url:
        body = {"messages": MESSAGES, "model": "m"}
        status, _, found = ask(url, "POST", "/api/chat", body)
        assert status == 400 and f"only {n}" in found["error"]
        paths = [request["path"] for request in other.requests]
        assert paths == ["/props", "/api/ps", "/api/generate", "/api/ps"]
        # The second result comes from the cache.
        ask(url, "POST", "/api/chat", body)
        assert len(other.requests) == 4


@pytest.mark.parametrize("path", ["/x/..", "/.", "/x/%2e%2e", "/%2E", "/x/%2e%2E/y/.."])
def test_paths_that_mean_another_path(path: str, other: Other, tok: ggtok.Tokenizer) -> None:
    """They would reach the upstream server as the path of a completion without being checked."""
    with passing(other, {"m": tok}, limit=1) as url:
        status, _, found = ask(url, "POST", path + COMPLETION, {"messages": MESSAGES})
        assert status == 400 and "part that is . or .." in found["error"]["message"]
        assert not other.requests
        for same in "/" + COMPLETION, COMPLETION + "/", COMPLETION.upper():
            status, _, found = ask(url, "POST", same, {"messages": MESSAGES})
            assert status == 400 and "maximum context length" in found["error"]["message"]
        assert not other.requests
        assert ask(url, "GET", "/.x/..y/...")[2] == {"path": "/.x/..y/..."}


def test_the_limit_of_a_mounted_application(other: Other, tok: ggtok.Tokenizer) -> None:
    with listening(other) as upstream:
        app = ggtok.server.app({"m": tok}, upstream=upstream, limit=1, count_header=True)
        with TestClient(Starlette(routes=[Mount("/a", app)]), "http://127.0.0.1") as client:
            answer = client.post("/a" + COMPLETION, json={"messages": MESSAGES})
            assert answer.status_code == 400
            assert "maximum context length" in answer.json()["error"]["message"]
            assert not other.requests
            assert client.put("/a/x", json={}).json() == {"path": "/x"}


def test_bodies_that_are_counted_are_limited(other: Other, tok: ggtok.Tokenizer) -> None:
    with passing(other, {"m": tok}, limit=5, max_body=100) as url:
        status, _, body = ask(url, "POST", "/v1/messages", b" " * 101)
        assert status == 413 and body["type"] == "error"


@pytest.mark.parametrize(
    "url",
    [
        *("", "127.0.0.1:8080", "ftp://a", "http://", "http://a/b", "http://a/?b", "http://[::1"),
        "http://a:b",
    ],
)
def test_invalid_addresses(url: str, tok: ggtok.Tokenizer) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="must be the address of a server"):
        ggtok.server.app(tok, upstream=url)


def test_options_that_need_an_upstream(tok: ggtok.Tokenizer) -> None:
    for option in {"limit": 5}, {"count_header": True}, {"upstream_key": "k"}:
        with pytest.raises(ggtok.InvalidValueError, match="need an upstream"):
            ggtok.server.app(tok, **option)


def test_the_path_of_the_address(other: Other, tok: ggtok.Tokenizer) -> None:
    with listening(other) as upstream, running(tok, upstream=upstream + "/v1/") as url:
        assert ask(url, "GET", "/v1/x")[2] == {"path": "/v1/x"}


@pytest.mark.parametrize("target", [b"http://evil.example/x", b"//evil.example/x"])
def test_targets_stay_at_the_upstream_server(
    target: bytes, other: Other, tok: ggtok.Tokenizer
) -> None:
    with passing(other, {"m": tok}) as url, connect(url) as connection:
        connection.sendall(
            b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
        )
        assert until_closed(connection).startswith(b"HTTP/1.1 200")
        assert len(other.requests) == 1
