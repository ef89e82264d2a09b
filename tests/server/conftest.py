"""The fixture that serves models in the tests' process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest
from starlette.testclient import TestClient

from ggtok import server
from tests.support.vocabularies import fixture


@pytest.fixture
def serve() -> Iterator[Callable[..., TestClient]]:
    """Returns a function that serves models, by default the fixture bpe-llama3:
    `serve({"a": path}, api_keys=["k"])`."""
    with ExitStack() as stack:

        def start(models: object = None, **options: object) -> TestClient:
            app = server.app(models or fixture("bpe-llama3"), **options)
            return stack.enter_context(
                TestClient(app, "http://127.0.0.1", raise_server_exceptions=False)
            )

        yield start
