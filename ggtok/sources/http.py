"""GGUF metadata over HTTP, in growing ranges.

A 40 GB model costs the 5 to 15 MB of its vocabulary. What the server says is
checked (status, Content-Range, lengths, the validator), a connection that breaks is
taken up where it broke, redirects are resolved once. A server that ignores ranges
sends the file from its start, and the connection is closed once the metadata is
whole.
"""

from __future__ import annotations

import ipaddress
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ggtok.errors import (
    FileError,
    InvalidValueError,
    MissingExtraError,
    UnreachableError,
    not_found,
    not_permitted,
)
from ggtok.sources import Found, Source, cache
from ggtok.sources.prefix import STEP, Prefix, number

_TIMEOUT_VARIABLE = "GGTOK_HTTP_TIMEOUT"
_TIMEOUT = 30  # seconds without any byte
_SLOWEST = 1024  # bytes a second, over the time of a request beyond that
_REDIRECTS = 10
# Requests in a row that get less than asked for and less than _PROGRESS bytes, before
# it is given up, and the pause after the first that breaks, in seconds.
_ATTEMPTS = 5
_PROGRESS = 64 << 10
_PAUSE = 0.25
_RETRY_AFTER_MOST = 30.0  # seconds that a server may ask to wait

_REDIRECT = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429, 500, 502, 503, 504)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")
_UNSATISFIED_RANGE = re.compile(r"bytes \*/(\d+)")


def find(url: str) -> Found:
    """The metadata of a GGUF file by its URL: from the cache if the server says that the
    file is still the same, can't be reached, or HF_HUB_OFFLINE forbids to ask; else from
    the server."""
    kept = cache.load(url)
    source = Source(url, "http", url=url)
    if os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        if kept is None:
            raise not_found(f"{url}: not in the cache, and HF_HUB_OFFLINE forbids to fetch it")
        return Found(source, kept.payload)
    with _client(url) as client:
        reader = Reader(client, url, url, {}, validator=kept.validator if kept else "")
        try:
            data = reader.read()
        except UnreachableError:
            if kept is None:
                raise
            return Found(source, kept.payload)
    if kept is not None and reader.unchanged:
        return Found(source, kept.payload)
    if reader.validator:
        cache.store(cache.Entry(url, reader.validator, data))
    return Found(source, data)


def _client(name: str) -> Any:
    try:
        import httpx2
    except ImportError:
        raise MissingExtraError(
            f"{name}: reading over HTTP needs the extra: pip install 'ggtok[http]'"
        ) from None
    return httpx2.Client(follow_redirects=False)


class _Broken(Exception):
    """A request that may be worth repeating: what happened, and how long to wait before."""

    def __init__(self, what: str, wait: float = 0.0) -> None:
        super().__init__(what)
        self.wait = wait


class _Changed(Exception):
    """The file is another one than at the first request."""


class Reader:
    """Reads one file's metadata.

    Attributes:
        validator: the server's ETag, else Last-Modified, else "".
        unchanged: whether that still is the one that was given.
    """

    def __init__(
        self,
        client: Any,
        name: str,
        url: str,
        headers: Mapping[str, str],
        *,
        resolved: str | None = None,
        validator: str = "",
    ) -> None:
        """`headers` (a token among them) go to the URL's own server alone. `resolved`: what
        the URL is known to redirect to."""
        self._client = client
        self._name = name
        self._url = self._checked(url)
        self._headers = dict(headers)
        self._at = self._checked(resolved, self._url) if resolved else self._url
        self._prefix = Prefix(name)
        self._timeout = number(_TIMEOUT_VARIABLE, _TIMEOUT)
        self._kept_validator = validator
        self.validator = ""
        self.unchanged = False

    def read(self) -> bytes:
        """The metadata; b"" if unchanged."""
        failures, restarts = 0, 0
        while not self.unchanged and (wanted := self._prefix.wanted()):
            before, wait = len(self._prefix.data), 0.0
            said = "the server sends a few bytes at a time"
            try:
                self._get(wanted)
            except _Changed:
                restarts += 1
                if restarts > 1:
                    raise self._error("the file changes while it is read") from None
                self._restart()
                continue
            except _Broken as e:
                said, wait = str(e), max(e.wait, _PAUSE * 2**failures)
            if len(self._prefix.data) - before >= min(_PROGRESS, wanted - before):
                failures = 0
            elif not self.unchanged:
                failures += 1
                if failures >= _ATTEMPTS:
                    raise UnreachableError(
                        f"{self._name}: given up after {failures} attempts: {said}"
                    )
                time.sleep(wait)
        return b"" if self.unchanged else self._prefix.whole()

    def _restart(self) -> None:
        self._prefix = Prefix(self._name)
        self.validator = ""
        self._at = self._url

    def _error(self, what: str) -> FileError:
        return FileError(f"{self._name}: {what}")

    # ---- requests ----

    def _checked(self, url: str, before: Any = None) -> Any:
        """A URL as the HTTP library's object: https, or http within this machine. `before`
        is the one that redirects to it."""
        import httpx2

        try:
            parsed = httpx2.URL(url) if before is None else before.join(url)
        except (httpx2.InvalidURL, ValueError) as e:
            raise InvalidValueError(f"{self._name}: not a URL: {e}") from None
        local = _is_local(parsed.host)
        if parsed.scheme != "https" and not (parsed.scheme == "http" and local):
            raise InvalidValueError(
                f"{self._name}: {_shown(parsed)} is not read: only https, and http from this "
                "machine itself"
            )
        if before is not None and local and not _is_local(before.host):
            raise self._error(f"it redirects into this machine, to {_shown(parsed)}")
        if not parsed.host or parsed.userinfo:
            raise InvalidValueError(
                f"{self._name}: a URL must have a host, and no user's name or password"
            )
        return parsed.copy_with(fragment=None)

    @contextmanager
    def _open(self, wanted: int) -> Iterator[Any]:
        """The answer to a request for what `wanted` lacks, after all redirects."""
        import httpx2

        start = len(self._prefix.data)
        ask = {"Range": f"bytes={start}-{wanted - 1}", "Accept-Encoding": "identity"}
        if self._kept_validator and not start:
            key = "If-None-Match" if _is_etag(self._kept_validator) else "If-Modified-Since"
            ask[key] = self._kept_validator
        for _ in range(_REDIRECTS):
            own = self._headers if _origin(self._at) == _origin(self._url) else {}
            try:
                with self._client.stream(
                    "GET",
                    self._at,
                    headers={**own, **ask},
                    follow_redirects=False,
                    timeout=self._timeout,
                ) as response:
                    where = response.headers.get("Location")
                    if response.status_code not in _REDIRECT or where is None:
                        yield response
                        return
            except httpx2.HTTPError as e:
                raise _Broken(_line(e)) from e
            self._at = self._checked(where, self._at)
        raise self._error(f"more than {_REDIRECTS} redirects")

    def _get(self, wanted: int) -> None:
        """Reads on, up to `wanted`; from a server without ranges until all is there."""
        with self._open(wanted) as response:
            status = response.status_code
            if status == 304 and self._kept_validator and not self._prefix.data:
                self.unchanged = True
            elif status == 416:
                self._get_nothing(response)
            elif status in (200, 206):
                coding = response.headers.get("Content-Encoding", "identity")
                if coding not in ("", "identity"):
                    raise self._error(f"the server sends it {coding}-encoded, unasked")
                self._check_validator(response)
                self._get_part(response, wanted) if status == 206 else self._get_all(response)
            else:
                self._get_error(response)

    def _get_error(self, response: Any) -> None:
        status, said = response.status_code, _reason(response)
        if status in _LATER:
            wait = response.headers.get("Retry-After", "")
            seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
            raise _Broken(said, min(seconds, _RETRY_AFTER_MOST))
        if self._at != self._url:  # a signed address that has run out
            self._at = self._url
            raise _Broken(said)
        if status in (404, 410):
            raise not_found(f"{self._name}: {said}")
        if status in (401, 403):
            raise not_permitted(f"{self._name}: {said}")
        raise self._error(said)

    def _get_nothing(self, response: Any) -> None:
        """The range begins behind the file's end: there is less than needed."""
        match = _UNSATISFIED_RANGE.fullmatch(response.headers.get("Content-Range", ""))
        size = int(match[1]) if match else len(self._prefix.data)
        if size > len(self._prefix.data):
            raise self._error(f"the server has {size} bytes and refuses to send them")
        self._prefix.file_size = len(self._prefix.data)
        self._prefix.size()  # raises: the file ends inside the metadata

    def _check_validator(self, response: Any) -> None:
        headers = response.headers
        validator = headers.get("ETag") or headers.get("Last-Modified") or ""
        if self._prefix.data and validator != self.validator:
            raise _Changed
        self.validator = validator

    def _get_part(self, response: Any, wanted: int) -> None:
        data = self._prefix.data
        said = response.headers.get("Content-Range", "")
        match = _CONTENT_RANGE.fullmatch(said)
        if not match:
            raise self._error(f"no range but {said!r} in an answer with status 206")
        start, end = int(match[1]), int(match[2]) + 1
        total = None if match[3] == "*" else int(match[3])
        if start != len(data) or not start < end <= wanted or (total is not None and end > total):
            raise self._error(
                f"the server sends {said!r} when bytes {len(data)}-{wanted - 1} are asked for"
            )
        self._check_length(response, end - start)
        self._set_size(total)
        for block in self._blocks(response):
            if len(data) + len(block) > end:
                raise self._error(f"the server sends more than it says ({said})")
            data += block
        if len(data) < end:
            raise _Broken(f"the connection ended {end - len(data)} bytes early")

    def _get_all(self, response: Any) -> None:
        """The answer of a server that ignores ranges: the file from its start."""
        data = self._prefix.data
        length = response.headers.get("Content-Length")
        if length is not None:
            self._set_size(int(length))
        known, at = len(data), 0
        wanted = 0
        for block in self._blocks(response):
            again = block[: max(0, known - at)]
            if again != data[at : at + len(again)]:
                raise _Changed
            data += block[len(again) :]
            at += len(block)
            if at >= known and len(data) >= wanted:
                size = self._prefix.size()
                if size <= len(data):
                    return
                # Looking takes time, reading on too: not much of either in vain.
                wanted = max(size, len(data) + min(max(len(data) // 8, 1 << 18), STEP))
        if self._prefix.file_size is None:
            self._prefix.file_size = len(data)
        if len(data) < self._prefix.file_size:
            raise _Broken("the connection ended early")

    def _check_length(self, response: Any, n: int) -> None:
        length = response.headers.get("Content-Length")
        if length is not None and length != str(n):
            raise self._error(f"the server says {length} bytes and a range of {n}")

    def _set_size(self, total: int | None) -> None:
        if total is None:
            return
        known = self._prefix.file_size
        if known is not None and known != total:
            raise _Changed
        self._prefix.file_size = total

    def _blocks(self, response: Any) -> Iterator[bytes]:
        """The answer's body. A server that drips is given up, like one that stalls."""
        started, received = time.monotonic(), 0
        for block in response.iter_raw():
            received += len(block)
            if time.monotonic() - started > self._timeout + received / _SLOWEST:
                raise _Broken(f"only {received} bytes in {self._timeout} seconds")
            yield block


def _is_local(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _origin(url: Any) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _shown(url: Any) -> str:
    """A URL for people: signatures and passwords left out."""
    return str(url.copy_with(query=None, fragment=None, username=None, password=None))


def _is_etag(validator: str) -> bool:
    return validator.endswith('"')


def _reason(response: Any) -> str:
    return f"the server answers {response.status_code} {response.reason_phrase}".rstrip()


def _line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
