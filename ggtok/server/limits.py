"""Bounds of the memory that requests' bodies take."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from contextlib import AbstractAsyncContextManager, nullcontext

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from ggtok.server.errors import Refusal

TOTAL = 4  # longest bodies that may be in memory together
_MODEST = 1 << 16  # bytes of a body that is accepted however much the others take
# JSON takes up to 40 times its bytes once it is parsed, so only one body above this is answered at
# a time.
_LARGE = 1 << 20

Headers = Iterable[tuple[bytes, bytes]]


class Bodies:
    """The bodies in memory. To be used on the event loop only.

    Attributes:
        most: the longest body, in bytes.
        total: bytes of all bodies together.
        held: bytes in memory now.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = TOTAL * most
        self.held = 0
        self._large = asyncio.Semaphore(1)

    def held_body(self) -> Held:
        return Held(self)

    def turn(self, size: int) -> AbstractAsyncContextManager[None]:
        """Within it, no other large body is answered."""
        return self._large if size > _LARGE else nullcontext()


class Held:
    """The body of a request; a context manager that counts it as in memory until its end."""

    __slots__ = ("_bodies", "_size")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._size = 0

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self._bodies.held -= self._size

    async def read(self, receive: Receive, headers: Headers) -> bytes:
        """Returns the body.

        Raises:
            Refusal: it is too long (413), or too much is in memory (503).
            ClientDisconnect: the client went away.
        """
        bodies = self._bodies
        for name, value in headers:
            if name == b"content-length" and value.isdigit() and int(value[:18]) > bodies.most:
                raise _too_long(bodies.most)
        parts: list[bytes] = []
        more = True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            more = message.get("more_body", False)
            part = message.get("body", b"")
            self._size += len(part)
            bodies.held += len(part)
            if self._size > bodies.most:
                raise _too_long(bodies.most)
            if self._size > _MODEST and bodies.held > bodies.total:
                busy = "other requests' bodies take all memory that they may; try again"
                raise Refusal(busy, "unavailable_error")
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(most: int) -> Refusal:
    message = f"the body is longer than {most} bytes"
    return Refusal(message, "invalid_request_error", status=413)
