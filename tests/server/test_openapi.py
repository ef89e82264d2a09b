"""The OpenAPI document describes the server's requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from ggtok.server.application import ENDPOINTS
from ggtok.server.openapi import JSON_TYPE, ROWS, document
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
Serve = Callable[..., TestClient]
_TYPES = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "object": dict,
    "array": list,
    "null": type(None),
}


def fits(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value matches the schema. Supports only the features that the document uses."""
    if "anyOf" in schema:
        return any(fits(value, one) for one in schema["anyOf"])
    if "type" in schema and not isinstance(value, _TYPES[schema["type"]]):
        return False
    if "enum" in schema and value not in schema["enum"]:
        return False
    if schema.get("type") == "integer" and isinstance(value, bool):
        return False
    if any(name not in value for name in schema.get("required", ())):
        return False
    if "items" in schema and not all(fits(item, schema["items"]) for item in value):
        return False
    known = schema.get("properties", {})
    if schema.get("additionalProperties", True) is False and value.keys() - known.keys():
        return False
    if value == "" and schema.get("minLength"):
        return False
    if isinstance(value, int) and value < schema.get("minimum", value):
        return False
    return all(fits(value[name], known[name]) for name in known if name in value)


def test_each_endpoint_has_a_row() -> None:
    paths = {path: endpoint.method for endpoint in ENDPOINTS for path in endpoint.paths}
    described = {path: "GET" if row.request is None else "POST" for path, row in ROWS.items()}
    assert described == paths


@pytest.mark.parametrize("path", ROWS)
def test_examples(path: str, serve: Serve) -> None:
    row = ROWS[path]
    if row.request is None:
        answer = serve().get(path)
    else:
        assert fits(row.example, row.request)
        answer = serve().post(path, json=row.example)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].split(";")[0] == row.media_type
    if row.media_type == JSON_TYPE:
        assert fits(answer.json(), row.response)


@pytest.mark.parametrize("path", [path for path, row in ROWS.items() if row.request])
def test_errors(path: str, serve: Serve) -> None:
    """The errors of endpoints, and of the checks before them, match the document."""
    operation = document()["paths"][path]["post"]
    schema = operation["responses"]["default"]["content"][JSON_TYPE]["schema"]["$ref"]
    error = document()["components"]["schemas"][schema.rpartition("/")[2]]
    client = serve(api_keys=["k"])
    for key, status in ("k", 400), ("", 401):
        answer = client.post(path, content=b"[", headers={"X-Api-Key": key})
        assert answer.status_code == status
        assert fits(answer.json(), error)
    assert not fits({"error": 7}, error)
    assert not fits({"error": {"code": True, "message": "", "type": ""}}, error)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/ggtok/encode", {"texts": [], "unknown": None}),
        ("/v1/ggtok/decode", {"ids": [[True]]}),
        ("/v1/ggtok/decode", {"ids": [[1.0]]}),
        ("/v1/ggtok/truncate", {"text": "a", "n": -1}),
        ("/v1/ggtok/chunks", {"text": "a", "n": 0}),
        ("/v1/ggtok/chunks", {"text": "a", "n": 8, "overlap": -1}),
        ("/v1/ggtok/chunks", {"text": "a", "n": 8, "at": [""]}),
    ],
)
def test_bodies_outside_the_description(path: str, body: Any, serve: Serve) -> None:
    request = ROWS[path].request
    assert request is not None and not fits(body, request)
    assert serve().post(path, json=body).status_code == 400


def test_models_in_urls(serve: Serve) -> None:
    client = serve({"a": fixture("spm"), "b": fixture("bpe-llama3")})
    for path, row in ROWS.items():
        if row.chooses:
            assert document()["paths"][path]["get"]["parameters"][0]["name"] == "model"
            assert client.get(path).status_code == 400
            assert client.get(path, params={"model": "b"}).status_code == 200


def test_the_document(serve: Serve) -> None:
    found = serve().get("/openapi.json").json()
    assert found == document()
    names = [next(iter(path.values()))["operationId"] for path in found["paths"].values()]
    assert len({*names}) == len(names)


@pytest.mark.full
def test_the_document_is_valid() -> None:
    validate = pytest.importorskip("openapi_spec_validator").validate
    validate(document())
