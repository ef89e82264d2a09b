"""Endpoints for the page that shows the models' vocabularies, and for the vocabularies."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import lru_cache
from urllib.parse import urlencode

from starlette.responses import Response, StreamingResponse

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
        "Cache-Control": "no-store",
        "Referrer-Policy": "no-referrer",
    }
    return _stream(_html(names), "text/html; charset=utf-8", headers)


@lru_cache(maxsize=4)  # slow clients share the bytes
def _html(names: tuple[str, ...]) -> bytes:
    urls = {name: f"{_OWN}vocabulary?{urlencode({'model': name})}" for name in names}
    return page.html([page.linked(*each) for each in urls.items()], server=_OWN)


def vocabulary(call: Call) -> Response:
    served = call.model()
    if not served.source:
        raise Refusal(
            f"{served.name} is served from memory, and only files have a vocabulary to send",
            "not_supported_error",
        )
    return _stream(_vocabulary(served), "application/octet-stream", {})


def _vocabulary(served: Served) -> bytes:
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
        memo[_VOCABULARY] = vocabulary_only(metadata)
    kept: bytes = memo[_VOCABULARY]
    return kept


def _stream(data: bytes, media_type: str, headers: dict[str, str]) -> Response:
    """Returns a response that is sent as fast as the client reads, without copying all the data."""

    async def steps() -> AsyncIterator[memoryview]:
        view = memoryview(data)
        for at in range(0, len(view), _STEP):
            yield view[at : at + _STEP]

    headers = {**headers, "Content-Length": str(len(data)), "X-Content-Type-Options": "nosniff"}
    return StreamingResponse(steps(), media_type=media_type, headers=headers)


ENDPOINTS = (
    Endpoint("GET", ("/ggtok", HOME), html, light=True, public=True),
    Endpoint("GET", ("/v1/ggtok/vocabulary",), vocabulary),
)
