"""Runs the server in a thread, on a local port."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

import uvicorn

from ggtok import server
from ggtok.server.serving import configuration
from tests.support import waits


@contextmanager
def running(models: object, **options: Any) -> Iterator[str]:
    """Runs a server for models and yields its URL. `options` are those of
    :func:`ggtok.server.app`."""
    with listening(server.app(models, **options)) as url:
        yield url


class _Server(uvicorn.Server):
    """A server that checks every 5 ms, instead of 100, whether to exit."""

    async def main_loop(self) -> None:
        ticks = 0
        while not await self.on_tick(ticks):
            ticks += 1
            await asyncio.sleep(0.005)


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Runs an ASGI application and yields its URL."""
    made = _Server(configuration(app, log_config=None))
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=made.run, args=([bound],))
        thread.start()
        try:
            waits.until(lambda: made.started or not thread.is_alive())
            yield f"http://127.0.0.1:{bound.getsockname()[1]}"
        finally:
            made.should_exit = True
            thread.join()


def connect(url: str) -> socket.socket:
    """Opens a raw connection, for bytes that an HTTP client wouldn't send."""
    address = urlsplit(url)
    made = socket.create_connection((address.hostname, address.port), waits.LIMIT)
    made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return made


def exchange(url: str, data: bytes) -> bytes:
    """Sends bytes and returns everything that the server sends until the connection ends."""
    with connect(url) as connection:
        connection.sendall(data)
        return until_closed(connection)


def until_closed(connection: socket.socket) -> bytes:
    parts = []
    try:
        while part := connection.recv(1 << 16):
            parts.append(part)
    except ConnectionResetError:
        pass  # the server closed the connection while we were sending
    return b"".join(parts)


def ask(
    url: str, method: str, path: str, body: Any = None, headers: dict[str, str] | None = None
) -> tuple[int, dict[str, str], Any]:
    address = urlsplit(url)
    connection = http.client.HTTPConnection(
        address.hostname or "", address.port, timeout=waits.LIMIT
    )
    data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
    connection.request(method, path, data, headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    found = {name.lower(): value for name, value in answer.getheaders()}
    return answer.status, found, json.loads(text) if text.startswith((b"{", b"[")) else text


def numbers(text: str) -> dict[str, float]:
    """Returns the values in /metrics by name."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}
