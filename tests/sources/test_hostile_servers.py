"""Hostile servers: slow responses, redirects to other networks, and malicious contents.

All servers run on 127.0.0.1. To simulate servers on other machines, the functions that resolve
names and classify addresses are replaced, and TLS is off.
"""

from __future__ import annotations

import itertools
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import ggtok
from ggtok.errors import FileError, InvalidValueError, UnreachableError
from ggtok.sources import download_cache
from tests.support.servers import File, Server
from tests.support.vocabularies import fixture
from tests.support.waits import LIMIT

pytest.importorskip("httpx2")
from ggtok.sources import connect, http
from ggtok.sources.connect import NetworkZone

MODEL = fixture("bpe-llama3").read_bytes() + bytes(100_000)


@pytest.fixture(autouse=True)
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
        monkeypatch.delenv(variable.lower(), raising=False)
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("GGTOK_HTTP_TIMEOUT", "1")
    monkeypatch.setattr(http, "_PAUSE", 0.01)


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        yield running


# ---- slow servers ----


class Dripping:
    """A server that sends `parts` to each client, one every `pause` seconds."""

    def __init__(self, parts: Callable[[], Iterator[bytes]], pause: float) -> None:
        self._parts, self._pause = parts, pause
        self._over = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}/model.gguf"

    def __enter__(self) -> Dripping:
        threading.Thread(target=self._serve, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._socket.close()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            threading.Thread(target=self._send, args=(connection,), daemon=True).start()

    def _send(self, connection: socket.socket) -> None:
        try:
            with connection:
                connection.recv(65536)
                for part in self._parts():
                    connection.sendall(part)
                    if self._over.wait(self._pause):
                        return
        except OSError:
            return  # the client closed the connection


def dripped_headers() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nX-Long: "
    yield from itertools.repeat(b"x")


def early_hints() -> Iterator[bytes]:
    yield from itertools.repeat(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n")


def nothing() -> Iterator[bytes]:
    yield from itertools.repeat(b"")


def dripped_body() -> Iterator[bytes]:
    """Sends a body at 6 kB a second."""
    yield f"HTTP/1.1 200 OK\r\nContent-Length: {len(MODEL)}\r\n\r\n".encode()
    for at in range(0, len(MODEL), 300):
        yield MODEL[at : at + 300]


def burst_and_drip() -> Iterator[bytes]:
    yield b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + MODEL[:3000]
    yield from itertools.repeat(b"\0")


@pytest.mark.parametrize(
    ("parts", "says"),
    [
        (dripped_headers, "no answer within 1 seconds"),
        (early_hints, "no answer within 1 seconds"),
        (nothing, "no answer within 1 seconds"),
        # On a busy machine, the last attempt may time out without an answer.
        (dripped_body, "less than 64 kB a second|no answer"),
        (burst_and_drip, "less than 64 kB a second|no answer"),
    ],
)
def test_slow_servers_are_given_up(parts: Callable[[], Iterator[bytes]], says: str) -> None:
    """Loading from a server that would send forever is given up."""
    with Dripping(parts, 0.05) as slow, pytest.raises(UnreachableError, match=says):
        ggtok.load(slow.url)


def test_all_redirects_have_one_time_limit(server: Server) -> None:
    server.files["/model.gguf"] = File(
        b"", redirect="/model.gguf", before=lambda _: time.sleep(0.25)
    )
    with pytest.raises(UnreachableError, match="no answer within 1 seconds"):
        ggtok.load(server.url("/model.gguf"))


def test_a_server_cannot_ask_for_a_longer_wait_than_the_limit(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.files["/model.gguf"] = File(MODEL, statuses=[(503, {"Retry-After": "30"})] * 9)
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    with pytest.raises(UnreachableError, match=r"gave up after 1 attempt: .*503"):
        ggtok.load(server.url("/model.gguf"))
    assert 30 not in waits


def test_the_time_limit_holds_for_resolving_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    monkeypatch.setattr(connect, "resolve", lambda host, port: go_on.wait(LIMIT))
    with pytest.raises(UnreachableError, match="no answer within 1 seconds"):
        ggtok.load("https://slow.test/model.gguf")
    go_on.set()  # until now, resolving hasn't returned


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Time:
    made = Time()
    monkeypatch.setattr(connect, "time", made)
    return made


def seconds(clock: Time, limit: float, rates: Iterator[float]) -> float:
    """Returns the time in seconds after which a body times out. `rates` are the numbers of bytes
    that arrive in each tenth of a second."""
    watch = connect.Clock(limit)
    watch.start_body()
    try:
        for rate in itertools.islice(rates, 100_000):
            watch.left()
            clock.now += 0.1
            watch.received(int(rate))
    except connect.Late:
        return clock.now
    return float("inf")


FLOOR = connect.SLOWEST / 10


@pytest.mark.parametrize(
    ("rates", "end"),
    [
        (itertools.repeat(0), 2),
        (itertools.repeat(FLOOR * 0.9), 2),
        (itertools.repeat(FLOOR * 1.1), float("inf")),
        # Earlier bytes, however many, count only within one period.
        (itertools.chain([1e9], itertools.repeat(0)), 2.1),
        (itertools.chain([FLOOR * 1.01] * 600, itertools.repeat(0)), 60.1),
        (itertools.chain([FLOOR * 2] * 600, itertools.repeat(FLOOR / 2)), 61.4),
        # Later bytes make up for pauses.
        (itertools.cycle([FLOOR * 11, *[0] * 9]), float("inf")),
    ],
)
def test_the_minimum_rate_holds_in_every_period(
    clock: Time, rates: Iterator[float], end: float
) -> None:
    assert seconds(clock, 2, rates) == pytest.approx(end, abs=0.31)


def test_bytes_one_by_one_take_no_memory(clock: Time) -> None:
    watch = connect.Clock(30)
    for _ in range(100_000):
        clock.now += 0.001
        watch.received(1)
    assert len(watch._came) < 300


# ---- where redirects lead ----


@pytest.mark.parametrize(
    ("address", "where"),
    [
        *((a, NetworkZone.LOCAL) for a in ("127.0.0.1", "127.9.9.9", "::1", "0.0.0.0", "::")),
        *((a, NetworkZone.LOCAL) for a in ("169.254.169.254", "fe80::1", "fe80::1%2")),
        *((a, NetworkZone.LOCAL) for a in ("::ffff:127.0.0.1", "64:ff9b::7f00:1", "2002:7f00:1::")),
        *(
            (a, NetworkZone.PRIVATE)
            for a in ("10.0.0.1", "172.16.0.1", "192.168.1.1", "100.64.0.1")
        ),
        *((a, NetworkZone.PRIVATE) for a in ("fd00::1", "::ffff:10.0.0.1", "224.0.0.1", "ff0e::1")),
        *((a, NetworkZone.PUBLIC) for a in ("8.8.8.8", "2606:4700::1", "::ffff:8.8.8.8")),
    ],
)
def test_places(address: str, where: NetworkZone) -> None:
    assert connect.zone_of_ip(address) == where
    assert connect.zone_of_connection((address, 443)) == where
    assert connect.zone_of_connection((address, 443), (address, 50000)) == NetworkZone.LOCAL


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.1", "2130706433"])
def test_names_of_this_machine(host: str) -> None:
    assert connect.zone_of_name(host) == NetworkZone.LOCAL
    assert connect.zone_of_name("a." + host + ".example.org") == NetworkZone.PUBLIC


class NoTLS:
    """Replaces the TLS context, so that connections stay unencrypted."""

    def set_alpn_protocols(self, _: object) -> None:
        pass

    def wrap_socket(self, sock: socket.socket, server_hostname: str) -> socket.socket:
        if server_hostname.startswith("."):
            raise ValueError("server_hostname cannot start with a dot")
        return sock


class World:
    """Local servers that pretend to be on other machines."""

    def __init__(self, servers: dict[str, tuple[Server, NetworkZone]]) -> None:
        self.servers = servers

    def port(self, host: str) -> int:
        return int(self.servers[host][0].origin.rpartition(":")[2])

    def url(self, host: str, path: str = "/model.gguf") -> str:
        return f"https://{host}:{self.port(host)}{path}"

    def resolve(self, host: str, port: int) -> list[tuple[Any, ...]]:
        if host in self.servers:
            return [("127.0.0.1", port)]
        if host.endswith(".test"):
            raise socket.gaierror(-2, "Name or service not known")
        return connect_resolve(host, port)

    def classify(self, theirs: tuple[Any, ...], ours: tuple[Any, ...] | None = None) -> NetworkZone:
        for host, (_, where) in self.servers.items():
            if theirs[1] == self.port(host):
                return where
        return connect_classify(theirs, ours)


connect_resolve, connect_classify = connect.resolve, connect.zone_of_connection


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    with Server() as public, Server() as private, Server() as here, Server() as other:
        made = World(
            {
                "public.test": (public, NetworkZone.PUBLIC),
                "private.test": (private, NetworkZone.PRIVATE),
                "here.test": (here, NetworkZone.LOCAL),
                "other.test": (other, NetworkZone.PUBLIC),
            }
        )
        monkeypatch.setattr(connect, "resolve", made.resolve)
        monkeypatch.setattr(connect, "zone_of_connection", made.classify)
        monkeypatch.setattr(connect, "tls_context", NoTLS)
        for running in (public, private, here, other):
            running.files["/model.gguf"] = File(MODEL)
        yield made


def redirect(world: World, host: str, where: str) -> str:
    world.servers[host][0].files["/redirect.gguf"] = File(b"", redirect=where)
    return world.url(host, "/redirect.gguf")


HOSTS = ("public.test", "private.test", "here.test", "other.test")
NEARER = [
    ("public.test", "private.test"),
    ("public.test", "here.test"),
    ("private.test", "here.test"),
]


@pytest.mark.parametrize(("start", "end"), list(itertools.permutations(HOSTS, 2)))
def test_redirects_do_not_lead_closer(world: World, start: str, end: str) -> None:
    url = redirect(world, start, world.url(end))
    begins = "public.test" if start == "other.test" else start
    if (begins, end) in NEARER:
        with pytest.raises(FileError, match=f"to this machine or .*{end}") as caught:
            ggtok.load(url)
        assert not isinstance(caught.value, UnreachableError)  # so the load isn't retried
        assert not world.servers[end][0].requests
    else:
        assert ggtok.load(url).pre == "llama-bpe"


def test_every_hop_counts(world: World) -> None:
    """A redirect from this machine to a public server and back is refused, because the public
    server chose the target."""
    back = redirect(world, "public.test", world.url("here.test"))
    with pytest.raises(FileError, match="redirects from outside"):
        ggtok.load(redirect(world, "here.test", back))


def test_a_name_that_resolves_to_another_address_the_next_time(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a connection may do depends on its actual address."""
    here, answers = world.port("here.test"), []

    def resolve(host: str, port: int) -> list[tuple[Any, ...]]:
        answers.append(host)
        return [("127.0.0.1", port if len(answers) == 1 else here)]

    monkeypatch.setattr(connect, "resolve", resolve)
    with pytest.raises(FileError, match="redirects from outside"):
        ggtok.load(redirect(world, "public.test", "/model.gguf"))
    assert answers == ["public.test"] * 2
    assert not world.servers["here.test"][0].requests


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "127.1", "2130706433", "[::ffff:127.0.0.1]", "[::1]", "localhost."]
)
def test_other_names_of_this_machine(world: World, host: str) -> None:
    for scheme in ("https", "http"):
        url = redirect(world, "public.test", f"{scheme}://{host}:1/model.gguf")
        with pytest.raises(FileError, match="redirects from outside"):
            ggtok.load(url)


def test_http_is_read_from_this_machine_itself(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """HTTP to localhost is refused if a resolver returns another address for it."""
    port = world.port("public.test")
    monkeypatch.setattr(connect, "resolve", lambda host, port: [("127.0.0.1", port)])
    with pytest.raises(FileError, match="localhost is not this machine"):
        ggtok.load(f"http://localhost:{port}/model.gguf")


def test_a_public_address_of_this_machine(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only the connection shows that the server is this machine: both of its ends have the same
    address."""
    monkeypatch.setattr(
        connect,
        "zone_of_connection",
        lambda theirs, ours=None: (
            NetworkZone.LOCAL
            if ours and theirs[1] == world.port("other.test")
            else NetworkZone.PUBLIC
        ),
    )
    with pytest.raises(FileError, match="redirects from outside"):
        ggtok.load(redirect(world, "public.test", world.url("other.test")))
    assert not world.servers["other.test"][0].requests


def test_the_next_address_is_tried(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))  # a port on which nothing listens
        closed = unused.getsockname()
        port = world.port("public.test")
        monkeypatch.setattr(connect, "zone_of_connection", lambda *_: NetworkZone.PUBLIC)
        monkeypatch.setattr(connect, "resolve", lambda *_: [closed, ("127.0.0.1", port)])
        assert ggtok.load("https://public.test/model.gguf").pre == "llama-bpe"


def test_a_name_that_no_certificate_can_have(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    address = ("127.0.0.1", world.port("public.test"))
    monkeypatch.setattr(connect, "resolve", lambda *_: [address])
    with pytest.raises(UnreachableError, match="cannot start with a dot"):
        ggtok.load(f"https://.public.test:{address[1]}/model.gguf")


# ---- proxies ----


def test_a_proxy(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The proxy resolves names."""
    proxy = world.servers["here.test"][0]
    monkeypatch.setenv("HTTPS_PROXY", proxy.origin.removeprefix("http://"))
    with pytest.raises(FileError, match="gave up"):  # the proxy answers CONNECT with an error
        ggtok.load("https://elsewhere.test/model.gguf")
    assert "CONNECT" in [request.method for request in proxy.requests]
    for wrong in ("socks5://127.0.0.1:1", "http://[::1"):
        monkeypatch.setenv("HTTPS_PROXY", wrong)
        with pytest.raises(InvalidValueError, match="the proxy that the environment names"):
            ggtok.load("https://elsewhere.test/model.gguf")


# ---- malicious contents ----


def telling(name: str, text: str, **how: Any) -> File:
    return File(MODEL, lie=lambda status, h: h.update({name: text}) or status, **how)


@pytest.mark.parametrize(
    "file",
    [
        telling("ETag", '"é\x9b"'),
        telling("ETag", '"' + "x" * 5000 + '"'),
        telling("ETag", '"a\tb"'),
        telling("Last-Modified", "Sämstag", etag=None),
        telling("Date", "\x9b2J"),
    ],
)
def test_a_validator_that_no_request_can_name(server: Server, file: File) -> None:
    """Regression test: such a validator made every load after the first fail."""
    server.files["/model.gguf"] = file
    url = server.url("/model.gguf")
    for _ in range(3):
        assert ggtok.load(url).pre == "llama-bpe"


def test_a_stored_invalid_validator(server: Server) -> None:
    server.files["/model.gguf"] = File(MODEL)
    url = server.url("/model.gguf")
    download_cache.store(download_cache.CacheEntry(url, '"é"', MODEL))
    assert ggtok.load(url).pre == "llama-bpe"


DIGITS = "9" * 5000
LIES: dict[str, tuple[File, str]] = {
    "Content-Range of 5,000 digits": (
        telling("Content-Range", f"bytes 0-{DIGITS}/{DIGITS}"),
        "no range but 'bytes 0-9+[.]{3}'",
    ),
    "a size of 5,000 digits": (
        File(MODEL, statuses=[(416, {"Content-Range": f"bytes */{DIGITS}"})]),
        "not a GGUF file",
    ),
    "a size of 20 digits": (
        telling("Content-Length", "9" * 20, ranges=False),
        "wrong size: 9{20}",
    ),
    "a length of 20 digits": (telling("Content-Length", "9" * 20), "9{20} bytes as a range of"),
    "digits of another script": (
        telling("Content-Range", "bytes \u0660-\u0669/\u0669"),
        "no range but",
    ),
    "a wait of 5,000 digits": (File(MODEL, statuses=[(503, {"Retry-After": DIGITS})]), "503"),
    "an encoding that commands": (telling("Content-Encoding", "\x9b2J"), r"\\x9b2J-encoded"),
    **{
        f"a redirect to {where!r}": (File(b"", redirect=where), "redirects to .*not a URL")
        for where in (
            "https://[::1",
            "https://[x]/",
            "https://a:b/",
            "//xn--a.test\x01/",
            "https://" + "ä" * 80 + ".test/",
        )
    },
    **{
        f"a redirect to {where!r}": (File(b"", redirect=where), "gave up|redirects")
        for where in (
            "https://.test/",
            "https://" + "a" * 70 + ".test/",
            "https://a..test/",
            "https://%00.test/",
            "https:///model.gguf",
            "http://[::ffff:127.0.0.1]:1/",
            "https://a:99999999999/",
        )
    },
}


@pytest.mark.parametrize("row", LIES)
def test_what_servers_say(server: Server, row: str) -> None:
    file, says = LIES[row]
    server.files["/model.gguf"] = file
    with pytest.raises(ggtok.GGTokError, match=says) as caught:
        ggtok.load(server.url("/model.gguf"))
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 600
    server.files["/model.gguf"] = File(MODEL)
    assert ggtok.load(server.url("/model.gguf")).pre == "llama-bpe"


def test_a_reason_is_shown_escaped() -> None:
    def answer() -> Iterator[bytes]:
        yield b"HTTP/1.1 404 \x9b2JGone\xff\r\nContent-Length: 0\r\n\r\n"

    with Dripping(answer, 0) as rude, pytest.raises(FileNotFoundError) as caught:
        ggtok.load(rude.url)
    assert str(caught.value) == f"{rude.url}: the server answers 404 \\x9b2JGone\\xff"


@pytest.mark.parametrize(
    "url",
    ["https://a.test/\ud800", "https://a.test/\x1b[2J", "https://a\ud800/", "https://[::1/\x1b"],
)
def test_addresses_with_control_characters(url: str) -> None:
    with pytest.raises(ggtok.GGTokError) as caught:
        ggtok.load(url)
    assert str(caught.value).isprintable()
