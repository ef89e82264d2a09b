"""Endpoints for the page that shows the models' vocabularies, and for the vocabularies."""

from __future__ import annotations

import gzip
import re
from collections.abc import AsyncIterator
from functools import lru_cache
from hashlib import sha256
from typing import NamedTuple
from urllib.parse import urlencode

from starlette.datastructures import Headers
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from ggtok import page
from ggtok.errors import GGTokError
from ggtok.server.endpoints import Call, Endpoint
from ggtok.server.refusals import Refusal
from ggtok.server.registry import Served, unreadable
from ggtok.vocabularies.read import metadata_of, vocabulary_only

HOME = "/"
_OWN = "v1/ggtok/"  # relative, so that the page works when another program mounts the application
_VOCABULARY = "the vocabulary as a GGUF file"  # the key in the `memo` of a loaded vocabulary
_STEP = 1 << 16


def html(call: Call) -> Response:
    call.registry.require_scan(call.ready)
    names = tuple(model.shown for model in call.registry.offered() if model.source)
    headers = {
        "Content-Security-Policy": "frame-ancestors 'none'",  # a policy in the page can't set this
        "Referrer-Policy": "no-referrer",
    }
    return _Answer(_html(names), "text/html; charset=utf-8", headers)


@lru_cache(maxsize=4)  # slow clients share the bytes
def _html(names: tuple[str, ...]) -> _Content:
    urls = {name: f"{_OWN}vocabulary?{urlencode({'model': name})}" for name in names}
    return _Content.of(page.html([page.link_model(*each) for each in urls.items()], server=_OWN))


def vocabulary(call: Call) -> Response:
    served = call.model()
    if not served.source:
        raise Refusal(
            f"{served.name} is served from memory, and only files have a vocabulary to send",
            "not_supported_error",
        )
    return _Answer(_vocabulary(served), "application/octet-stream", {})


def _vocabulary(served: Served) -> _Content:
    """Returns the vocabulary as a GGUF file, cached with the tokenizer so that slow clients share
    its bytes."""
    memo = served.tok._loaded.memo
    if _VOCABULARY not in memo:
        found = served.tok.source
        path = None if found is None else found.path
        try:
            _, metadata = metadata_of(path or served.source)
        except GGTokError as e:
            raise unreadable(served, e) from e
        memo[_VOCABULARY] = _Content.of(vocabulary_only(metadata))
    kept: _Content = memo[_VOCABULARY]
    return kept


class _Content(NamedTuple):
    """What an answer contains: as it is, compressed with gzip, and its hash."""

    data: bytes
    packed: bytes
    tag: str

    @classmethod
    def of(cls, data: bytes) -> _Content:
        return cls(data, gzip.compress(data, 6, mtime=0), f'W/"{sha256(data).hexdigest()}"')


class _Answer(Response):
    """An answer that is compressed if the client accepts that, and that a client with the same
    content doesn't receive again. It is sent as fast as the client reads, without copying all the
    data."""

    def __init__(self, content: _Content, media_type: str, headers: dict[str, str]) -> None:
        self._content = content
        # A client asks before it uses its copy, since the file may change.
        own = {"Cache-Control": "no-cache", "ETag": content.tag, "Vary": "Accept-Encoding"}
        self._own = {**headers, **own, "X-Content-Type-Options": "nosniff"}
        super().__init__(media_type=media_type)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = Headers(scope=scope)
        if self._content.tag in asked.get("if-none-match", ""):
            await Response(status_code=304, headers=self._own)(scope, receive, send)
            return
        packed = _accepts_gzip(asked.get("accept-encoding", ""))
        data = self._content.packed if packed else self._content.data

        async def steps() -> AsyncIterator[memoryview]:
            view = memoryview(data)
            for at in range(0, len(view), _STEP):
                yield view[at : at + _STEP]

        headers = {**self._own, "Content-Length": str(len(data))}
        if packed:
            headers["Content-Encoding"] = "gzip"
        answer = StreamingResponse(steps(), media_type=self.media_type, headers=headers)
        await answer(scope, receive, send)


def _accepts_gzip(header: str) -> bool:
    for each in header.lower().split(","):
        name, _, quality = each.partition(";")
        if name.strip() == "gzip":
            return not re.fullmatch(r"\s*q=0(\.0*)?\s*", quality)
    return False


ENDPOINTS = (
    Endpoint("GET", ("/ggtok", HOME), html, light=True, public=True),
    Endpoint("GET", ("/v1/ggtok/vocabulary",), vocabulary),
)
