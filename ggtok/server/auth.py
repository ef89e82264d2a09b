"""API keys, which decide who may send requests."""

from __future__ import annotations

import hmac
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ggtok.server.errors import Refusal, llama_server
from ggtok.server.replies import Reply


class Keys:
    """ASGI middleware that refuses requests without one of the keys, as llama-server does.

    Args:
        public: paths for which GET needs no key.
        options: whether OPTIONS needs no key, as in llama-server. Preflight requests from pages are
            answered before they get here.
    """

    def __init__(
        self, app: ASGIApp, keys: Sequence[str], public: frozenset[str], options: bool
    ) -> None:
        self.app = app
        self.keys = [key.encode() for key in keys]
        self.public = public
        self.options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._may(scope):
            refusal = Refusal("Invalid API Key", "authentication_error")
            await Reply.of(refusal, llama_server)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _may(self, scope: Scope) -> bool:
        # A program that mounts the application adds a prefix to its paths.
        path = scope["path"].removeprefix(scope.get("root_path", ""))
        method = scope["method"]
        if not self.keys or (path in self.public and method in ("GET", "HEAD")):
            return True
        if method == "OPTIONS" and self.options:
            return True
        headers = Headers(scope=scope)
        given = headers.get("authorization") or headers.get("x-api-key") or ""
        key = given.removeprefix("Bearer ").encode("latin-1")
        return any(hmac.compare_digest(key, known) for known in self.keys)
