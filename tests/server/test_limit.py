"""`--limit` can't be passed by: what isn't counted is refused, and every text in a body counts."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from tests.server.running import ask
from tests.server.upstreams import COMPLETION, MESSAGES, Other, n, other, passing, tok

__all__ = ["n", "other", "tok"]  # fixtures

LONG = "Is the kettle on? " * 500
LIMIT = 200
SHORT: dict[str, Any] = {"model": "m", "messages": MESSAGES}


def user(content: Any) -> list[dict[str, Any]]:
    return [{"role": "user", "content": content}]


@pytest.fixture
def url(other: Other, tok: ggtok.Tokenizer) -> Iterator[str]:
    assert tok.count(LONG) > 2 * LIMIT > tok.count_chat(MESSAGES) + 50
    with passing(other, {"m": tok}, limit=LIMIT) as made:
        yield made


@pytest.mark.parametrize(
    "path",
    [
        "/v1/chat/%u0063ompletions",  # cpp-httplib decodes it
        "/v1/chat/%63ompletions",
        "/v1/chat%2Fcompletions",
        "/v1/%65mbeddings",
        "/infill",
        "/v1/audio/transcriptions",
        "/api/v1/chat",
        "/V1/EMBEDDINGS/x",
        "/unknown",
        "/",
    ],
)
def test_paths_that_may_generate(path: str, url: str, other: Other, tok: ggtok.Tokenizer) -> None:
    status, _, found = ask(url, "POST", path, SHORT)
    assert status == 400 and "--limit-unknown pass" in str(found["error"])
    assert not other.requests
    with passing(other, {"m": tok}, limit=LIMIT, limit_unknown="pass") as open_url:
        assert ask(open_url, "POST", path, SHORT)[0] == 200


@pytest.mark.parametrize(
    ("method", "path"),
    [
        *(("GET", "/slots"), ("HEAD", "/x"), ("OPTIONS", "/x"), ("DELETE", "/api/delete")),
        *(("POST", f"/{path}") for path in ("v1/embeddings", "embedding", "rerank", "slots/3")),
        *(("POST", f"/api/{path}") for path in ("embed", "show", "pull", "blobs/sha256:00")),
        *(("POST", f"/{path}") for path in ("v1/score", "models/load", "api/v0/embeddings")),
    ],
)
def test_requests_that_generate_nothing(method: str, path: str, url: str, other: Other) -> None:
    assert ask(url, method, path, {"input": LONG} if method == "POST" else None)[0] == 200
    assert len(other.requests) == 1


@pytest.mark.parametrize(
    ("path", "more"),
    [
        ("/api/chat", {"Messages": [{"role": "user", "content": LONG}]}),
        ("/api/chat", {"me\u017fsages": [{"role": "user", "content": LONG}]}),  # Go folds it, too
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "Content": LONG}]}),
        ("/api/chat", {"messages": [{"role": "user", "content": "x", "thinking": LONG}]}),
        ("/api/chat", {"messages": [{"role": LONG, "content": "x"}]}),
        ("/api/chat", {"tools": [{"type": "function", "function": {"Description": LONG}}]}),
        ("/api/chat", {"template": LONG}),
        ("/api/generate", {"prompt": "x", "Prompt": LONG}),
        ("/api/generate", {"prompt": "x", "suffix": LONG}),
        ("/api/generate", {"prompt": "x", "template": LONG}),
        ("/api/generate", {"prompt": "x", "context": [5] * LIMIT}),
        ("/v1/completions", {"prompt": "x", "suffix": LONG}),
        ("/v1/completions", {"prompt": ["x", "y"], "Prompt": LONG}),
        (COMPLETION, {"options": {"num_ctx": 10**9}, "prefill": LONG}),
        (
            COMPLETION,
            {"messages": [{"role": "user", "content": [{"type": "refusal", "refusal": LONG}]}]},
        ),
        (COMPLETION, {"messages": [{"role": "user", "content": [{"type": "x", "text": LONG}]}]}),
        (COMPLETION, {"messages": [{**MESSAGES[0], "tool_calls": [{"a": LONG}]}]}),
        ("/api/v0/chat/completions", {"messages": [{"role": "user", "content": LONG}]}),
        ("/api/v0/completions", {"prompt": LONG}),
        (
            "/v1/messages",
            {
                "messages": [
                    {"role": "user", "content": [{"type": "document", "source": {"data": LONG}}]}
                ]
            },
        ),
        ("/v1/responses", {"input": "x", "Instructions": LONG}),
    ],
)
def test_every_text_counts(path: str, more: dict[str, Any], url: str, other: Other) -> None:
    assert ask(url, "POST", path, {**SHORT, **more})[0] == 400
    assert not other.requests


def test_values_of_repeated_names_count(url: str, other: Other) -> None:
    long = json.dumps({"messages": [{"role": "user", "content": LONG}]}).encode()
    short = json.dumps(SHORT).encode()
    for body in (long[:-1] + b"," + short[1:], short[:-1] + b"," + long[1:]):
        assert ask(url, "POST", COMPLETION, body)[0] == 400
    assert not other.requests
    assert ask(url, "POST", COMPLETION, short)[0] == 200


@pytest.mark.parametrize(
    ("headers", "body"),
    [
        ({"Content-Encoding": "gzip"}, gzip.compress(json.dumps(SHORT).encode(), mtime=0)),
        ({"Content-Encoding": "gzip"}, json.dumps(SHORT).encode()),
        ({"Content-Type": "application/json; charset=utf-16"}, json.dumps(SHORT).encode()),
        ({"Content-Type": "application/json; charset=utf-7"}, json.dumps(SHORT).encode()),
        ({"Content-Type": "application/json"}, json.dumps(SHORT).encode("utf-16")),
        (
            {"Content-Type": "multipart/form-data; boundary=x"},
            b'--x\r\nContent-Disposition: form-data; name="prompt"\r\n\r\nHi\r\n--x--\r\n',
        ),
        ({}, b"[" * 900 + b"]" * 900),
        ({}, b'{"messages": 7}'),
        ({}, b""),
    ],
)
def test_bodies_that_can_not_be_counted(
    headers: dict[str, str], body: bytes, url: str, other: Other, tok: ggtok.Tokenizer
) -> None:
    status, _, found = ask(url, "POST", COMPLETION, body, headers)
    assert status == 400 and "--limit-unknown pass" in found["error"]["message"]
    assert not other.requests
    with passing(other, {"m": tok}, limit=LIMIT, limit_unknown="pass") as open_url:
        assert ask(open_url, "POST", COMPLETION, body, headers)[0] == 200


def test_images_do_not_count_as_text(url: str) -> None:
    data = "data:image/png;base64," + "AAAA" * 3000
    parts = [
        {"type": "text", "text": "x"},
        {"type": "image_url", "image_url": {"url": data}},
    ]
    source = {"type": "base64", "media_type": "image/png", "data": data}
    for path, message in (
        (COMPLETION, {"content": parts}),
        ("/api/chat", {"content": "x", "images": [data]}),
        ("/v1/messages", {"content": [{"type": "image", "source": source}]}),
    ):
        body = {"model": "m", "messages": [{"role": "user", **message}]}
        assert ask(url, "POST", path, body)[0] == 200


def test_only_ollama_has_num_ctx(
    other: Other, tok: ggtok.Tokenizer, n: int, tmp_path: Path
) -> None:
    """And a request can't ask for more than the model's own context."""
    trained = 1000
    path = tmp_path / "model.gguf"
    ggtok.edit(tok.source.path, {"llama.context_length": trained}, out=path)
    other.answers = {
        "/props": {"default_generation_settings": {"n_ctx": n}},
        COMPLETION: {},
        "/api/chat": {},
    }
    long = {"messages": [{"role": "user", "content": "a b " * trained}]}
    with passing(other, {"m": path}, limit=0) as url:
        for options in ({"num_ctx": n + 1}, {"num_ctx": 10**9}):
            assert ask(url, "POST", COMPLETION, {**SHORT, "options": options})[0] == 400
            assert ask(url, "POST", "/api/chat", {**SHORT, "options": options})[0] == 200
            assert ask(url, "POST", "/api/chat", {**long, "options": options})[0] == 400


def test_an_option_that_does_not_exist(tok: ggtok.Tokenizer) -> None:
    with pytest.raises(ggtok.InvalidValueError, match="limit_unknown must be pass or refuse"):
        ggtok.server.app({"m": tok}, upstream="http://127.0.0.1:1", limit_unknown="x")


def test_cookies_and_counts_of_the_upstream_server(other: Other, tok: ggtok.Tokenizer) -> None:
    """Cookies pass through and aren't kept; only our count reaches the client."""
    other.headers = [(b"set-cookie", b"a=b; Path=/"), (b"x-prompt-tokens", b"1")]
    with passing(other, {"m": tok}, count_header=True) as url:
        for _ in range(2):
            _, headers, _ = ask(url, "POST", COMPLETION, SHORT)
            assert headers["set-cookie"] == "a=b; Path=/"
            assert headers["x-prompt-tokens"] == str(tok.count_chat(MESSAGES, trusted=True))
            assert not [each for each in other.requests[-1]["headers"] if each[0] == b"cookie"]


def test_no_cookie_is_kept(other: Other, tok: ggtok.Tokenizer) -> None:
    from tests.server.running import listening

    other.headers = [(b"set-cookie", b"a=b; Path=/")]
    with listening(other) as upstream:
        app = ggtok.server.app({"m": tok}, upstream=upstream)
        with listening(app) as url:
            assert ask(url, "GET", "/x")[1]["set-cookie"]
            client = app.router.default._client  # type: ignore[attr-defined]
            assert client is not None and not client.cookies


def test_the_address_of_the_upstream_server_is_not_shown(tok: ggtok.Tokenizer) -> None:
    from tests.server.running import running

    with running({"m": tok}, upstream="http://127.0.0.1:1") as url:
        status, _, found = ask(url, "GET", "/x")
        assert status == 502
        assert found["error"]["message"] == "the upstream server doesn't answer"
