"""Downloads GGUF metadata over HTTP, in growing ranges.

For a 40 GB model, only the 5 to 15 MB of its vocabulary are downloaded. The server's responses are
checked (status, Content-Range, lengths, validator). An interrupted transfer is resumed. Redirects
are followed for the first range; the other ranges are requested from their target. If a server
ignores ranges and sends the whole file, the connection is closed as soon as the metadata is
complete.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import httpx2

from ggtok._version import __version__
from ggtok.base.escape import printable
from ggtok.errors import (
    FileError,
    InvalidValueError,
    UnreachableError,
    not_found,
    not_permitted,
)
from ggtok.sources import download_cache
from ggtok.sources.connect import (
    SLOWEST,
    Answer,
    Clock,
    Late,
    Network,
    NetworkZone,
    Refused,
    zone_of_name,
)
from ggtok.sources.model_files import Found, Source
from ggtok.sources.prefix import STEP, TENSORS, Prefix, environment_number
from ggtok.sources.timeouts import offline_reason, waiting

_TIMEOUT_VARIABLE = "GGTOK_HTTP_TIMEOUT"
_TIMEOUT = 30  # seconds: see connect.Clock
_TIMEOUT_MOST = 86400
_REDIRECTS = 10
# The reader gives up after _ATTEMPTS consecutive requests that each get less than requested and
# less than _PROGRESS bytes. It waits _PAUSE seconds after the first, and twice as long each time.
_ATTEMPTS = 5
_PROGRESS = 64 << 10
_PAUSE = 0.25
_RETRY_AFTER_MOST = 30.0  # seconds; the longest wait that a server may ask for
_VALIDATOR_MOST = 1024

_REDIRECT = (301, 302, 303, 307, 308)
_LATER = (408, 425, 429, 500, 502, 503, 504)
# File sizes have at most 18 digits.
_CONTENT_RANGE = re.compile(r"bytes ([0-9]{1,18})-([0-9]{1,18})/([0-9]{1,18}|\*)")
_UNSATISFIED_RANGE = re.compile(r"bytes \*/([0-9]{1,18})")
_LENGTH = re.compile(r"[0-9]{1,18}")
_QUOTED_MOST = 200  # the most characters of a server's text that a message quotes


def find_url(url: str) -> Found:
    """Returns the metadata of the GGUF file at a URL.

    The cached copy is used if the server confirms that the file is unchanged, if the server
    can't be reached, or if ggtok is offline.
    """
    with UrlReader(Network(), url, url, {}) as reader:
        kept = download_cache.load_entry(url)
        source = Source(url, "http", url=url)
        if offline := offline_reason():
            if kept is None:
                raise not_found(
                    f"{printable(url)}: not in the cache, and {offline} to download the file"
                )
            return Found(source, kept.payload)
        reader.kept_validator = _sendable(kept.validator) if kept else ""
        try:
            data = reader.read()
        except UnreachableError:
            if kept is None:
                raise
            return Found(source, kept.payload)
    if kept is not None and reader.unchanged:
        return Found(source, kept.payload)
    if validator := _sendable(reader.validator):
        download_cache.store(download_cache.CacheEntry(url, validator, data))
    return Found(source, data)


def _sendable(validator: str) -> str:
    """Returns the validator if a request can contain it, else ""."""
    printable = validator.isascii() and validator.isprintable()
    return validator if printable and len(validator) <= _VALIDATOR_MOST else ""


def timeout() -> int:
    """Returns GGTOK_HTTP_TIMEOUT, in seconds."""
    return min(environment_number(_TIMEOUT_VARIABLE, _TIMEOUT), _TIMEOUT_MOST)


class _Broken(Exception):
    """Raised when a request fails but may be repeated after `wait` seconds."""

    def __init__(self, what: str, wait: float = 0.0) -> None:
        super().__init__(what)
        self.wait = wait


class _Changed(Exception):
    """Raised when the file has changed since the first request."""


class UrlReader:
    """Reads one file's metadata.

    Attributes:
        validator: the server's ETag, or else Last-Modified, or else "".
        kept_validator: the validator of the cached copy, or "".
        unchanged: whether the server has confirmed that the cached copy is current.
    """

    def __init__(self, net: Network, name: str, url: str, headers: Mapping[str, str]) -> None:
        """Sends `headers` (such as a token) only to the URL's own server."""
        self._net = net
        self._name = printable(name)
        self._url = self._checked(url)
        self._headers = dict(headers)
        # The current URL after redirects, and the closest zone where its server may be.
        self._at, self._nearest = self._url, NetworkZone.LOCAL
        self._prefix = Prefix(self._name)
        self._timeout = timeout()
        self._began = time.monotonic()
        self.kept_validator = ""
        self.validator = ""
        self.unchanged = False

    def __enter__(self) -> UrlReader:
        return self

    def __exit__(self, *_: object) -> None:
        self._net.__exit__()

    def read(self) -> bytes:
        """Returns the metadata and the bytes read after it, or b"" if the file is unchanged.

        Whatever the server does, reading n bytes takes at most twice the time limit plus
        n / connect.SLOWEST seconds.
        """
        self._began = time.monotonic()
        with waiting(f"{printable(self._url.host)} ({self._name})"):
            self._read()
        return b"" if self.unchanged else self._prefix.whole(TENSORS)

    def _deadline(self) -> float:
        """Returns the deadline, given the number of bytes read so far."""
        return self._began + 2 * self._timeout + len(self._prefix.data) / SLOWEST

    def _read(self) -> None:
        failures, restarts = 0, 0
        while not self.unchanged and (wanted := self._prefix.wanted()):
            before, wait = len(self._prefix.data), 0.0
            reason = "the server sends a few bytes at a time"
            try:
                self._get(wanted)
            except _Changed:
                restarts += 1
                if restarts > 1:
                    raise self._error("the file changes while it is read; try again") from None
                self._restart()
                continue
            except _Broken as e:
                reason, wait = str(e), max(e.wait, _PAUSE * 2**failures)
            if len(self._prefix.data) - before >= min(_PROGRESS, wanted - before):
                failures = 0
            elif not self.unchanged:
                failures += 1
                # Leave enough time for another attempt.
                until = self._deadline() - self._timeout / 2
                if failures >= _ATTEMPTS or time.monotonic() + wait > until:
                    raise UnreachableError(
                        f"{self._name}: gave up after {failures} "
                        f"attempt{'s'[: failures > 1]}: {reason}"
                    )
                time.sleep(wait)

    def _restart(self) -> None:
        self._prefix = Prefix(self._name)
        self.validator = ""
        self._at, self._nearest = self._url, NetworkZone.LOCAL

    def _error(self, what: str) -> FileError:
        return FileError(f"{self._name}: {what}")

    # ---- requests ----

    def _checked(self, url: str) -> httpx2.URL:
        """Parses a URL; raises an error unless it is https, or http to this machine."""
        try:
            parsed = httpx2.URL(url)
        except (httpx2.InvalidURL, ValueError) as e:
            raise InvalidValueError(f"{self._name}: not a URL: {printable(str(e))}") from None
        if reason := _unreadable(parsed):
            raise InvalidValueError(f"{self._name}: {reason}")
        return parsed.copy_with(fragment=None)

    def _redirected(self, where: str) -> httpx2.URL:
        """Returns the URL in a Location header."""
        try:
            parsed = self._at.join(where)
            reason = _unreadable(parsed)
        except (httpx2.InvalidURL, ValueError) as e:
            # The query may contain a signature.
            to = printable(where.partition("?")[0], _QUOTED_MOST)
            raise self._error(
                f"the server redirects to '{to}', which is not a URL: "
                f"{printable(str(e), _QUOTED_MOST)}"
            ) from None
        if reason:
            raise InvalidValueError(f"{self._name}: the server redirects, but {reason}")
        return parsed.copy_with(fragment=None)

    @contextmanager
    def _open(self, wanted: int) -> Iterator[Answer]:
        """Requests the bytes from the end of the data to `wanted`, follows redirects, and opens the
        final response."""
        start = len(self._prefix.data)
        ask = {"Range": f"bytes={start}-{wanted - 1}", **_ALWAYS}
        if self.kept_validator and not start:
            key = "If-None-Match" if _is_etag(self.kept_validator) else "If-Modified-Since"
            ask[key] = self.kept_validator
        clock = Clock(self._timeout, self._deadline())
        for _ in range(_REDIRECTS):
            own = self._headers if _origin(self._at) == _origin(self._url) else {}
            try:
                with self._net.get(self._at, {**ask, **own}, clock, self._nearest) as answer:
                    where = answer.header("Location")
                    if answer.status not in _REDIRECT or where is None:
                        clock.start_body()
                        yield answer
                        return
            except Refused as e:
                raise self._error(str(e)) from None
            except (Late, ConnectionError) as e:
                raise _Broken(str(e)) from e
            self._at = self._redirected(where)
            self._nearest = min(self._nearest, answer.zone)
        raise self._error(f"more than {_REDIRECTS} redirects")

    def _get(self, wanted: int) -> None:
        """Reads up to `wanted`; if the server ignores ranges, up to the end of the metadata."""
        with self._open(wanted) as answer:
            status = answer.status
            if status == 304 and self.kept_validator and not self._prefix.data:
                self.unchanged = True
            elif status == 416:
                self._get_nothing(answer)
            elif status in (200, 206):
                coding = answer.header("Content-Encoding") or "identity"
                if coding != "identity":
                    raise self._error(
                        f"the server sends it {printable(coding, _QUOTED_MOST)}-encoded, although "
                        "the request asks for no encoding"
                    )
                self._check_validator(answer)
                self._get_part(answer, wanted) if status == 206 else self._get_all(answer)
            else:
                self._get_error(answer)

    def _get_error(self, answer: Answer) -> None:
        status, reason = answer.status, _reason(answer)
        if status in _LATER:
            wait = answer.header("Retry-After") or ""
            seconds = float(wait) if wait.isascii() and wait.isdigit() else 0.0
            raise _Broken(reason, min(seconds, _RETRY_AFTER_MOST))
        if self._at != self._url:  # a signed URL may have expired
            self._at, self._nearest = self._url, NetworkZone.LOCAL
            raise _Broken(reason)
        if status in (404, 410):
            raise not_found(f"{self._name}: {reason}")
        if status in (401, 403):
            raise not_permitted(f"{self._name}: {reason}")
        raise self._error(reason)

    def _get_nothing(self, answer: Answer) -> None:
        """Handles status 416: the range begins after the file's end, so the file is too short."""
        match = _UNSATISFIED_RANGE.fullmatch(answer.header("Content-Range") or "")
        size = int(match[1]) if match else len(self._prefix.data)
        if size > len(self._prefix.data):
            raise self._error(f"the server has {size} bytes and refuses to send them")
        self._prefix.file_size = len(self._prefix.data)
        self._prefix.size()  # raises an error, because the file ends inside the metadata

    def _check_validator(self, answer: Answer) -> None:
        validator = answer.header("ETag") or answer.header("Last-Modified") or ""
        if self._prefix.data and validator != self.validator:
            raise _Changed
        self.validator = validator

    def _get_part(self, answer: Answer, wanted: int) -> None:
        data = self._prefix.data
        header = answer.header("Content-Range") or ""
        match = _CONTENT_RANGE.fullmatch(header)
        if not match:
            raise self._error(
                f"no range but '{printable(header, _QUOTED_MOST)}' in an answer with status 206"
            )
        start, end = int(match[1]), int(match[2]) + 1
        total = None if match[3] == "*" else int(match[3])
        if start != len(data) or not start < end <= wanted or (total is not None and end > total):
            raise self._error(
                f"the server sends '{header}' when bytes {len(data)}-{wanted - 1} are asked for"
            )
        self._check_length(answer, end - start)
        self._set_size(total)
        for block in answer.blocks():
            if len(data) + len(block) > end:
                raise self._error(f"the server sends more than it says ({header})")
            data += block
        if len(data) < end:
            raise _Broken(f"the connection ended {end - len(data)} bytes early")

    def _get_all(self, answer: Answer) -> None:
        """Reads the response of a server that ignores ranges and sends the whole file."""
        data = self._prefix.data
        length = answer.header("Content-Length")
        if length is not None:
            if not _LENGTH.fullmatch(length):
                raise self._error(
                    f"the server sends a wrong size: {printable(length, _QUOTED_MOST)}"
                )
            self._set_size(int(length))
        known, at = len(data), 0
        wanted = 0
        for block in answer.blocks():
            repeated = block[: max(0, known - at)]
            if repeated != data[at : at + len(repeated)]:
                raise _Changed
            data += block[len(repeated) :]
            at += len(block)
            if at >= known and len(data) >= wanted:
                size = self._prefix.size()
                if size <= len(data):
                    return
                # A compromise between parsing too often and reading too far.
                wanted = max(size, len(data) + min(max(len(data) // 8, 1 << 18), STEP))
        if self._prefix.file_size is None:
            self._prefix.file_size = len(data)
        if len(data) < self._prefix.file_size:
            raise _Broken("the connection ended early")

    def _check_length(self, answer: Answer, n: int) -> None:
        length = answer.header("Content-Length")
        if length is not None and length != str(n):
            raise self._error(
                f"the server sends {printable(length, _QUOTED_MOST)} bytes as a range of {n}"
            )

    def _set_size(self, total: int | None) -> None:
        if total is None:
            return
        known = self._prefix.file_size
        if known is not None and known != total:
            raise _Changed
        self._prefix.file_size = total


# The headers of every request.
_ALWAYS = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": f"ggtok/{__version__}"}


def _unreadable(url: httpx2.URL) -> str | None:
    """Returns the reason why a URL isn't allowed, or None."""
    local = url.scheme == "http" and zone_of_name(url.host) == NetworkZone.LOCAL
    if url.scheme != "https" and not local:
        return f"{_address(url)} is not read: only https, and http from this machine itself"
    if not url.host or url.userinfo:
        return "a URL must have a host, and no user name or password"
    return None


def _origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    return url.scheme, url.host, url.port


def _address(url: httpx2.URL) -> str:
    """Returns a URL for messages, without possible secrets such as signatures and passwords."""
    bare = url.copy_with(query=None, fragment=None, username=None, password=None)
    return printable(str(bare), _QUOTED_MOST)


def _is_etag(validator: str) -> bool:
    return validator.endswith('"')


def _reason(answer: Answer) -> str:
    return f"the server answers {answer.status} {printable(answer.reason, _QUOTED_MOST)}".rstrip()
