"""Clients that are slow, numerous or malicious get errors or are disconnected, and don't block
other clients."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from uvicorn.server import ServerState

from ggtok.server import connections, limits
from tests.server.running import ask, connect, exchange, running, until_closed
from tests.support import waits
from tests.support.vocabularies import fixture

HEAD = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
GET = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
LAST = b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
MODEL = fixture("bpe-llama3")


@pytest.fixture
def start(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., str]]:
    """Returns a function that sets limits, starts a server, and returns its URL."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        def begin(options: dict[str, Any] | None = None, **bounds: float) -> str:
            for name, value in bounds.items():
                monkeypatch.setattr(connections, name, value)
            return stack.enter_context(running(MODEL, **(options or {})))

        yield begin


def status_of(answer: bytes) -> int:
    found = re.match(rb"HTTP/1\.1 (\d{3}) ", answer)
    assert found, answer[:200]
    return int(found[1])


def works(url: str) -> None:
    assert ask(url, "GET", "/health")[0] == 200


QUICK = {"_PERIOD": 0.01, "HEAD_SECONDS": 0.05, "BODY_SECONDS": 0.05}


@pytest.mark.parametrize(
    "begin",
    [
        *(b"G", b"GET /health HTTP/1.1\r\nHost: loc", GET + b"GET /hea", GET + b"\r\n\r\n\r\nP"),
        HEAD + b"Content-Length: 10\r\n\r\n12345",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n123\r\n",
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;",
        HEAD + b"Content-Length: 1000000000\r\n\r\n123",  # rejected before the rest arrives
    ],
)
def test_slow_requests(begin: bytes, start: Callable[..., str]) -> None:
    url = start(**QUICK)
    with connect(url) as slow:
        slow.sendall(begin)
        answers = until_closed(slow)
        assert b"HTTP/1.1 408 " in answers
        assert b"the request took too long to arrive" in answers
    works(url)


@pytest.mark.parametrize("begin", [b"", b"\r\n\r\n", GET])
def test_idle_connections(begin: bytes, start: Callable[..., str]) -> None:
    url = start(**QUICK)
    with connect(url) as idle:
        idle.sendall(begin)
        if begin == GET:
            assert status_of(idle.recv(10_000)) == 200
            idle.sendall(b"\r\n")
        assert not until_closed(idle)
    works(url)


def test_slow_but_steady_bodies(start: Callable[..., str]) -> None:
    url = start(_PERIOD=0.01, BODY_SECONDS=0.01, BODY_RATE=0.01)
    body = json.dumps({"content": "Hi"}).encode()
    with connect(url) as slow:
        slow.sendall(HEAD + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body))
        for at in range(len(body)):
            slow.sendall(body[at : at + 1])
        assert status_of(until_closed(slow)) == 200


def test_clients_that_do_not_read(start: Callable[..., str]) -> None:
    url = start(_PERIOD=0.01, STUCK_SECONDS=0.05)
    body = json.dumps({"content": "x " * 2_000_000}).encode()
    with connect(url) as stuck:
        stuck.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
        waits.until(lambda: not _open_connections(url))
        assert b"]" not in until_closed(stuck)[-10:]
    works(url)


def test_many_bytes_that_are_not_read(start: Callable[..., str]) -> None:
    url = start(_PERIOD=0.01, MOST_UNREAD=1 << 20)
    body = json.dumps({"content": "x " * 2_000_000}).encode()
    stuck = [connect(url) for _ in range(3)]
    for one in stuck:
        one.sendall(HEAD + b"Content-Length: %d\r\n\r\n" % len(body) + body)
    waits.until(lambda: not _open_connections(url))
    for one in stuck:
        one.close()
    works(url)


def _open_connections(url: str) -> list[str]:
    """Returns the established connections to the server, according to the kernel."""
    port = f":{int(url.rpartition(':')[2]):04X}"
    lines = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    return [line[1] for line in lines if line[1].endswith(port) and line[3] == "01"]


_LINUX = pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="reads /proc")
test_clients_that_do_not_read = _LINUX(test_clients_that_do_not_read)
test_many_bytes_that_are_not_read = _LINUX(test_many_bytes_that_are_not_read)


@pytest.mark.parametrize(
    "request_",
    [
        GET[:-2] + b"X: " + b"a" * 40_000 + b"\r\n\r\n",
        GET[:-2] + b"X: a\r\n" * 8_000 + b"\r\n",
        b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
        GET[:-2] + b"X: " + b"a" * 400_000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3;" + b"a" * 400_000,
        HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n123\r\n0\r\nX: " + b"a" * 400_000,
        GET * 5_000,
        (GET[:-2] + b"Connection: upgrade\r\nUpgrade: x\r\n\r\n") * 5_000,
    ],
)
def test_long_heads(request_: bytes, start: Callable[..., str]) -> None:
    url = start()
    answers = exchange(url, request_)
    assert not answers or b"HTTP/1.1 431 " in answers or b"HTTP/1.1 200 " in answers
    assert answers.count(b"HTTP/1.1 200 ") < 1000
    works(url)


def test_pipelined_requests(start: Callable[..., str]) -> None:
    url = start()
    bodies = [json.dumps({"content": "a" * n}).encode() for n in range(20)]
    data = b"".join(HEAD + b"Content-Length: %d\r\n\r\n" % len(b) + b for b in bodies)
    answers = exchange(url, data + LAST)
    assert answers.count(b"HTTP/1.1 200 ") == 21
    counts = [int(n) for n in re.findall(rb'"count":(\d+)', answers)]
    assert counts == sorted(counts) and len(counts) == 20


INVALID = [
    *(b"\x00" * 100, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET\r\n\r\n"),
    *(
        b"GET / HTTP/9.9\r\n\r\n",
        b"FOO / HTTP/1.1\r\nHost: a\r\n\r\n",
        GET[:-2] + b"No colon\r\n\r\n",
    ),
    *(GET[:-2] + b"Bad name: 1\r\n\r\n", GET[:-2] + b"X: a\x00b\r\n\r\n"),
    HEAD + b"Content-Length: -1\r\n\r\n",
    HEAD + b"Content-Length: 1e3\r\n\r\n",
    HEAD + b"Content-Length: 99999999999999999999\r\n\r\n",
    HEAD + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
    HEAD + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n12345\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n-5\r\n12345",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\n3\r\n12345\r\n0\r\n\r\n",
    HEAD + b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    HEAD + b"Transfer-Encoding: chunked, identity\r\n\r\n",
    b"CONNECT /health HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"CONNECT localhost:80 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
]


@pytest.mark.parametrize("data", INVALID, ids=range(len(INVALID)))
def test_what_is_not_http(data: bytes, start: Callable[..., str]) -> None:
    url = start()
    answer = exchange(url, data)
    if answer:  # empty if the connection was reset
        assert status_of(answer) == 400
        assert b'"type": "invalid_request_error"' in answer or b"isn't" in answer
    works(url)


UPGRADE = b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
COUNT = b'{"content": "Hi"}'
LENGTH = b"Content-Length: %d\r\n\r\n" % len(COUNT)
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n" % (len(COUNT), COUNT)


@pytest.mark.parametrize("size", [1, 7, 1 << 16])
@pytest.mark.parametrize("head", [UPGRADE, UPGRADE.replace(b"h2c", b"websocket")])
@pytest.mark.parametrize("body", [LENGTH + COUNT, CHUNKED + b"\r\n"])
def test_changes_of_protocol(
    size: int, head: bytes, body: bytes, start: Callable[..., str]
) -> None:
    """A request to upgrade the protocol is answered, and its body isn't parsed as a request. Java's
    HTTP client asks for HTTP/2 in this way."""
    url = start()
    data = (HEAD + head + body) * 3 + LAST
    with connect(url) as connection:
        for at in range(0, len(data), size):
            connection.sendall(data[at : at + size])
        answers = until_closed(connection)
    assert answers.count(b'{"tokens":[39,72],"count":2}') == 3
    assert answers.count(b"HTTP/1.1 ") == 4 and answers.endswith(b'{"status":"ok"}')


def test_a_body_is_no_request(start: Callable[..., str]) -> None:
    url = start()
    smuggled = b"DELETE /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n"
    head = HEAD + UPGRADE + b"Content-Length: %d\r\n\r\n" % len(smuggled)
    with connect(url) as connection:
        connection.sendall(head)
        connection.sendall(smuggled + LAST)
        answers = until_closed(connection)
    assert status_of(answers) == 400 and b"isn't valid JSON" in answers
    assert answers.count(b"HTTP/1.1 ") == 2 and b"404" not in answers


def test_headers_after_a_body(start: Callable[..., str]) -> None:
    """Headers after the body are ignored, because the checks of headers come before the body."""
    url = start({"api_keys": ["k"]})
    for late in b"X-Api-Key: k", b"Host: localhost", b"Origin: http://evil.example":
        data = HEAD + CHUNKED + late + b"\r\n\r\n"
        assert status_of(exchange(url, data + LAST)) == 401
        data = HEAD + b"X-Api-Key: k\r\n" + CHUNKED + late + b"\r\n\r\n"
        assert status_of(exchange(url, data + LAST)) == 200


def test_spaces_after_a_header(start: Callable[..., str]) -> None:
    url = start({"api_keys": ["k"]})
    data = (
        b"GET /metrics HTTP/1.1\r\nHost: localhost \t\r\nX-Api-Key: k \r\nConnection: close\r\n\r\n"
    )
    assert status_of(exchange(url, data)) == 200


def test_a_host_is_needed(start: Callable[..., str]) -> None:
    url = start()
    assert status_of(exchange(url, b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n")) == 400
    assert status_of(exchange(url, b"GET /health HTTP/1.0\r\n\r\n")) == 200


def test_bodies_that_nobody_reads(start: Callable[..., str]) -> None:
    url = start({"max_body": 1000})
    with connect(url) as liar:
        liar.sendall(HEAD + b"Content-Length: 200000\r\n\r\n" + b" " * 200_000 + LAST)
        answers = until_closed(liar)
    assert b"HTTP/1.1 413 " in answers and answers.count(b"HTTP/1.1 200 ") == 1
    data = HEAD + b"Transfer-Encoding: chunked\r\n\r\n" + b"400\r\n" + b" " * 0x400 + b"\r\n"
    with connect(url) as liar:
        liar.sendall(data + b"5\r\n12345\r\n0\r\n\r\n" + LAST)
        answers = until_closed(liar)
    assert b"HTTP/1.1 413 " in answers and answers.count(b"HTTP/1.1 200 ") == 1


def test_half_closed_connections(start: Callable[..., str]) -> None:
    """If a client closes its sending side, the server closes the connection."""
    import socket

    url = start()
    for data in b"", b"GET /hea", HEAD + b"Content-Length: 9\r\n\r\n123", GET:
        with connect(url) as half:
            half.sendall(data)
            half.shutdown(socket.SHUT_WR)
            until_closed(half)
    works(url)


def test_many_idle_connections_do_not_block_others(start: Callable[..., str]) -> None:
    url = start(MOST_CONNECTIONS=16)
    idle = []
    for _ in range(100):
        idle.append(connect(url))
        idle[-1].sendall(GET[:10])
    works(url)
    closed = 0
    for one in idle[:60]:
        closed += not until_closed(one)
    assert closed == 60
    for one in idle:
        one.close()


@pytest.mark.parametrize(("files", "most"), [(1 << 20, 2048), (2112, 1792), (100, 50)])
def test_connections_leave_files_for_other_uses(
    files: int, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The requests that are passed on, of which there may be 256, need a file each."""
    monkeypatch.setattr(connections, "_most_files", lambda: files)
    loop = asyncio.new_event_loop()
    assert connections.Connections(loop, ServerState()).most == most
    loop.close()


def test_connections_in_use_are_not_closed_for_others(start: Callable[..., str]) -> None:
    url = start(MOST_CONNECTIONS=8)
    busy = []
    for _ in range(8):
        busy.append(connect(url))
        busy[-1].sendall(HEAD + b"Content-Length: 16\r\nConnection: close\r\n\r\n")
        waits.until(lambda: len(_open_connections(url)) == len(busy))
    refused = exchange(url, GET)
    assert not refused or status_of(refused) == 503
    for one in busy:
        one.sendall(b'{"content":"Hi"}')
        assert status_of(until_closed(one)) == 200
        one.close()


test_connections_in_use_are_not_closed_for_others = _LINUX(
    test_connections_in_use_are_not_closed_for_others
)


def test_bodies_together_are_limited(
    start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "TOTAL", 2)
    url = start({"max_body": 200_000})
    held = []
    for _ in range(2):
        held.append(connect(url))
        held[-1].sendall(HEAD + b"Content-Length: 200000\r\n\r\n" + b" " * 199_999)
    metric = "ggtok_bodies_bytes 399998"
    waits.until(lambda: metric in ask(url, "GET", "/metrics")[2].decode())
    large = json.dumps({"content": "a" * 100_000}).encode()
    status, _, answer = ask(url, "POST", "/tokenize", large)
    assert status == 503 and "try again" in answer["error"]["message"]
    assert ask(url, "POST", "/tokenize", {"content": "a" * 1000})[0] == 200
    for one in held:
        one.close()
    waits.until(lambda: "ggtok_bodies_bytes 0\n" in ask(url, "GET", "/metrics")[2].decode())
    assert ask(url, "POST", "/tokenize", large)[0] == 200


BODIES = [
    *(
        b"",
        b"{",
        b"\xff\xfe",
        b'{"content":"\xff"}',
        b'{"content":"\xed\xa0\x80"}',
        b"\x00",
        b"nul",
    ),
    *(b'{"content":"\\ud800"}', b"[" * 100_000, b'{"a":' * 100_000, b'{"content":' + b"[" * 900),
    *(b'{"content":1e999}', b'{"content":' + b"9" * 10_000 + b"}", b"NaN", b'"a" "b"'),
    b'{"content":' + b"[" * 500 + b"]" * 500 + b"}",
    b'{"content":{"content":"a"}}',
    b'{"messages":[{"role":"user","content":' + b"[" * 500 + b"]" * 500 + b"}]}",
]


def test_malformed_bodies(start: Callable[..., str]) -> None:
    url = start()
    paths = ["/tokenize", "/detokenize", "/apply-template", "/v1/messages/count_tokens"]
    paths += ["/v1/responses/input_tokens", "/api/tokenize", "/v1/ggtok/batch"]
    for body in BODIES:
        for path in paths:
            status, _, answer = ask(url, "POST", path, body)
            assert status < 500 or "error" in answer, (path, body[:50])
    works(url)


def test_one_timer_looks_at_all_connections(
    start: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = []
    whole = connections.Connections.__init__

    def counted(*arguments: Any) -> None:
        made.append(arguments)
        whole(*arguments)

    monkeypatch.setattr(connections.Connections, "__init__", counted)
    url = start()
    for _ in range(3):
        works(url)
    assert len(made) == 1
