"""The OpenAPI document describes the server's requests and answers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from ggtok.server.application import ENDPOINTS
from ggtok.server.openapi import JSON_TYPE, ROWS, document

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


def test_errors(serve: Serve) -> None:
    schema = document()["components"]["schemas"]["Error"]
    assert fits(serve().post("/v1/ggtok/encode", json=[]).json(), schema)
    assert not fits({"error": "x"}, schema)
    assert not fits({"error": {"code": True, "message": "", "type": ""}}, schema)


def test_the_document(serve: Serve) -> None:
    found = serve().get("/openapi.json").json()
    assert found == document()
    names = [next(iter(path.values()))["operationId"] for path in found["paths"].values()]
    assert len({*names}) == len(names)


@pytest.mark.full
def test_the_document_is_valid() -> None:
    validate = pytest.importorskip("openapi_spec_validator").validate
    validate(document())
