"""The disk cache of downloaded vocabularies.

The folder GGTOK_CACHE (by default the platform's cache folder) has one file for each URL: a line
of JSON (URL, validator, length and SHA-256 of the payload), followed by the payload, which is the
downloaded metadata. An entry is written to a temporary file and then renamed, so readers never see
a partial entry. An entry that doesn't match its checksum is removed and downloaded again. If the
total size of the entries exceeds GGTOK_CACHE_SIZE (bytes, 1 GiB by default; 0 disables the cache),
the least recently used entries are removed. Failing to write the cache is not an error.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass

from ggtok.base.files import open_own, open_regular, read_regular, read_up_to
from ggtok.sources.prefix import LIMIT, LIMIT_VARIABLE, TENSORS, environment_number

_FORMAT = "ggtok-vocabulary-1"
_SUFFIX = ".vocabulary"
_TEMPORARY = ".writing"
_SIZE = 1 << 30
_HEADER_MOST = 1 << 16
_ABANDONED = 3600  # seconds after which a temporary file counts as abandoned


@dataclass(frozen=True)
class CacheEntry:
    """A cached file's metadata, with the ETag or date that tells whether the file has changed."""

    url: str
    validator: str
    payload: bytes


@dataclass(frozen=True)
class Stored:
    """A cached file in a listing: URL, size on disk in bytes, and time of last use (Unix time)."""

    url: str
    size: int
    used: float


def folder() -> str:
    """Returns GGTOK_CACHE, or the platform's cache folder for ggtok."""
    if chosen := os.environ.get("GGTOK_CACHE"):
        return os.path.expanduser(chosen)
    home = os.path.expanduser("~")
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return os.path.join(base, "ggtok", "Cache")
    if sys.platform == "darwin":
        return os.path.join(home, "Library", "Caches", "ggtok")
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.join(home, ".cache"), "ggtok")


def _path(url: str) -> str:
    return os.path.join(
        folder(), hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()[:40] + _SUFFIX
    )


def load_entry(url: str) -> CacheEntry | None:
    """Returns the entry for a URL, or None. Removes a damaged entry."""
    path = _path(url)
    try:
        line, _, payload = read_regular(path, _most()).partition(b"\n")
    except OSError:
        return None
    header = _header(line[:_HEADER_MOST])
    if (
        header is None
        or header.get("url") != url
        or header.get("sha256") != hashlib.sha256(payload).hexdigest()
    ):
        _remove(path)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # records the time of last use
    return CacheEntry(url, str(header.get("validator", "")), payload)


def _most() -> int:
    """Returns the maximum size of an entry in bytes."""
    return _HEADER_MOST + environment_number(LIMIT_VARIABLE, LIMIT) + TENSORS


def _header(line: bytes) -> dict[str, object] | None:
    try:
        header = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return header if isinstance(header, dict) and header.get("format") == _FORMAT else None


def store(entry: CacheEntry) -> None:
    """Stores an entry, unless it exceeds the cache's limit. Replaces an older entry for the same
    URL."""
    limit = environment_number("GGTOK_CACHE_SIZE", _SIZE)
    if len(entry.payload) > limit:
        return
    header = {
        "format": _FORMAT,
        "url": entry.url,
        "validator": entry.validator,
        "size": len(entry.payload),
        "sha256": hashlib.sha256(entry.payload).hexdigest(),
    }
    temporary = None
    try:
        os.makedirs(folder(), mode=0o700, exist_ok=True)
        temporary = os.path.join(folder(), secrets.token_hex(8) + _TEMPORARY)
        handle = open_own(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, private=True)
        with os.fdopen(handle, "wb") as f:
            f.write(json.dumps(header).encode() + b"\n")
            f.write(entry.payload)
        os.replace(temporary, _path(entry.url))
    except OSError:
        if temporary is not None:
            _remove(temporary)
        return
    _shrink(limit)


def _files() -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(folder()) as entries:
            yield from entries
    except OSError:
        return


def _shrink(limit: int) -> None:
    found = []
    for file in _files():
        # Another process may have removed the file.
        with contextlib.suppress(OSError):
            stat = file.stat()
            if file.name.endswith(_SUFFIX):
                found.append((stat.st_mtime, stat.st_size, file.path))
            elif file.name.endswith(_TEMPORARY) and time.time() - stat.st_mtime > _ABANDONED:
                _remove(file.path)
    total = sum(size for _, size, _ in found)
    for _, size, path in sorted(found):
        if total <= limit:
            break
        _remove(path)
        total -= size


def entries(prefix: str = "") -> list[Stored]:
    """Returns the entries whose URL begins with `prefix`, sorted by URL."""
    found = []
    for file in _files():
        if not file.name.endswith(_SUFFIX):
            continue
        with contextlib.suppress(OSError), open_regular(file.path) as f:
            header = _header(read_up_to(f, _HEADER_MOST).partition(b"\n")[0])
            stat = os.fstat(f.fileno())
            if header is not None and str(header.get("url", "")).startswith(prefix):
                found.append(Stored(str(header["url"]), stat.st_size, stat.st_mtime))
    return sorted(found, key=lambda entry: entry.url)


def clear() -> tuple[int, int]:
    """Removes all entries. Returns their number and their size in bytes."""
    n = size = 0
    for file in list(_files()):
        if file.name.endswith((_SUFFIX, _TEMPORARY)):
            with contextlib.suppress(OSError):
                size += file.stat().st_size
                os.remove(file.path)
                n += file.name.endswith(_SUFFIX)
    return n, size


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.remove(path)
