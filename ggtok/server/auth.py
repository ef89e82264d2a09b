"""API keys, which decide who may send requests."""

from __future__ import annotations

import hmac
import re
from collections.abc import Sequence

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ggtok.errors import InvalidTypeError, InvalidValueError
from ggtok.server.endpoints import path_of
from ggtok.server.refusals import Refusal, llama_server
from ggtok.server.replies import Reply

# A key that every client sends as the same bytes in a header.
_KEY = re.compile(r"[!-~]+( +[!-~]+)*")
LONGEST_KEY = 4096  # characters; many clients and proxies limit a header to 8 KiB


def check_key(key: object, whose: str) -> None:
    """Raises an error for a key that clients can't send. The error doesn't quote the key."""
    if not isinstance(key, str):
        raise InvalidTypeError(f"{whose} must be a string, not {type(key).__name__}")
    if not key:
        raise InvalidValueError(f"{whose} is empty, so it would protect nothing")
    if len(key) > LONGEST_KEY:
        raise InvalidValueError(f"{whose} has {len(key)} characters; at most {LONGEST_KEY} work")
    if not _KEY.fullmatch(key):
        raise InvalidValueError(
            f"{whose} may have printable ASCII characters only, and no space at its ends: HTTP "
            "clients can't send others, or send them in different ways"
        )


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
        self.keys = [key.encode("ascii") for key in keys]
        self.public = public
        self.options = options

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._may(scope):
            refusal = Refusal("Invalid API Key", "authentication_error")
            await Reply.of(refusal, llama_server)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    def _may(self, scope: Scope) -> bool:
        path, method = path_of(scope), scope["method"]
        if not self.keys or (path in self.public and method in ("GET", "HEAD")):
            return True
        if method == "OPTIONS" and self.options:
            return True
        headers = Headers(scope=scope)
        sent = headers.get("authorization") or headers.get("x-api-key") or ""
        key = sent.removeprefix("Bearer ").encode("latin-1")
        return any(hmac.compare_digest(key, known) for known in self.keys)
