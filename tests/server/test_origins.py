"""Checks of the Host and Origin headers: which host names and web pages may use the server."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from starlette.testclient import TestClient

Serve = Callable[..., TestClient]
PAGE = "https://chat.example"


@pytest.mark.parametrize(
    "host",
    [
        *("127.0.0.1", "127.0.0.1:8484", "localhost", "LOCALHOST:1", "[::1]", "[::1]:8484"),
        *("10.0.0.7:80", "app.localhost", "localhost.", "ours.example", "Ours.Example:1"),
    ],
)
def test_names_of_the_server(host: str, serve: Serve) -> None:
    client = serve(allowed_hosts=["ours.example"])
    assert client.get("/health", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil", "evil.example", "evil.example:8484", "localhost.evil", "127.0.0.1.evil"),
        *("", ":80", "[::1].evil", "evil\\@localhost", "0x7f.evil", b"\xe9"),
    ],
)
def test_foreign_names(host: str, serve: Serve) -> None:
    answer = serve().get("/health", headers={"Host": host})
    assert answer.status_code == 403
    assert answer.json()["error"]["type"] == "permission_error"
    assert "--allowed-host" in answer.json()["error"]["message"]


def test_several_names(serve: Serve) -> None:
    answer = serve().get("/health", headers=[("Host", "localhost"), ("Host", "evil")])
    assert answer.status_code == 400


def test_every_name(serve: Serve) -> None:
    client = serve(allowed_hosts=["*"])
    assert client.get("/health", headers={"Host": "any.example"}).status_code == 200


@pytest.mark.parametrize("origin", [PAGE, "null", "http://127.0.0.1:3000", "http://localhost"])
def test_foreign_pages(origin: str, serve: Serve) -> None:
    client = serve(api_keys=["k"])
    for method, path in ("POST", "/tokenize"), ("GET", "/health"), ("OPTIONS", "/tokenize"):
        answer = client.request(method, path, headers={"Origin": origin})
        assert answer.status_code == 403
        assert "--cors-origin" in answer.json()["error"]["message"]
        assert "access-control-allow-origin" not in answer.headers


def test_pages_of_the_server_itself(serve: Serve) -> None:
    headers = {"Origin": "http://127.0.0.1:8484", "Host": "127.0.0.1:8484"}
    answer = serve().post("/tokenize", json={}, headers=headers)
    assert answer.status_code == 200
    assert "access-control-allow-origin" not in answer.headers


def test_requests_that_pages_make_without_an_origin(serve: Serve) -> None:
    client = serve()
    cross = {"Sec-Fetch-Site": "cross-site"}
    assert client.get("/health", headers=cross).status_code == 403
    assert client.post("/tokenize", headers=cross).status_code == 403
    link = {**cross, "Sec-Fetch-Mode": "navigate"}
    assert client.get("/health", headers=link).status_code == 200
    assert client.post("/tokenize", headers=link).status_code == 403
    assert client.get("/health", headers={"Sec-Fetch-Site": "none"}).status_code == 200


@pytest.mark.parametrize("listed", [[PAGE], ["https://other.example", PAGE + "/"], ["*"]])
def test_pages_of_the_list(listed: list[str], serve: Serve) -> None:
    client = serve(cors_origins=listed, api_keys=["k"])
    answer = client.post("/tokenize", json={}, headers={"Origin": PAGE, "Authorization": "k"})
    assert answer.status_code == 200
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-expose-headers"] == (
        "x-prompt-tokens, x-prompt-tokens-kept"
    )
    assert answer.headers["vary"] == "Origin"
    # The page can read why the request was refused.
    answer = client.post("/tokenize", json={}, headers={"Origin": PAGE})
    assert answer.status_code == 401
    assert answer.headers["access-control-allow-origin"] == PAGE


def test_preflight(serve: Serve) -> None:
    client = serve(cors_origins=[PAGE], api_keys=["k"])
    headers = {
        "Origin": PAGE,
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
        "Access-Control-Request-Private-Network": "true",
    }
    answer = client.options("/v1/chat/completions", headers=headers)
    assert answer.status_code == 204
    assert answer.headers["access-control-allow-origin"] == PAGE
    assert answer.headers["access-control-allow-headers"] == "authorization,content-type"
    assert "POST" in answer.headers["access-control-allow-methods"]
    assert answer.headers["access-control-allow-private-network"] == "true"
    assert client.options("/tokenize", headers={**headers, "Origin": "null"}).status_code == 403
