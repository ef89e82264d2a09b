"""Refuses requests that name another server, or that come from foreign web pages.

A page from any site can make a browser send requests to a server on the same machine. Two checks
prevent that. The ``Host`` header must be a name of this server: a site whose own name resolves to
127.0.0.1 ("DNS rebinding") sends its own name. And the ``Origin`` header, which browsers add to
requests from pages, must name this server or be in a list.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ggtok.errors import InvalidValueError
from ggtok.server.fields import quote_value
from ggtok.server.refusals import Refusal, llama_server
from ggtok.server.replies import Reply

ANY = "*"
_ORIGIN = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*://[^/\s]+/?")
_REMEMBERED = 256  # the most host names whose check is cached
_PREFLIGHT_SECONDS = b"600"


def check_origins(origins: Iterable[str]) -> None:
    """Raises InvalidValueError for an origin that no page can have."""
    for origin in origins:
        if origin != ANY and not _ORIGIN.fullmatch(origin):
            raise InvalidValueError(
                f"{origin!r} is not an origin of web pages, such as https://chat.example"
            )


class Origins:
    """ASGI middleware that refuses requests with foreign host names and from foreign pages.

    Args:
        hosts: names of this server besides localhost and IP addresses; ``*`` accepts every name.
        origins: pages that may use the server, such as ``https://chat.example``; ``*`` accepts all.
        exposed: names of response headers that those pages may read.
    """

    def __init__(
        self, app: ASGIApp, hosts: Iterable[str], origins: Iterable[str], exposed: Iterable[str]
    ) -> None:
        self.app = app
        self.hosts = {host.lower().rstrip(".") for host in hosts}
        self.origins = {origin.lower().rstrip("/").encode() for origin in origins}
        self.any_origin = ANY.encode() in self.origins
        self.exposed = ", ".join(exposed).encode()
        self._known: dict[bytes, bool] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        found = {name: value for name, value in scope["headers"] if name in _READ}
        origin = found.get(b"origin")
        try:
            self._check_host(scope)
            foreign = self._check_page(scope, found)
        except Refusal as e:
            await Reply.of(e, llama_server)(scope, receive, send)
            return
        if origin is None or not foreign:
            await self.app(scope, receive, send)
        elif scope["method"] == "OPTIONS" and _METHOD in found:
            await _answer_preflight(origin, found, send)
        else:
            await self.app(scope, receive, self._readable(origin, send))

    def _check_host(self, scope: Scope) -> None:
        named = [value for name, value in scope["headers"] if name == b"host"]
        if len(named) > 1 or (not named and scope.get("http_version") != "1.0"):
            raise Refusal("a request needs one Host header")
        for host in named:
            known = self._known.get(host)
            if known is None:
                known = self._is_ours(_without_port(host.decode("latin-1").lower()))
                if len(self._known) < _REMEMBERED:
                    self._known[host] = known
            if not known:
                name = _without_port(host.decode("latin-1"))
                raise Refusal(
                    f"{quote_value(name)} isn't a name of this server; if it should be, start the "
                    "server with --allowed-host NAME",
                    "permission_error",
                )

    def _is_ours(self, name: str) -> bool:
        name = name.rstrip(".")
        if ANY in self.hosts or name in self.hosts or name == "localhost":
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return name.endswith(".localhost")
        return True

    def _check_page(self, scope: Scope, found: dict[bytes, bytes]) -> bool:
        """Whether an allowed page of another origin sent the request. Raises Refusal if the page
        isn't allowed."""
        origin = found.get(b"origin")
        if origin is None:
            cross = found.get(b"sec-fetch-site") == b"cross-site" and not self.any_origin
            link = scope["method"] in ("GET", "HEAD") and found.get(b"sec-fetch-mode") == _NAVIGATE
            if cross and not link:
                raise Refusal(
                    "requests from other sites' pages aren't answered", "permission_error"
                )
            return False
        origin = origin.lower()
        if origin.partition(b"://")[2] == found.get(b"host", b"").lower() != b"":
            return False
        if not self.any_origin and origin not in self.origins:
            raise Refusal(
                f"pages of {quote_value(origin.decode('latin-1'))} may not use this server; if "
                "they should, start it with --cors-origin ORIGIN",
                "permission_error",
            )
        return True

    def _readable(self, origin: bytes, send: Send) -> Send:
        """Wraps `send` so that the page with this origin may read the answer."""

        async def readable(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = [*message.get("headers", ()), *_allow(origin)]
                headers.append((b"access-control-expose-headers", self.exposed))
                message = {**message, "headers": headers}
            await send(message)

        return readable


_METHOD = b"access-control-request-method"
_HEADERS = b"access-control-request-headers"
_NETWORK = b"access-control-request-private-network"
_READ = {b"host", b"origin", b"sec-fetch-site", b"sec-fetch-mode", _METHOD, _HEADERS, _NETWORK}
_NAVIGATE = b"navigate"
_HOST = re.compile(r"(\[(?P<v6>[^\]]*)\]|(?P<name>[^:]*))(:[0-9]*)?")


def _without_port(host: str) -> str:
    found = _HOST.fullmatch(host)
    return host if found is None else found["v6"] or found["name"]


def _allow(origin: bytes) -> list[tuple[bytes, bytes]]:
    return [(b"access-control-allow-origin", origin), (b"vary", b"Origin")]


async def _answer_preflight(origin: bytes, found: dict[bytes, bytes], send: Send) -> None:
    headers = _allow(origin)
    headers.append((b"access-control-allow-methods", b"GET, HEAD, POST, PUT, PATCH, DELETE"))
    headers.append((b"access-control-allow-headers", found.get(_HEADERS, b"*")))
    headers.append((b"access-control-max-age", _PREFLIGHT_SECONDS))
    if _NETWORK in found:
        headers.append((b"access-control-allow-private-network", b"true"))
    await send({"type": "http.response.start", "status": 204, "headers": headers})
    await send({"type": "http.response.body"})
