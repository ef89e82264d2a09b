"""Connections to untrusted servers, with limits on time and on reachable addresses.

All waiting for a server happens in :class:`_Stream` and :class:`_Backend`, which ask a
:class:`Clock` for the remaining time. So the time is bounded, even if a server sends its headers
one byte at a time, sends endless interim responses, or sends the body very slowly.

Whether access is allowed depends on the address of the connection, after name resolution, not on
the name: ``127.1``, ``[::ffff:7f00:1]`` and a public name all count as this machine if they resolve
to it.
"""

from __future__ import annotations

import ipaddress
import math
import socket
import time
import urllib.request
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import IntEnum
from typing import Any

import httpcore2
import httpx2

from ggtok.base.escape import one_line, printable
from ggtok.errors import InvalidValueError
from ggtok.sources.timeouts import CallTimeout, call_with_timeout

# The minimum transfer rate of a body, in bytes per second, averaged over every period that is as
# long as the time limit.
SLOWEST = 64 << 10

Address = tuple[Any, ...]  # as in the socket module: host and port come first


class NetworkZone(IntEnum):
    """How close an address is to this machine. A redirect may not lead to a server that is closer
    than the server that sends the redirect."""

    PUBLIC = 0
    PRIVATE = 1  # a private network
    LOCAL = 2  # this machine, or a link-local address, where clouds serve credentials


class Refused(Exception):
    """Raised when a connection isn't allowed."""


class Late(Exception):
    """Raised when a server exceeds the time limit."""


# ---- the zone of an address ----

_NAT64 = ipaddress.ip_network("64:ff9b::/96")


def zone_of_ip(host: str) -> NetworkZone:
    """Returns the zone of an IP address, or of the IPv4 address embedded in it.

    Raises:
        ValueError: `host` isn't an IP address.
    """
    address = ipaddress.ip_address(host)
    if isinstance(address, ipaddress.IPv6Address):
        inside = address.ipv4_mapped or address.sixtofour
        if inside is None and address in _NAT64:
            inside = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        address = inside or address
    if address.is_loopback or address.is_link_local or address.is_unspecified:
        return NetworkZone.LOCAL
    return (
        NetworkZone.PUBLIC
        if address.is_global and not address.is_multicast
        else NetworkZone.PRIVATE
    )


def zone_of_name(host: str) -> NetworkZone:
    """Returns the zone of a host, judged only by its name."""
    name = host.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return NetworkZone.LOCAL
    try:
        return zone_of_ip(name)
    except ValueError:
        pass
    try:
        return zone_of_ip(socket.inet_ntoa(socket.inet_aton(name)))  # accepts 127.1 and 2130706433
    except (OSError, ValueError):
        return NetworkZone.PUBLIC


def zone_of_connection(theirs: Address, ours: Address | None = None) -> NetworkZone:
    """Returns the zone of a connection's remote address.

    If the local address `ours` is the same, the server is this machine, even at a public address.
    """
    return NetworkZone.LOCAL if ours and ours[0] == theirs[0] else zone_of_ip(theirs[0])


def resolve(host: str, port: int) -> list[Address]:
    """Resolves a host to addresses, without a time limit."""
    return [found[4] for found in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


# ---- time ----


class Clock:
    """The time limit of one request.

    The headers must be complete within `seconds`. During the body, the rate must be at least
    SLOWEST bytes per second, averaged over every period of `seconds`. The whole request must end by
    `until`, which is extended by 1 / SLOWEST seconds for every byte received.
    """

    def __init__(self, seconds: float, until: float = math.inf) -> None:
        self._seconds = seconds
        self._until = until
        self._began = time.monotonic()
        self._in_body = False
        # [time, number of bytes] of the latest data, enough to reach the minimum for one period.
        self._came: deque[list[Any]] = deque()
        self._sum = 0

    def start_body(self) -> None:
        """Starts to time the body. Call it when the headers are complete, except for redirects."""
        self._in_body = True
        self._began = time.monotonic()

    def received(self, n: int) -> None:
        now = time.monotonic()
        # Merge entries that are close in time, so that the list stays short.
        if self._came and now - self._came[-1][0] < self._seconds / 64:
            self._came[-1][1] += n
        else:
            self._came.append([now, n])
        self._sum += n
        self._until += n / SLOWEST
        while self._sum - self._came[0][1] >= SLOWEST * self._seconds:
            self._sum -= self._came.popleft()[1]

    def left(self) -> float:
        """Returns the remaining time in seconds, which is greater than 0.

        Raises:
            Late: the time is up.
        """
        began = self._began
        if self._in_body and self._came and self._sum >= SLOWEST * self._seconds:
            began = max(began, self._came[0][0])
        left = min(began + self._seconds, self._until) - time.monotonic()
        if left <= 0:
            raise self.late()
        return left

    def late(self) -> Late:
        if self._in_body:
            return Late(
                f"the server sends less than {SLOWEST >> 10} kB a second over {self._seconds} "
                "seconds (GGTOK_HTTP_TIMEOUT sets how long it may)"
            )
        return Late(f"no answer within {self._seconds} seconds (GGTOK_HTTP_TIMEOUT)")


# ---- connections ----


class _Stream(httpcore2.NetworkStream):
    """A connection on which every operation obeys the clock."""

    def __init__(self, stream: httpcore2.NetworkStream, net: Network, where: NetworkZone) -> None:
        self._stream = stream
        self._net = net
        self.zone = where

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        data: bytes = self._bounded(self._stream.read, max_bytes)
        self._net.clock.received(len(data))
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        self._bounded(self._stream.write, buffer)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        try:
            stream = self._bounded(self._stream.start_tls, ssl_context, server_hostname)
        except ValueError as e:  # the name isn't valid in a certificate
            self.close()
            raise httpcore2.ConnectError(f"{server_hostname}: {e}") from e
        return _Stream(stream, self._net, self.zone)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)

    def _bounded(self, function: Callable[..., Any], *args: Any) -> Any:
        try:
            return function(*args, timeout=self._net.clock.left())
        except httpcore2.TimeoutException:
            raise self._net.clock.late() from None


class _Backend(httpcore2.NetworkBackend):
    """Opens the connections of one pool, only to zones from `farthest` to `nearest`."""

    def __init__(self, net: Network, farthest: NetworkZone, nearest: NetworkZone) -> None:
        self._net = net
        self._farthest, self._nearest = farthest, nearest
        self._plain = httpcore2.SyncBackend()

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        clock = self._net.clock
        addresses = self._addresses(host, port)
        failed: Exception | None = None
        for i, address in enumerate(addresses):
            # Each address gets an equal share of the remaining time.
            share = clock.left() / (len(addresses) - i)
            try:
                stream = self._plain.connect_tcp(address[0], address[1], share)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as e:
                failed = e
                continue
            ends = stream.get_extra_info("server_addr"), stream.get_extra_info("client_addr")
            where = zone_of_connection(*ends)
            if self._allows(where):
                return _Stream(stream, self._net, where)
            stream.close()
            failed = self._refused(host, where)
        clock.left()  # raises Late if the time is up
        assert failed is not None
        raise failed

    def _addresses(self, host: str, port: int) -> list[Address]:
        clock = self._net.clock
        if (where := zone_of_name(host)) > self._nearest:
            raise self._refused(host, where)
        try:
            found = call_with_timeout(clock.left(), lambda: resolve(host, port))
        except CallTimeout:
            raise clock.late() from None
        except (OSError, UnicodeError, OverflowError) as e:
            raise httpcore2.ConnectError(f"{host} can't be resolved: {e}") from e
        zones = [zone_of_connection(address) for address in found]
        if not any(map(self._allows, zones)):
            raise self._refused(host, max(zones))
        return [address for address, where in zip(found, zones, strict=True) if self._allows(where)]

    def _allows(self, where: NetworkZone) -> bool:
        return self._farthest <= where <= self._nearest

    def _refused(self, host: str, where: NetworkZone) -> Refused:
        if where < self._farthest:
            return Refused(
                f"{printable(host)} is not this machine, and other machines are read only over "
                "https"
            )
        return Refused(
            "it redirects from outside to this machine or into a private network "
            f"({printable(host)}), where ggtok doesn't follow"
        )


class Answer:
    """A server's response.

    Attributes:
        status, reason: the fields of the status line.
        zone: the zone of the server.
    """

    def __init__(self, response: httpcore2.Response, where: NetworkZone) -> None:
        self.status = response.status
        self.reason: bytes = response.extensions.get("reason_phrase", b"")
        self.zone = where
        self._response = response
        self._headers = {k.lower(): v for k, v in reversed(response.headers)}

    def header(self, name: str) -> str | None:
        """Returns the first header with this name, decoded as Latin-1, or None."""
        value = self._headers.get(name.lower().encode())
        return None if value is None else value.decode("latin-1")

    def blocks(self) -> Iterator[bytes]:
        """Yields blocks of the body as they arrive."""
        yield from self._response.iter_stream()


class Network:
    """An HTTP client that sends one request at a time and reuses connections."""

    def __init__(self) -> None:
        self.clock = Clock(0)
        self._pools: dict[
            tuple[str | None, NetworkZone, NetworkZone], httpcore2.ConnectionPool
        ] = {}

    def __enter__(self) -> Network:
        return self

    def __exit__(self, *_: object) -> None:
        for pool in self._pools.values():
            pool.close()

    @contextmanager
    def get(
        self, url: httpx2.URL, headers: Mapping[str, str], clock: Clock, nearest: NetworkZone
    ) -> Iterator[Answer]:
        """Opens the response to a GET request.

        The server may be no closer than `nearest`; with http, it must be this machine.

        Raises:
            Late: the clock's limit is exceeded.
            Refused: the server's address isn't allowed.
            OSError: the connection can't be opened, or breaks.
        """
        self.clock = clock
        proxy = _proxy(url)
        farthest = NetworkZone.LOCAL if url.scheme == "http" else NetworkZone.PUBLIC
        target = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        try:
            with self._pool(proxy, farthest, nearest).stream(
                "GET", target, headers=list(headers.items())
            ) as response:
                stream = response.extensions["network_stream"]
                where = zone_of_name(url.host) if proxy else stream.zone
                yield Answer(response, where)
        except (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.ProxyError) as e:
            raise ConnectionError(one_line(e)) from e

    def reach(self, url: httpx2.URL, clock: Clock) -> None:
        """Checks that a server accepts connections; otherwise raises the errors of :meth:`get`.

        If a proxy is configured, nothing is checked.
        """
        self.clock = clock
        if _proxy(url) is not None:
            return
        port = url.port or (443 if url.scheme == "https" else 80)
        try:
            _Backend(self, NetworkZone.PUBLIC, NetworkZone.LOCAL).connect_tcp(
                url.host, port
            ).close()
        except httpcore2.ConnectError as e:
            raise ConnectionError(one_line(e)) from e

    def _pool(
        self, proxy: str | None, farthest: NetworkZone, nearest: NetworkZone
    ) -> httpcore2.ConnectionPool:
        """Returns the connection pool for a proxy (or None) and a range of zones."""
        key = proxy, farthest, nearest
        if key not in self._pools:
            self._pools[key] = self._new_pool(proxy, farthest, nearest)
        return self._pools[key]

    def _new_pool(
        self, proxy: str | None, farthest: NetworkZone, nearest: NetworkZone
    ) -> httpcore2.ConnectionPool:
        context = tls_context()
        if proxy is None:
            backend = _Backend(self, farthest, nearest)
            return httpcore2.ConnectionPool(ssl_context=context, network_backend=backend)
        backend = _Backend(
            self, NetworkZone.PUBLIC, NetworkZone.LOCAL
        )  # the user's proxy may be anywhere
        try:
            parsed = httpx2.URL(proxy if "://" in proxy else f"http://{proxy}")
            where = httpcore2.URL(
                scheme=parsed.raw_scheme, host=parsed.raw_host, port=parsed.port, target=""
            )
            auth = (parsed.username, parsed.password) if parsed.username else None
            if parsed.scheme.startswith("socks5"):
                return httpcore2.SOCKSProxy(
                    where, auth, ssl_context=context, network_backend=backend
                )
            return httpcore2.HTTPProxy(where, auth, ssl_context=context, network_backend=backend)
        except (httpx2.InvalidURL, ValueError, RuntimeError) as e:
            raise InvalidValueError(
                f"can't use the proxy that the environment names: {printable(str(e))}"
            ) from e


def tls_context() -> Any:
    """Returns a TLS context that trusts the platform's certificates, or those in SSL_CERT_FILE."""
    return httpx2.create_ssl_context()


def _proxy(url: httpx2.URL) -> str | None:
    """Returns the proxy for a URL, from the environment or the platform's settings, or None.

    Connections to this machine never use a proxy.
    """
    if zone_of_name(url.host) == NetworkZone.LOCAL or urllib.request.proxy_bypass(url.host):
        return None
    proxies = urllib.request.getproxies()
    return proxies.get(url.scheme) or proxies.get("all")
