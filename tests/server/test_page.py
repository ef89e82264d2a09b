"""The page at / and the vocabularies that it fetches."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from gguf import GGUFReader
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from tests.support.page import data
from tests.support.tensors import with_tensors
from tests.support.vocabularies import fixture

Serve = Callable[..., TestClient]


def test_the_page_lists_the_models(serve: Serve) -> None:
    client = serve({"a b": fixture("spm"), "b&<!--</script>": fixture("wpm")})
    response = client.get("/")
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    found = data(response.text)
    assert found["server"] == "v1/ggtok/"
    assert [model["name"] for model in found["models"]] == ["a b", "b&<!--</script>"]
    assert client.get("/ggtok").content == response.content
    for model, name in zip(found["models"], ("spm", "wpm"), strict=True):
        got = client.get("/" + model["url"])
        assert got.headers["content-type"] == "application/octet-stream"
        assert ggtok.load(got.content).encode("Hi there") == ggtok.load(fixture(name)).encode(
            "Hi there"
        )
        assert client.post("/" + found["server"] + "doctor", json={"model": model["name"]}).json()


def test_weights_are_never_sent(serve: Serve, tmp_path: Path) -> None:
    path = with_tensors(tmp_path / "weights.gguf")
    got = serve(path).get("/v1/ggtok/vocabulary")
    assert len(got.content) < path.stat().st_size
    (got_path := tmp_path / "got.gguf").write_bytes(got.content)
    assert not GGUFReader(got_path).tensors
    assert ggtok.load(got.content).encode("Hi") == ggtok.load(path).encode("Hi")


def test_a_changed_file(serve: Serve, tmp_path: Path) -> None:
    path = tmp_path / "model.gguf"
    path.write_bytes(fixture("spm").read_bytes())
    client = serve(path)
    before = client.get("/v1/ggtok/vocabulary").content
    path.write_bytes(fixture("bpe-llama3").read_bytes())
    client.app.state.registry.model_named().checked = (
        0  # as if a second had passed since the last check
    )
    after = client.get("/v1/ggtok/vocabulary").content
    assert before != after
    assert ggtok.load(after).vocab_type == "BPE"


def test_models_without_a_file(serve: Serve) -> None:
    client = serve({"memory": ggtok.load(fixture("spm")), "file": fixture("wpm")})
    assert [model["name"] for model in data(client.get("/").text)["models"]] == ["file"]
    refused = client.get("/v1/ggtok/vocabulary?model=memory")
    assert refused.status_code == 501
    assert "memory" in refused.json()["error"]["message"]
    assert client.get("/v1/ggtok/vocabulary?model=other").status_code == 404
    assert client.get("/v1/ggtok/vocabulary").status_code == 400


def test_with_keys_the_page_is_public_and_vocabularies_are_not(serve: Serve) -> None:
    client = serve(api_keys=["k"])
    assert client.get("/").status_code == 200
    assert client.get("/v1/ggtok/vocabulary").status_code == 401
    with_key = {"Authorization": "Bearer k"}
    assert client.get("/v1/ggtok/vocabulary", headers=with_key).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/ggtok/vocabulary"])
def test_answers_are_compressed_and_cached_by_hash(serve: Serve, path: str) -> None:
    client = serve()
    plain = client.get(path, headers={"Accept-Encoding": "identity"})
    assert "content-encoding" not in plain.headers
    assert len(plain.content) == int(plain.headers["content-length"])
    refused = client.get(path, headers={"Accept-Encoding": "br, gzip;q=0"})
    assert "content-encoding" not in refused.headers
    packed = client.get(path, headers={"Accept-Encoding": "br, gzip;q=0.5"})
    assert packed.headers["content-encoding"] == "gzip"
    assert int(packed.headers["content-length"]) < len(plain.content)
    assert packed.content == plain.content
    for answer in (plain, packed):
        assert answer.headers["cache-control"] == "no-cache"
        assert answer.headers["vary"] == "Accept-Encoding"
        assert answer.headers["etag"] == plain.headers["etag"]
    again = client.get(path, headers={"If-None-Match": f'"other", {plain.headers["etag"]}'})
    assert (again.status_code, again.content) == (304, b"")
    assert again.headers["etag"] == plain.headers["etag"]
    other = client.get(path, headers={"If-None-Match": 'W/"0"'})
    assert other.content == plain.content


def test_no_other_page_reads_or_frames_it(serve: Serve) -> None:
    client = serve()
    page = client.get("/")
    assert page.headers["content-security-policy"] == "frame-ancestors 'none'"
    assert page.headers["x-content-type-options"] == "nosniff"
    elsewhere = {"Origin": "https://elsewhere.example"}
    assert client.get("/v1/ggtok/vocabulary", headers=elsewhere).status_code == 403
    assert client.get("/", headers={"Host": "elsewhere.example"}).status_code == 403


def test_an_upstream_server_keeps_its_own_page(serve: Serve) -> None:
    client = serve(upstream="http://127.0.0.1:9")
    assert data(client.get("/ggtok").text)["models"]
    assert client.get("/").status_code >= 500  # forwarded to a port where nothing listens


def test_an_application_has_models() -> None:
    with pytest.raises(ggtok.InvalidValueError, match="models is empty"):
        server.app([])
