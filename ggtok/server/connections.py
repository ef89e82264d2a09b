"""uvicorn's HTTP connections, with limits for slow clients and for the number of clients.

uvicorn waits without limit for a client to send a request's head and body and to read the answer,
and keeps any number of connections. Here a connection is

- closed with status 408 if a head or a body takes too long,
- closed with status 431 if a head, or anything else outside a body, is too long,
- aborted if the client doesn't read the answer,
- kept open for a moment if a request is refused before it has arrived, so that the client can read
  the answer,
- closed if there are too many connections and this one has been idle longest, so that idle
  connections never keep new clients out.

One timer per process checks all connections once a second, so requests need no timers.
"""

from __future__ import annotations

import asyncio
import json
import os
from collections import deque
from itertools import islice
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
from uvicorn.server import ServerState

HEAD_SECONDS = 15.0  # from a connection's start, or a request's first byte, to the end of the head
BODY_SECONDS = 30.0  # for a body to arrive, plus one second for each BODY_RATE bytes of it
BODY_RATE = 1 << 18
STUCK_SECONDS = 30.0  # for a client to read at least one byte of an answer
LINGER_SECONDS = 5.0  # to read on if a request is refused before it has arrived
# Bytes of a request line and headers, of those of all waiting requests, or between two parts of a
# chunked body.
MOST_HEAD = 1 << 15
MOST_QUEUED = 32  # requests on one connection that may wait for earlier answers
MOST_CONNECTIONS = 2048
MOST_UNREAD = 256 << 20  # bytes of answers that all clients together haven't read yet
_SPARE_FILES = 320  # file descriptors to keep for other uses, such as the upstream server
_PERIOD = 1.0
_STATE = "ggtok.connections"

_OVERHEAD = 32  # bytes to add to the size of each header, for the memory that its objects take

# The phases of a connection: idle after a request (limited by uvicorn's timer), waiting for the
# first byte of a request (limited by HEAD_SECONDS), or receiving a request's head or body.
_IDLE, _NOTHING, _HEAD, _BODY = range(4)
_REASONS = {
    400: "the request isn't valid HTTP",
    408: "the request took too long to arrive",
    431: "the request's headers are too long, or too many requests wait for answers before them",
    503: "too many connections; try again",
}


class _Unchunked(RequestResponseCycle):
    """An HTTP/1.0 request and its answer. HTTP/1.0 has no chunks, so an answer of unknown length
    ends where the connection ends."""

    endless = False

    async def send(self, message: Any) -> None:
        if message["type"] == "http.response.start":
            names = [name.lower() for name, _ in message.get("headers", ())]
            if b"content-length" not in names:
                self.endless, self.chunked_encoding = True, False
        elif self.endless:
            self.expected_content_length = len(message.get("body", b""))  # uvicorn checks it
        await super().send(message)


def _end(transport: Any) -> None:
    """Ends a _Transport. Type checkers see uvicorn's type for the attribute of a Connection."""
    transport.end()


class _Transport:
    """A connection's transport. If the client is still sending, closing it only ends the sending of
    answers: if the connection ended, too, the client's next packet would be rejected, and the
    client could lose an answer that it hasn't read yet. What the client sends is dropped."""

    def __init__(self, transport: asyncio.Transport, connection: Connection) -> None:
        self._transport = transport
        self._connection = connection
        self.lingers_since: float | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def is_closing(self) -> bool:
        return self.lingers_since is not None or self._transport.is_closing()

    def close(self) -> None:
        if self.is_closing():
            return
        if self._connection.phase not in (_HEAD, _BODY) or not self._transport.can_write_eof():
            self._transport.close()
            return
        self.lingers_since = self._connection.loop.time()
        self._connection.pipeline.clear()
        self._transport.write_eof()
        self._connection.flow.resume_reading()

    def end(self) -> None:
        """Ends the connection, even if the client is still sending."""
        self._transport.close()


class Connection(HttpToolsProtocol):
    """A connection, with a record of how much of a request the client has sent."""

    transport: _Transport  # type: ignore[assignment]

    def __init__(
        self,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        if _STATE not in app_state:
            app_state[_STATE] = Connections(self.loop, server_state)
        self.all: Connections = app_state[_STATE]
        self.phase = _NOTHING
        self.since = self.loop.time()  # when the phase began
        self.turn = self.all.next_turn()  # orders idle connections: see Connections.next_turn
        self.size = 0  # bytes of the body so far
        self.between = 0  # bytes received since the last part of a body, or since the end of a head
        # The sizes of the last heads that had to wait, the newest last.
        self.heads: deque[int] = deque(maxlen=MOST_QUEUED + 1)
        self.queued_too_much = False  # whether heads that wait are too long together
        self.unread = 0  # bytes of answers that the client hadn't read at the last check
        self.stuck_since = 0.0

    @property
    def idle(self) -> bool:
        """Whether no body is arriving, no request is being answered, and no bytes of an answer are
        left to send."""
        if self.transport.lingers_since is not None:
            return True
        answered = self.cycle is None or self.cycle.response_complete
        return answered and self.phase != _BODY and not self.transport.get_write_buffer_size()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.transport = _Transport(transport, self)
        if not self.all.has_room(self):
            self.refuse(503)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self.between += len(data)
        self._unset_keepalive_if_required()
        try:
            self._parse(data)
        except HttpParserError:
            self.refuse(400)
            return
        queued_too_much = self.queued_too_much or len(self.pipeline) > MOST_QUEUED
        if self.between > MOST_HEAD or queued_too_much:
            self.refuse(431)
        elif self.phase == _IDLE and self.idle and self.timeout_keep_alive_task is None:
            # Blank lines before a request have stopped uvicorn's timer, so limit the wait here.
            self.phase, self.since = _NOTHING, self.loop.time()

    def _parse(self, data: bytes) -> None:
        """Parses data. A request to upgrade the protocol is answered like any other request.

        httptools treats everything after the head of such a request as data of the new protocol,
        even the request's body, which uvicorn would then drop or parse as the next request. So a
        new parser gets the head a second time, without the header ``Upgrade``. (The old one drops
        all further data if the head also has ``Connection: close``.)
        """
        while data and len(self.pipeline) <= MOST_QUEUED:
            try:
                self.parser.feed_data(data)
                return
            except HttpParserUpgrade as e:
                method = self.parser.get_method()
                if method == b"CONNECT":
                    raise HttpParserError from e
                version = self.parser.get_http_version().encode()
                kept = (b"%s: %s" % each for each in self.headers if each[0] != b"upgrade")
                head = (method + b" " + self.url + b" HTTP/" + version, *kept, b"\r\n")
                data = b"\r\n".join(head) + data[e.args[0] :]
                self.parser = HttpRequestParser(self)
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self.phase, self.since = _HEAD, self.loop.time()

    def on_header(self, name: bytes, value: bytes) -> None:
        # Ignore headers after the body: uvicorn would treat them like those before it.
        if self.phase == _HEAD:
            super().on_header(name, value.rstrip(b" \t"))

    def on_headers_complete(self) -> None:
        if self.parser.should_upgrade():
            return  # _parse feeds the head a second time
        sizes = (len(name) + len(value) + _OVERHEAD for name, value in self.headers)
        size = self.between = sum(sizes, len(self.url))
        if self.between > MOST_HEAD:
            return  # data_received refuses the request
        self.between = 0
        self.phase, self.since, self.size = _BODY, self.loop.time(), 0
        super().on_headers_complete()
        if self.pipeline:
            self.heads.append(size)
            waiting = islice(reversed(self.heads), len(self.pipeline))
            self.queued_too_much = sum(waiting) > MOST_HEAD
        if self.scope["http_version"] != "1.1":
            self.cycle.__class__ = _Unchunked  # its task hasn't begun yet

    def on_body(self, body: bytes) -> None:
        if self.phase == _BODY:
            self.between = 0
            self.size += len(body)
            super().on_body(body)

    def on_message_complete(self) -> None:
        if self.phase == _BODY:
            self.between = 0
            self.phase, self.turn = _IDLE, self.all.next_turn()
            super().on_message_complete()

    def refuse(self, status: int) -> None:
        """Answers with an error, unless an answer has begun, and closes the connection."""
        if self.cycle is None or self.cycle.response_complete or not self.cycle.response_started:
            kind = "unavailable_error" if status == 503 else "invalid_request_error"
            error = {"code": status, "message": _REASONS[status], "type": kind}
            body = json.dumps({"error": error})
            head = f"HTTP/1.1 {status} \r\ncontent-type: application/json; charset=utf-8\r\n"
            head += f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
            self.transport.write((head + body).encode())
        self.transport.close()

    def look(self, now: float) -> None:
        """Closes the connection if its client is too slow."""
        unread = self.transport.get_write_buffer_size()
        if unread == 0 or unread != self.unread:
            self.unread, self.stuck_since = unread, now
        elif now - self.stuck_since > STUCK_SECONDS:
            self.transport.abort()
            return
        if self.transport.lingers_since is not None and unread == 0:
            if now - self.transport.lingers_since > LINGER_SECONDS:
                self.transport.end()
            return
        if self.transport.is_closing():
            return
        if self.flow.read_paused:
            self.since += _PERIOD  # the server is slow, not the client
        elif self.phase in (_NOTHING, _HEAD):
            if now - self.since > HEAD_SECONDS:
                if self.phase == _HEAD:
                    self.refuse(408)
                self.transport.close()
        elif self.phase == _BODY and now - self.since > BODY_SECONDS + self.size / BODY_RATE:
            self.refuse(408)


class Connections:
    """All connections of a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop, state: ServerState) -> None:
        self._loop = loop
        self._open = state.connections
        self._turns = 0
        files = _most_files()
        self.most = min(MOST_CONNECTIONS, max(files - _SPARE_FILES, files // 2))
        self._timer = loop.call_later(_PERIOD, self._look)

    def __len__(self) -> int:
        return len(self._open)

    def next_turn(self) -> int:
        """Returns the next number in a sequence that orders connections by when they were opened or
        last sent a request."""
        self._turns += 1
        return self._turns

    def has_room(self, newest: Connection) -> bool:
        """Whether there is room for the newest connection. To make room, closes the connections
        that have waited longest for a request."""
        if len(self._open) <= self.most:
            return True
        idle = [c for c in self._open if isinstance(c, Connection) and c.idle and c is not newest]
        # Don't sort by `since`, because part of a head would make an old connection look new.
        idle.sort(key=lambda connection: connection.turn)
        for connection in idle[: self.most // 8 + 1]:  # many at once, to sort rarely
            self._open.discard(connection)
            _end(connection.transport)
        return len(self._open) <= self.most

    def _look(self) -> None:
        now = self._loop.time()
        found = [c for c in self._open if isinstance(c, Connection)]
        for connection in found:
            connection.look(now)
        unread = sum(connection.unread for connection in found)
        if unread > MOST_UNREAD:
            for connection in sorted(found, key=lambda c: c.unread, reverse=True):
                connection.transport.abort()
                unread -= connection.unread
                if unread <= MOST_UNREAD:
                    break
        self._timer = self._loop.call_later(_PERIOD, self._look)


def _most_files() -> int:
    """Raises this process's limit for open files as far as needed and allowed, and returns the
    limit."""
    if os.name == "nt":
        return MOST_CONNECTIONS + _SPARE_FILES
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_CONNECTIONS + _SPARE_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    return wanted if soft == resource.RLIM_INFINITY else soft
