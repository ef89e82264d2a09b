"""Upstream servers whose answers have wrong headers, aren't HTTP, or never end. The client gets
valid HTTP, and the next request on the client's connection gets its own answer."""

from __future__ import annotations

import gzip
import socket
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import ggtok
from ggtok.server import upstream
from tests.server.running import ask, connect, exchange, numbers, running, until_closed
from tests.support import waits
from tests.support.vocabularies import fixture

OK = b"HTTP/1.1 200 OK\r\n"
GET = b"GET /x HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
HEALTH = b'{"status":"ok"}'
Parts = Iterable[bytes]


@pytest.fixture(scope="module")
def tok() -> ggtok.Tokenizer:
    return ggtok.load(fixture("spm"))


class Raw:
    """A server that reads each request up to `end` and sends the parts of `answer`."""

    def __init__(self, answer: Callable[[], Parts], end: bytes = b"\r\n\r\n") -> None:
        self.answer = answer
        self.end = end
        self.requests: list[bytes] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return  # close() was called
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection:
            try:
                request = b""
                while self.end not in request:
                    part = connection.recv(1 << 16)
                    if not part:
                        return
                    request += part
                self.requests.append(request)
                for part in self.answer():
                    connection.sendall(part)
                # Closing while there are bytes to read would reset the connection.
                connection.shutdown(socket.SHUT_WR)
                while connection.recv(1 << 16):
                    pass
            except OSError:
                pass  # ggtok closed the connection

    def close(self) -> None:
        # Closing alone doesn't end accept() in another thread.
        with socket.create_connection(self._listening.getsockname()):
            self._listening.close()


@contextmanager
def behind(tok: ggtok.Tokenizer, *answer: bytes, **options: Any) -> Iterator[tuple[str, Raw]]:
    """Runs a server in front of an upstream server that answers each request with these bytes, and
    yields the server's URL and the upstream server."""
    other = Raw(lambda: answer)
    try:
        with running({"m": tok}, upstream=other.url, **options) as url:
            yield url, other
    finally:
        other.close()


def chunks(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)


@pytest.mark.parametrize(
    ("answer", "status", "body"),
    [
        (OK + b"Content-Length: 3\r\n\r\nabcdef", 200, b"abc"),
        (OK + b"Content-Length: 3, 3\r\n\r\nabc", 200, b"abc"),
        # Chunks take precedence over Content-Length.
        (
            OK + b"Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"abcdef"),
            200,
            chunks(b"abcdef"),
        ),
        (
            OK + b"Content-Length: 30\r\nTransfer-Encoding: chunked\r\n\r\n" + chunks(b"abcdef"),
            200,
            chunks(b"abcdef"),
        ),
        (OK + b"Connection: content-length\r\nContent-Length: 3\r\n\r\nabc", 200, chunks(b"abc")),
        (b"HTTP/1.0 200 OK\r\n\r\nabc", 200, chunks(b"abc")),
        (b'HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\nETag: "a"\r\n\r\n', 304, b""),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\nabcde", 204, b""),
        (b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 9 + OK + b"\r\n", 200, b"0\r\n\r\n"),
        # Redirects are passed on: the client may follow them.
        (
            b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            302,
            b"",
        ),
        # Control characters in headers are replaced, because uvicorn refuses to send them.
        (OK + b"X-A: a\x01b\x7f\r\nContent-Length: 2\r\n\r\nok", 200, b"ok"),
    ],
)
def test_odd_answers(answer: bytes, status: int, body: bytes, tok: ggtok.Tokenizer) -> None:
    with behind(tok, answer) as (url, _):
        found = exchange(url, GET + LAST)
    head, _, rest = found.partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 %d " % status)
    assert not (b"content-length" in head and b"transfer-encoding" in head)
    assert rest.startswith(body + b"HTTP/1.1 200 ") and rest.endswith(HEALTH)


@pytest.mark.parametrize(
    "answer",
    [
        *(b"", b"hello\r\n\r\n", b"HTTP/2 200 OK\r\n\r\nabc", b"\x16\x03\x01\x02\x00"),
        *(OK + b"Content-Length: -5\r\n\r\nabc", OK + b"Content-Length: 9" * 9 + b"\r\n\r\nabc"),
        OK + b"Content-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n" + chunks(b"abc"),
        *(OK + b"X-A: a\x00b\r\n\r\nabc", OK + b"X-A: a\rb\r\n\r\nabc", OK + b"X A: a\r\n\r\nabc"),
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\n" + OK,
        *(b"HTTP/1.1 %d Odd\r\nContent-Length: 2\r\n\r\nok" % n for n in (99, 600, 999)),
        OK + b"".join(b"X-%d: a\r\n" % n for n in range(50_000)),
        b"HTTP/1.1 103 Early Hints\r\n\r\n" * 1000,
    ],
)
def test_invalid_answers(answer: bytes, tok: ggtok.Tokenizer) -> None:
    with behind(tok, answer) as (url, _):
        found = exchange(url, GET + LAST)
    assert found.startswith(b"HTTP/1.1 502 ") and b"the upstream server " in found
    assert b"127.0.0.1" not in found
    assert found.endswith(HEALTH)


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Content-Length: 100\r\n\r\nabc",
        OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffffffffff\r\nabc",
    ],
)
def test_answers_without_an_end(answer: bytes, tok: ggtok.Tokenizer) -> None:
    """The connection is closed, so that the client notices that the answer is incomplete."""
    with behind(tok, answer) as (url, _):
        found = exchange(url, GET + LAST)
    assert found.startswith(b"HTTP/1.1 200 ") and HEALTH not in found
    assert not found.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize("begin", [OK, b""], ids=["headers", "early hints"])
def test_heads_without_an_end(
    begin: bytes, tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte arrives in time, but the whole head doesn't."""
    monkeypatch.setattr(upstream, "HEAD_SECONDS", 0.2)
    enough = threading.Event()

    def drip() -> Iterator[bytes]:
        yield begin
        while not enough.wait(0.01):
            yield b"X-A: a\r\n" if begin else b"HTTP/1.1 103 Early Hints\r\n\r\n"

    other = Raw(drip)
    try:
        with running({"m": tok}, upstream=other.url) as url:
            status, _, found = ask(url, "POST", "/x", b"abc")
            assert status == 504 and "took too long" in found["error"]["message"]
            gauges = numbers(ask(url, "GET", "/metrics")[2].decode())
            assert gauges["ggtok_upstream_requests"] == 0
    finally:
        enough.set()
        other.close()


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n",
        OK + b"\r\nabcdef",
        OK + b"Content-Length: 6\r\n\r\nabcdef",
    ],
    ids=["chunks", "no length", "length"],
)
def test_http_1_0_has_no_chunks(answer: bytes, tok: ggtok.Tokenizer) -> None:
    with behind(tok, answer) as (url, _):
        for method, body in (b"GET", b"abcdef"), (b"HEAD", b""):
            found = exchange(url, method + b" /x HTTP/1.0\r\n\r\n")
            head, _, rest = found.partition(b"\r\n\r\n")
            assert head.startswith(b"HTTP/1.1 200 ") and b"connection: close" in head
            assert b"transfer-encoding" not in head and rest == body


def test_a_compressed_answer_stays_compressed(tok: ggtok.Tokenizer) -> None:
    data = gzip.compress(bytes(10 << 20))
    head = OK + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(data)
    with behind(tok, head, data) as (url, _):
        status, headers, body = ask(url, "GET", "/x")
    assert (status, headers["content-encoding"], body) == (200, "gzip", data)


# ---- answers to ggtok's own questions ----

CONTEXT = b'{"default_generation_settings": {"n_ctx": 50}}'
BODY = {"prompt": "Hi", "model": "m"}


def test_a_question(tok: ggtok.Tokenizer) -> None:
    answer = OK + b"Content-Length: %d\r\n\r\n" % len(CONTEXT) + CONTEXT
    with behind(tok, answer, limit=0) as (url, other):
        assert ask(url, "POST", "/completion", BODY)[0] == 200
        assert b"accept-encoding: identity\r\n" in other.requests[0].lower()
        status, _, found = ask(url, "POST", "/completion", {"prompt": "Hi " * 60})
        assert status == 400 and found["error"]["code"] == "context_length_exceeded"


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(CONTEXT),  # decompressed, an answer could have any length
        b" " * (5 << 20) + CONTEXT,
        b"[" * 100_000,
        b'{"default_generation_settings": {"n_ctx": -1}}',
        b'{"default_generation_settings": {"n_ctx": 1e9}}',
    ],
    ids=["compressed", "long", "deep", "negative", "float"],
)
def test_answers_without_a_context_length(data: bytes, tok: ggtok.Tokenizer) -> None:
    head = OK + b"Content-Encoding: gzip\r\n" * data.startswith(b"\x1f\x8b") + b"\r\n"
    with behind(tok, head, data, limit=0) as (url, _):
        status, _, found = ask(url, "POST", "/completion", BODY)
    assert status == 500 and "doesn't report the context length" in found["error"]["message"]


def test_a_redirect_is_not_followed(tok: ggtok.Tokenizer) -> None:
    with behind(tok, OK + b"\r\n" + CONTEXT) as (_, there):
        redirect = b"HTTP/1.1 302 Found\r\nLocation: %s/props\r\n\r\n" % there.url.encode()
        with behind(tok, redirect, limit=0) as (url, _):
            assert ask(url, "POST", "/completion", BODY)[0] == 500
        assert not there.requests


def test_an_answer_that_drips_times_out(
    tok: ggtok.Tokenizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each byte arrives in time, but the whole answer doesn't."""
    monkeypatch.setattr(upstream, "ASK_SECONDS", 0.2)
    enough = threading.Event()

    def drip() -> Iterator[bytes]:
        yield OK + b"\r\n"
        while not enough.wait(0.01):
            yield b" "

    other = Raw(drip)
    try:
        with running({"m": tok}, upstream=other.url, limit=0) as url:
            status, _, found = ask(url, "POST", "/completion", BODY)
            assert status == 504 and "took too long" in found["error"]["message"]
    finally:
        enough.set()
        other.close()


def test_answers_that_drip_do_not_block_others(tok: ggtok.Tokenizer) -> None:
    enough = threading.Event()

    def drip() -> Iterator[bytes]:
        yield OK + b"\r\n"
        while not enough.wait(0.01):
            yield b"a"

    other = Raw(drip)
    try:
        with running({"m": tok}, upstream=other.url) as url:
            slow = [connect(url) for _ in range(20)]
            for each in slow:
                each.sendall(GET)
            waits.until(lambda: len(other.requests) == len(slow))
            assert ask(url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
            for each in slow:
                assert each.recv(100).startswith(b"HTTP/1.1 200 ")
                each.close()
    finally:
        enough.set()
        other.close()


# ---- requests ----


@pytest.mark.parametrize(
    ("head", "body", "passed"),
    [
        (b"Upgrade: h2c\r\nConnection: Upgrade\r\nContent-Length: 4\r\n", b"abcd", b"\r\n\r\nabcd"),
        (b"Transfer-Encoding: chunked\r\n", chunks(b"abcd"), b"\r\n\r\n" + chunks(b"abcd")),
        (b"Connection: content-length\r\nContent-Length: 4\r\n", b"abcd", chunks(b"abcd")),
        (b"X-A: a \t \r\nContent-Length: 1\r\n", b"a", b"x-a: a\r\ncontent-length: 1\r\n\r\na"),
        (b"Content-Length: 4 \r\n", b"abcd", b"content-length: 4\r\n\r\nabcd"),
    ],
)
def test_odd_requests(head: bytes, body: bytes, passed: bytes, tok: ggtok.Tokenizer) -> None:
    other = Raw(lambda: [OK + b"Content-Length: 2\r\n\r\nok"], passed)
    try:
        with running({"m": tok}, upstream=other.url) as url, connect(url) as connection:
            connection.sendall(b"POST /x HTTP/1.1\r\nHost: localhost\r\n" + head + b"\r\n" + body)
            connection.sendall(LAST)
            found = until_closed(connection)
    finally:
        other.close()
    assert found.startswith(b"HTTP/1.1 200 ") and found.endswith(HEALTH)
    assert b"upgrade" not in other.requests[0].lower()


def test_other_transfer_encodings_are_refused(tok: ggtok.Tokenizer) -> None:
    head = b"POST /x HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: gzip, chunked\r\n\r\n"
    with behind(tok, OK + b"\r\n") as (url, other):
        found = exchange(url, head + chunks(b"abc") + LAST)
        assert found.startswith(b"HTTP/1.1 501 ") and found.endswith(HEALTH)
        assert not other.requests
