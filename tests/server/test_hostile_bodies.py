"""No body causes an internal error: each gets a result, or an error that gives the reason."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import ggtok
from ggtok import server
from ggtok.server import bodies
from ggtok.server.openapi import ROWS
from tests.server.names import NAMES, POSTS
from tests.support.vocabularies import fixture

pytestmark = pytest.mark.filterwarnings("ignore::ggtok.VocabWarning")
TEXTS = st.sampled_from(["user", "assistant", "text", "function", "message", "m", ""]) | st.text()
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**64), 2**65) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=5), inner, max_size=5)
    ),
    max_leaves=20,
)


@pytest.fixture(scope="module")
def client() -> Iterator[TestClient]:
    tok = ggtok.load(fixture("bpe-llama3"))
    with TestClient(
        server.app({"m": tok}), "http://127.0.0.1", raise_server_exceptions=False
    ) as client:
        yield client


def check(client: TestClient, path: str, body: Any) -> None:
    try:
        data = bodies.dump(body)
    except Exception:  # orjson rejects some numbers
        return
    answer = client.post(path, content=data)
    found = answer.json()
    assert "Internal Server Error" not in answer.text
    assert isinstance(found, dict)
    assert answer.status_code in (200, 400, 404, 500, 501)
    assert (answer.status_code == 200) != ("error" in found)


@pytest.mark.parametrize("path", POSTS)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_value(path: str, client: TestClient, data: st.DataObject) -> None:
    check(client, path, data.draw(VALUES))


@pytest.mark.parametrize("path", POSTS)
@given(data=st.data())
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_examples_with_other_fields(path: str, client: TestClient, data: st.DataObject) -> None:
    example = dict(ROWS[path].example or {})
    for name in data.draw(st.lists(st.sampled_from(sorted({*example, *NAMES})), max_size=2)):
        example[name] = data.draw(VALUES)
    check(client, path, example)
