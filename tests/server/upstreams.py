"""An upstream server that records requests, and a server in front of it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ggtok
from tests.server.running import listening, running
from tests.support.patch import GGUF
from tests.support.vocabularies import fixture

MESSAGES = [{"role": "user", "content": "Is the kettle on?"}]
TEMPLATE = "{{ bos_token }}{% for m in messages %}<{{ m.role }}>{{ m.content }}</s>{% endfor %}"
COMPLETION = "/v1/chat/completions"


@pytest.fixture(scope="module")
def tok(tmp_path_factory: pytest.TempPathFactory) -> ggtok.Tokenizer:
    path = tmp_path_factory.mktemp("model") / "model.gguf"
    gguf = GGUF.read(fixture("spm"))
    gguf.set("tokenizer.chat_template", TEMPLATE.encode())
    gguf.write(path)
    return ggtok.load(path)


class Other:
    """An upstream server that records requests and gives prepared answers."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.answers: dict[str, Any] = {}  # prepared answers as JSON, by path
        self.headers: list[tuple[bytes, bytes]] = []  # headers sent with all answers
        self.act: Callable[..., Awaitable[None]] | None = None
        self.gone = 0

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            while True:
                kind = (await receive())["type"]
                await send({"type": f"{kind}.complete"})
                if kind == "lifespan.shutdown":
                    return
        request = {**scope, "body": b""}
        if self.act is not None:
            self.requests.append(request)
            await self.act(request, receive, send)
            return
        more = True
        while more:
            message = await receive()
            request["body"] += message.get("body", b"")
            more = message.get("more_body", False)
        self.requests.append(request)
        known = scope["path"] in self.answers or not self.answers
        data = json.dumps(self.answers.get(scope["path"], {"path": scope["path"]})).encode()
        kind = [(b"content-type", b"application/json")]
        status = 200 if known else 404
        await send(
            {"type": "http.response.start", "status": status, "headers": kind + self.headers}
        )
        await send({"type": "http.response.body", "body": data})


@pytest.fixture
def other() -> Other:
    return Other()


@contextmanager
def passing(other: Other, models: object, **options: Any) -> Iterator[str]:
    """Runs a server in front of an upstream server, and yields its URL."""
    with listening(other) as upstream, running(models, upstream=upstream, **options) as url:
        yield url


def sent(request: dict[str, Any], name: str) -> list[str]:
    return [v.decode() for n, v in request["headers"] if n == name.encode()]


@pytest.fixture(scope="module")
def n(tok: ggtok.Tokenizer) -> int:
    return tok.count_chat(MESSAGES, trusted=True)
