"""Reads over HTTP from servers of every kind."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ggtok
from ggtok import native
from ggtok.errors import FileError, GGUFError, InvalidValueError
from ggtok.sources import connect, download_cache, http, prefix
from tests.support.servers import File, Server
from tests.support.vocabularies import fixture

pytest.importorskip("httpx2")

MODEL = fixture("bpe-llama3").read_bytes() + bytes(100_000)  # zeros in place of weights
IDS = ggtok.load(MODEL).encode("Hello, world")


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    for variable in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy", "HF_HUB_OFFLINE"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(http, "_PAUSE", 0.01)
    # Small blocks, so that the small model needs many ranges.
    monkeypatch.setattr(prefix, "FIRST", 4096)
    monkeypatch.setattr(prefix, "STEP", 1024)
    with Server() as running:
        yield running


def serve(server: Server, file: File, path: str = "/model.gguf") -> str:
    server.files[path] = file
    return server.url(path)


def metadata_size(data: bytes) -> int:
    return native.metadata_size(bytearray(data), len(data), "it")


GOOD = {
    "ranges": File(MODEL),
    "no ranges": File(MODEL, ranges=False),
    "no ranges, no length": File(MODEL, ranges=False, length=False),
    "chunks": File(MODEL, ranges=False, chunked=True),
    "ranges in chunks": File(MODEL, chunked=True),
    "no ETag": File(MODEL, etag=None),
    "an unknown size": File(
        MODEL,
        lie=lambda status, h: h.update({"Content-Range": h["Content-Range"][:-6] + "*"}) or status,
    ),
    "breaks, ranges": File(MODEL, breaks=[3000, 0, 1, 500]),
    "breaks, no ranges": File(MODEL, ranges=False, breaks=[9000, 1, 0, 12000]),
    "breaks, ranges, no length": File(MODEL, length=False, breaks=[3000, 0, 1, 500]),
    "breaks, no ranges, a length at first": File(
        MODEL,
        ranges=False,
        breaks=[5000, 7000],
        before=lambda file: setattr(file, "length", len(file.breaks) == 2),
    ),
    "the metadata alone": File(fixture("bpe-llama3").read_bytes()),
    "busy at first": File(MODEL, statuses=[(503, {"Retry-After": "0"}), (429, {}), (500, {})]),
    "slow": File(MODEL, pause=0.002, block=512),
    "one byte more each time": File(MODEL, block=1, breaks=[4000, *range(100, 1000, 300)]),
}


@pytest.mark.parametrize("kind", GOOD)
def test_valid_servers(server: Server, kind: str) -> None:
    url = serve(server, GOOD[kind])
    tok = ggtok.load(url)
    assert tok.encode("Hello, world") == IDS
    assert tok.source is not None
    assert (tok.source.kind, tok.source.url, tok.source.path) == ("http", url, None)


def test_ranges_are_requested_in_order(server: Server) -> None:
    ggtok.load(serve(server, File(MODEL)))
    asked = [request.headers["range"] for request in server.requests]
    bounds = [tuple(map(int, text.removeprefix("bytes=").split("-"))) for text in asked]
    assert bounds[0] == (0, 4095)
    assert all(b[0] == a[1] + 1 for a, b in itertools.pairwise(bounds))
    assert bounds[-1][1] < metadata_size(MODEL) + 1024
    assert all(request.status == 206 for request in server.requests)
    assert all(request.headers["accept-encoding"] == "identity" for request in server.requests)


def test_an_interrupted_range_is_resumed(server: Server) -> None:
    ggtok.load(serve(server, File(MODEL, breaks=[3000])))
    assert server.requests[1].headers["range"].startswith("bytes=3000-")


def test_without_ranges_reading_stops_after_the_metadata(server: Server, tmp_path: Path) -> None:
    path = tmp_path / "large.gguf"
    path.write_bytes(MODEL)
    os.truncate(path, 1 << 30)
    assert ggtok.load(serve(server, File(path, ranges=False))).encode("Hello, world") == IDS
    assert server.sent < 32 << 20  # allow for bytes in the sockets' buffers


def content_range(text: str) -> File:
    return File(MODEL, lie=lambda status, h: h.update({"Content-Range": text}) or status)


def header(name: str, text: str) -> File:
    return File(MODEL, lie=lambda status, h: h.update({name: text}) or status)


def without(name: str) -> File:
    return File(MODEL, lie=lambda status, h: h.pop(name) and status)


CUT = len(fixture("bpe-llama3").read_bytes()) // 2
BAD: dict[str, tuple[File, type[Exception], str]] = {
    "no Content-Range": (without("Content-Range"), FileError, "no range"),
    "another range": (content_range("bytes 1-4096/100000"), FileError, "are asked for"),
    "a longer range": (content_range("bytes 0-9999/100000"), FileError, "are asked for"),
    "a range behind the end": (content_range("bytes 0-4095/50"), FileError, "are asked for"),
    "a range backwards": (content_range("bytes 0--1/50"), FileError, "no range"),
    "not a range": (content_range("lines 0-4095/50"), FileError, "no range"),
    "a length that isn't the range's": (header("Content-Length", "17"), FileError, "a range of"),
    "more than the range": (
        File(MODEL, chunked=True, lie=header("Content-Range", "bytes 0-99/100000").lie),
        FileError,
        "sends more than it says",
    ),
    "compressed": (header("Content-Encoding", "gzip"), FileError, "gzip-encoded"),
    "a size that is too small": (content_range("bytes 0-4095/4096"), GGUFError, "room for"),
    "breaks every time": (File(MODEL, breaks=[0] * 9), FileError, "after 5 attempts"),
    "busy every time": (File(MODEL, statuses=[(503, {})] * 9), FileError, "503"),
    "gone": (File(MODEL, statuses=[(404, {})]), FileNotFoundError, "404"),
    "forbidden": (File(MODEL, statuses=[(403, {})]), PermissionError, "403"),
    "not understood": (File(MODEL, statuses=[(400, {})]), FileError, "400"),
    "not GGUF": (File(b"<html>" + MODEL), GGUFError, "not a GGUF file"),
    "empty": (File(b""), GGUFError, "not a GGUF file"),
    "empty, no ranges": (File(b"", ranges=False), GGUFError, "not a GGUF file"),
    "cut off": (File(MODEL[:CUT]), GGUFError, "truncated"),
    "cut off, no ranges": (File(MODEL[:CUT], ranges=False), GGUFError, "truncated"),
    "cut off, no length": (File(MODEL[:CUT], ranges=False, length=False), GGUFError, "truncated"),
    "a redirect elsewhere than https": (
        File(MODEL, redirect="http://example.org/model.gguf"),
        InvalidValueError,
        "only https",
    ),
    "a redirect to a file": (
        File(MODEL, redirect="file:///etc/passwd"),
        InvalidValueError,
        "only https",
    ),
    "redirects in a circle": (File(MODEL, redirect="/model.gguf"), FileError, "more than 10"),
    "nothing to read": (File(MODEL, statuses=[(416, {})]), GGUFError, "not a GGUF file"),
    "refuses": (
        File(MODEL, statuses=[(416, {"Content-Range": "bytes */100000"})]),
        FileError,
        "refuses",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_invalid_servers(server: Server, kind: str) -> None:
    file, error, says = BAD[kind]
    url = serve(server, file)
    with pytest.raises(error, match=says) as caught:
        ggtok.load(url)
    assert isinstance(caught.value, ggtok.GGTokError)
    assert url in str(caught.value)
    assert not download_cache.entries()


def test_a_file_that_changes_is_read_again(server: Server) -> None:
    def before(file: File) -> None:
        if len(server.requests) == 2:
            file.content, file.etag = fixture("bpe-qwen2").read_bytes(), '"two"'

    file = File(MODEL, before=before)
    tok = ggtok.load(serve(server, file))
    assert tok.pre == "qwen2"
    with pytest.raises(FileError, match="changes while it is read"):
        ggtok.load(
            serve(server, File(MODEL, before=lambda f: setattr(f, "etag", f'"{time.time_ns()}"')))
        )


@pytest.mark.parametrize(
    "file",
    [
        # The change is detected by the bytes or by the size.
        File(MODEL, ranges=False, etag=None, chunked=True, breaks=[5000]),
        File(MODEL, etag=None),
    ],
    ids=["no ranges", "ranges"],
)
def test_a_file_that_changes_silently(server: Server, file: File) -> None:
    def before(file: File) -> None:
        if len(server.requests) == 2:
            file.content = fixture("bpe-qwen2").read_bytes()

    file.before = before
    assert ggtok.load(serve(server, file)).pre == "qwen2"


def test_a_stalled_server_is_given_up(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGTOK_HTTP_TIMEOUT", "1")
    with pytest.raises(ggtok.UnreachableError, match="sends less than 64 kB a second over 1 s"):
        ggtok.load(serve(server, File(MODEL, pause=3)))


def test_metadata_beyond_the_limit(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GGTOK_METADATA_LIMIT", "5000")
    with pytest.raises(FileError, match=r"more than 5000 bytes; set GGTOK_METADATA_LIMIT"):
        ggtok.load(serve(server, File(MODEL)))
    assert server.sent < 8000
    monkeypatch.setenv("GGTOK_METADATA_LIMIT", "5 MB")
    with pytest.raises(InvalidValueError, match="GGTOK_METADATA_LIMIT must be a number"):
        ggtok.load(serve(server, File(MODEL)))


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/model.gguf",
        "http://127.0.0.1.example.org/model.gguf",
        "https://user:secret@127.0.0.1/model.gguf",
        "https://",
        "https://[::1/model.gguf",
        "https://example.org/\udcff",
    ],
)
def test_refused_addresses(url: str) -> None:
    with pytest.raises(InvalidValueError, match=r"https|URL"):
        ggtok.load(url)


# ---- redirects ----


def test_redirects_are_resolved_once(server: Server) -> None:
    serve(server, File(MODEL), "/there.gguf")
    ggtok.load(serve(server, File(b"", redirect="/there.gguf?signature=1")))
    paths = [request.path for request in server.requests]
    assert paths[0] == "/model.gguf"
    assert set(paths[1:]) == {"/there.gguf?signature=1"}
    assert len(paths) > 4


def test_endless_redirects(server: Server) -> None:
    with pytest.raises(FileError, match="more than 10 redirects"):
        ggtok.load(serve(server, File(b"", redirect="/model.gguf")))
    assert 10 <= len(server.requests) <= 11


def test_an_expired_signed_address_is_renewed(server: Server) -> None:
    there = File(
        MODEL, before=lambda f: f.statuses.append((403, {})) if len(server.requests) == 4 else None
    )
    serve(server, there, "/there.gguf")
    assert (
        ggtok.load(serve(server, File(b"", redirect="/there.gguf"))).encode("Hello, world") == IDS
    )
    paths = [request.path for request in server.requests]
    assert paths.count("/model.gguf") == 2


def test_a_redirect_leads_to_another_server_without_the_token(server: Server) -> None:
    with Server() as other, connect.Network() as net:
        serve(other, File(MODEL))
        url = serve(server, File(b"", redirect=other.url("/model.gguf")))
        reader = http.UrlReader(net, "it", url, {"Authorization": "Bearer secret"})
        data, size = reader.read(), metadata_size(MODEL)
        assert MODEL.startswith(data) and size <= len(data) <= size + prefix.TENSORS
        assert [r.headers.get("authorization") for r in server.requests] == ["Bearer secret"]
        assert other.requests
        assert not any("authorization" in r.headers for r in other.requests)


def test_a_redirect_on_the_same_server_keeps_the_token(server: Server) -> None:
    serve(server, File(MODEL), "/there.gguf")
    url = serve(server, File(b"", redirect="/there.gguf"))
    with connect.Network() as net:
        http.UrlReader(net, "it", url, {"Authorization": "Bearer secret"}).read()
    assert all(r.headers.get("authorization") == "Bearer secret" for r in server.requests)


# ---- the cache ----


def test_fetched_vocabularies_are_cached(server: Server) -> None:
    url = serve(server, File(MODEL))
    ggtok.load(url)
    n = len(server.requests)
    assert [entry.url for entry in download_cache.entries()] == [url]
    assert ggtok.load(url).encode("Hello, world") == IDS
    assert [request.status for request in server.requests[n:]] == [304]
    server.files["/model.gguf"] = File(fixture("bpe-qwen2").read_bytes(), etag='"two"')
    assert ggtok.load(url).pre == "qwen2"
    assert len(download_cache.entries()) == 1


def test_dates_are_validators(server: Server) -> None:
    url = serve(server, File(MODEL, etag=None, modified="Sat, 01 Jan 2000 00:00:00 GMT"))
    ggtok.load(url)
    n = len(server.requests)
    ggtok.load(url)
    assert [request.status for request in server.requests[n:]] == [304]


def test_nothing_is_cached_without_a_validator(server: Server) -> None:
    ggtok.load(serve(server, File(MODEL, etag=None)))
    assert not download_cache.entries()


def test_the_cache_serves_while_the_server_is_down(server: Server) -> None:
    url = serve(server, File(MODEL))
    ggtok.load(url)
    server.__exit__()
    assert ggtok.load(url).encode("Hello, world") == IDS
    with pytest.raises(ggtok.UnreachableError, match="after 5 attempts"):
        ggtok.load(server.url("/other.gguf"))


def test_offline(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    url = serve(server, File(MODEL))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(FileNotFoundError, match="HF_HUB_OFFLINE"):
        ggtok.load(url)
    monkeypatch.delenv("HF_HUB_OFFLINE")
    ggtok.load(url)
    n = len(server.requests)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert ggtok.load(url).encode("Hello, world") == IDS
    assert len(server.requests) == n


def test_a_damaged_entry_is_fetched_again(server: Server) -> None:
    url = serve(server, File(MODEL))
    ggtok.load(url)
    (path,) = Path(download_cache.folder()).iterdir()
    data = bytearray(path.read_bytes())
    data[-5] ^= 1
    path.write_bytes(data)
    n = len(server.requests)
    assert ggtok.load(url).encode("Hello, world") == IDS
    assert server.requests[n].status == 206
    assert download_cache.load_entry(url) is not None


# ---- a large model ----


def large_model(path: Path) -> int:
    """Creates a sparse GGUF file of 2 GiB with 128 k tokens, and returns the size of its
    metadata."""
    import gguf
    import numpy as np

    byte = {b: chr(b) if 33 <= b < 127 else chr(256 + b) for b in range(256)}
    tokens = list(byte.values())
    merges = []
    for first, second in itertools.product(range(256), range(256)):
        merges.append(f"{byte[first]} {byte[second]}")
    tokens += [merge.replace(" ", "") for merge in merges]
    for first, second in itertools.product(range(256), range(256)):
        if len(tokens) == 128_000:
            break
        merges.append(f"{tokens[256 + first * 256 + second]} {byte[(first + second) % 256]}")
        tokens.append(merges[-1].replace(" ", ""))
    assert len(tokens) == len(set(tokens)) == 128_000
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("llama-bpe")
    writer.add_token_list(tokens)
    writer.add_token_types([1] * len(tokens))
    writer.add_token_merges(merges)
    writer.add_bos_token_id(0)
    writer.add_eos_token_id(1)
    writer.add_chat_template("{{ messages }}" * 1000)
    size = 2 << 30
    writer.add_tensor_info("weights", [size // 4], np.dtype(np.float32), size)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    metadata = writer.fout[0].tell()  # type: ignore[index]
    writer.write_ti_data_to_file()
    writer.close()
    os.truncate(path, size)
    return metadata


def test_a_large_model_costs_its_metadata(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.undo()  # use the real block sizes
    monkeypatch.setenv("GGTOK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    path = tmp_path / "large.gguf"
    size = large_model(path)
    tok = ggtok.load(serve(server, File(path)))
    assert tok.n_tokens == 128_000
    text = "The quick brown fox, 12345 times. " * 20
    assert tok.encode(text) == ggtok.load(path).encode(text)
    assert size <= server.sent <= size + 2_000_000
    assert len(server.requests) <= 2 + size // prefix.STEP
    kept = [file for file in tmp_path.rglob("*") if file.is_file() and file != path]
    assert len(kept) == 1
    assert kept[0].parent == tmp_path / "cache"
    assert size < kept[0].stat().st_size < size + prefix.TENSORS + 1000  # includes names of tensors
