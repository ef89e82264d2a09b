"""Limits for the memory that requests' bodies use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from starlette.requests import ClientDisconnect
from starlette.types import Receive

from ggtok.server.refusals import Refusal

TOTAL = 4  # how many bodies of maximum length may be in memory together
_MODEST = 1 << 16  # bytes; a body up to this size is accepted even if the others use all memory
# Parsed JSON can take up to 40 times the memory of its text, so only one body or decoded text with
# more bytes than this is answered at a time.
LARGE = 1 << 20

Headers = Iterable[tuple[bytes, bytes]]


class Bodies:
    """An account of the bodies in memory, which may be used only on the event loop.

    Attributes:
        most: the maximum size of a body, in bytes.
        total: the maximum size of all bodies together, in bytes.
        held: the current size of all bodies in memory, in bytes.
        large: held while an answer that needs much memory is created.
    """

    def __init__(self, most: int) -> None:
        self.most = most
        self.total = TOTAL * most
        self.held = 0
        self.large = asyncio.Semaphore(1)

    def reader(self) -> BodyReader:
        return BodyReader(self)


class BodyReader:
    """A context manager that reads a request's body, and counts it as in memory until the context
    ends."""

    __slots__ = ("_bodies", "_size")

    def __init__(self, bodies: Bodies) -> None:
        self._bodies = bodies
        self._size = 0

    def __enter__(self) -> BodyReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._bodies.held -= self._size

    async def read(self, receive: Receive, headers: Headers) -> bytes:
        """Reads and returns the body.

        Raises:
            Refusal: the body is too long (413), or all bodies use too much memory (503).
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
                busy = "the memory for requests' bodies is full; try again"
                raise Refusal(busy, "unavailable_error")
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _too_long(most: int) -> Refusal:
    message = f"the body is longer than {most} bytes"
    return Refusal(message, "invalid_request_error", status=413)
