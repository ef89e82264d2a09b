"""Many connections and huge bodies use bounded resources, and don't block other clients."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from ggtok.server.connections import MOST_CONNECTIONS
from tests.server.command import serving
from tests.server.load import memory
from tests.server.running import ask, connect
from tests.support import waits
from tests.support.vocabularies import fixture

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="reads /proc"),
]
MODEL = fixture("bpe-llama3")
HEAD = b"POST /tokenize HTTP/1.1\r\nHost: localhost\r\n"
MIB = 1 << 20


def test_ten_thousand_idle_connections(tmp_path: Path) -> None:
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 11_000:
        pytest.skip("too few file descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 11_000), hard))
    idle = []
    try:
        with serving([MODEL], tmp_path / "log") as served:
            ask(served.url, "POST", "/tokenize", {"content": "Hi"})
            before = memory(served.process.pid)
            for n in range(10_000):
                idle.append(connect(served.url))
                idle[-1].sendall(b"GET /hea")
                if n % 500 == 0:
                    assert ask(served.url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
            assert ask(served.url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
            files = len(os.listdir(f"/proc/{served.process.pid}/fd"))
            assert files < MOST_CONNECTIONS + 64
            assert memory(served.process.pid) < before + 100 * MIB
            assert served.stop() == 0
    finally:
        for connection in idle:
            connection.close()
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_bodies_of_a_gigabyte(tmp_path: Path) -> None:
    answers: list[bytes] = []

    def send(url: str, chunked: bool) -> None:
        block = b" " * 1_000_000
        with connect(url) as connection:
            if chunked:
                connection.sendall(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
                block = b"f4240\r\n" + block + b"\r\n"
            else:
                connection.sendall(HEAD + b"Content-Length: 1000000000\r\n\r\n")
            for _ in range(1000):
                connection.sendall(block)
            answers.append(connection.recv(100))

    with serving([MODEL], tmp_path / "log") as served:
        threads = [threading.Thread(target=send, args=(served.url, n % 2 == 0)) for n in range(4)]
        for thread in threads:
            thread.start()
        most = 0
        while any(thread.is_alive() for thread in threads):
            assert ask(served.url, "POST", "/tokenize", {"content": "Hi"})[0] == 200
            most = max(most, memory(served.process.pid))
        for thread in threads:
            thread.join(waits.LIMIT)
        assert [answer[:12] for answer in answers] == [b"HTTP/1.1 413"] * 4
        assert most < 600 * MIB
